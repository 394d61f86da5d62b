import type { Overlap } from './calls.ts';

/** What a scenario file says at one place: a step, with words above it, or words alone. */
export interface Line {
  /** On the clock of the recording. */
  atMs: number;
  /** Sentences for who reads the file. */
  notes: string[];
  step?: Record<string, unknown>;
  /** Whether it goes before all else of the same moment. */
  isAhead?: boolean;
  /** Of a push beside others: with which, and when it began. */
  beside?: { overlap: Overlap; begunMs: number };
  /** When it was over, where that is not at once. */
  untilMs?: number;
}

/** `words` alone: what happened, and is no step. */
export function note(atMs: number, ...words: string[]): Line {
  return { atMs, notes: words };
}

export function line(atMs: number, step: Record<string, unknown>, ...words: string[]): Line {
  return { atMs, notes: words, step };
}

/** A scenario's way to write the result of a step. */
export function variable(name: string, field: string): string {
  return `\${${name}.${field}}`;
}
