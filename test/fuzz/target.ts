import type { Seeded } from '../support/seeded.ts';

/** What a target may use; everything in it is gone with the target. */
export interface World {
  /** A new empty folder. */
  folder(): Promise<string>;
  /** Runs when the target ends, last first. */
  onEnd(end: () => unknown): void;
}

/** A decoder with what stands behind it, ready for inputs. */
export interface Stage {
  /**
   * Feeds one input and settles when it is dealt with. Throws where a property is broken; `true` says that the input was
   * taken, `false` that it was refused.
   */
  feed(input: Buffer): boolean | Promise<boolean>;
  /** What can only be seen after many inputs. */
  check?(): Promise<void>;
}

/** One way into the project from outside. */
export interface Target {
  name: string;
  /** How many of 50,000 inputs it gets. */
  inputs: number;
  /** The input of this chance. */
  make(chance: Seeded): Buffer;
  open(world: World): Stage | Promise<Stage>;
}

/** A property does not hold. */
export class Broken extends Error {}

export function hold(holds: boolean, what: () => string): void {
  if (!holds) throw new Broken(what());
}

/** Words of an engine where words for people belong. */
const UNNAMED =
  /\n\s+at |undefined|\[object |(Type|Range|Reference|Syntax|Zod|Assertion)Error|is not a function|is not iterable|Cannot (read|set|convert)|call stack/;

/** A refusal says in one or a few lines what is wrong, and not how the program stumbled over it. */
export function holdNamed(reason: string): void {
  hold(reason.trim() !== '' && reason.length <= 4_000, () => `a refusal of ${reason.length} characters`);
  hold(!UNNAMED.test(reason), () => `a refusal without a name: ${reason}`);
}

/** A stage for a function that neither waits nor remembers. */
export function pure(feed: (input: Buffer) => boolean): () => Stage {
  return () => ({ feed });
}
