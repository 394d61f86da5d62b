import { RowCache } from '../gateway/row-cache.ts';
import { boxCode } from '../protocol/fields.ts';
import type { BoxPlace } from '../store/engines/cluster-database.ts';

/** Names of no box that are kept: strangers make them up. */
const UNKNOWN_MAX = 1_000;

/** Finds boxes of the registry, and keeps what it found: names that no box has never push out those of boxes. */
export class BoxFinder {
  readonly #load: (terminalCode: string, serialNumber: string) => Promise<BoxPlace | undefined>;
  readonly #known = new RowCache();
  #unknown = new Set<string>();

  constructor(load: (terminalCode: string, serialNumber: string) => Promise<BoxPlace | undefined>) {
    this.#load = load;
  }

  /** The box with this terminalCode or, if that is empty, this serialNumber; with both empty the first that has an account. */
  async find(terminalCode: string, serialNumber: string): Promise<BoxPlace | undefined> {
    const name = terminalCode === '' ? serialNumber : terminalCode;
    // No box can have it, so the database is not asked.
    if (name !== '' && !boxCode.safeParse(name).success) return undefined;
    const serial = terminalCode === '' ? serialNumber : '';
    const key = `${terminalCode} ${serial}`;
    const unknown = this.#unknown;
    if (unknown.has(key)) return undefined;
    try {
      return await this.#known.get(key, async () => {
        const found = await this.#load(terminalCode, serial);
        if (found === undefined) throw new NoSuchBox();
        return found;
      });
    } catch (error) {
      if (!(error instanceof NoSuchBox)) throw error;
      const [oldest] = unknown;
      if (unknown.size >= UNKNOWN_MAX && oldest !== undefined) unknown.delete(oldest);
      unknown.add(key);
      return undefined;
    }
  }

  /** Forgets everything, also what lookups under way will find: the registry has changed. */
  clear(): void {
    this.#known.clear();
    this.#unknown = new Set();
  }
}

/** Not kept among the boxes. */
class NoSuchBox extends Error {}
