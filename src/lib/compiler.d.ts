export function saveMemory(command: string | undefined): void;
export function optimizeHotCode(): void;
