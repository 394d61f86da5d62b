export const REQUIRED_MAJOR: number;
export function isNewEnough(): boolean;
export function ownNode(): string | undefined;
export function runWith(node: string, args: readonly string[], whenMissing: (error: Error) => void): void;
