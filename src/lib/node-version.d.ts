export const SUPPORTED_NODE: string;
export const NEEDED_NODE: string;
export function isSupportedNode(): boolean;
export function thisNode(): string;
export function acceptSqlite(): void;
