export const SUPPORTED_NODE: string;
export const NEEDED_NODE: string;
/** Part of `process.versions`; a type of its own, because Node's has no other engine. */
type Versions = Readonly<Record<string, string | undefined>>;

export function otherEngine(versions?: Versions): 'bun' | 'deno' | undefined;
export function isSupportedNode(versions?: Versions): boolean;
export function thisNode(versions?: Versions): string;
export function acceptSqlite(): void;
