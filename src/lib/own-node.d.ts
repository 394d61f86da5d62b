export function isOwnNode(): boolean;
export function runOnOwnNode(script: string, args: readonly string[]): void;
