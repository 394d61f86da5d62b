export function keepCompiled(): void;
