import type { Account } from '../gateway-at.ts';
import type { Sight } from './sights.ts';
import type { Heard } from './wire-at.ts';

/** A session at a gateway, as it was heard and seen. All times are on one clock, in milliseconds. */
export interface Recording {
  /** Where it was, for the file's first lines. */
  origin: string;
  /** Calendar time when the file was written, in milliseconds since 1970. */
  writtenAtMs: number;
  /** Oldest first. */
  heard: readonly Heard[];
  /** Oldest first. */
  sights: readonly Sight[];
  /** Entries that the gateway had forgotten. */
  lost: number;
  /** When the gateway was found to be started anew. */
  restartsMs: readonly number[];
  /** Whose money the session is about; undefined for a gateway that does not tell, until a call does. */
  account: Account | undefined;
  /** serialNumber of each box of the gateway by its terminalCode. */
  serials: ReadonlyMap<string, string>;
}
