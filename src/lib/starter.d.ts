export const DETACH: string;
export function onceStarterEnds(onEnd: () => void): void;
