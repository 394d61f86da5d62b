export function keepCompiled(): void;
export function cacheFolder(name: string): string | undefined;
