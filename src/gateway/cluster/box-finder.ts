import { systemCodeOf } from '../../lib/errors.ts';
import type { BoxName } from '../../protocol/fields.ts';
import { boxCode } from '../../protocol/fields.ts';
import { RowCache } from '../common/row-cache.ts';
import type { BoxPlace } from '../store/engines/cluster-database.ts';

/** At most this many names without a box are stored. The number is limited because strangers can make up names. */
const UNKNOWN_MAX = 1_000;
/** One query looks up at most this many names. */
const LOOKUPS_MAX = 500;

interface Lookup {
  name: BoxName;
  found(place: BoxPlace | undefined): void;
  failed(error: unknown): void;
}

/** Finds boxes of the registry and caches them. Names without a box are cached apart, so they push out no box. */
export class BoxFinder {
  readonly #load: (names: readonly BoxName[]) => Promise<readonly (BoxPlace | undefined)[]>;
  readonly #known = new RowCache();
  #unknown = new Set<string>();
  readonly #waiting: Lookup[] = [];
  #isLoading = false;

  /** `load` returns a place for each name, in the same order. */
  constructor(load: (names: readonly BoxName[]) => Promise<readonly (BoxPlace | undefined)[]>) {
    this.#load = load;
  }

  /**
   * Returns the box with this terminalCode. If that is empty, the box with this serialNumber. With both empty, the
   * first box that has an account.
   */
  async find(terminalCode: string, serialNumber: string): Promise<BoxPlace | undefined> {
    const name = terminalCode === '' ? serialNumber : terminalCode;
    // No box can have this name, so the database is not asked.
    if (name !== '' && !boxCode.safeParse(name).success) return undefined;
    const serial = terminalCode === '' ? serialNumber : '';
    const key = `${terminalCode} ${serial}`;
    const unknown = this.#unknown;
    if (unknown.has(key)) return undefined;
    try {
      return await this.#known.get(key, async () => {
        const found = await this.#lookUp({ terminalCode, serialNumber: serial });
        if (found === undefined) throw new NoSuchBox();
        return found;
      });
    } catch (error) {
      if (systemCodeOf(error) === NO_TABLE) throw new NotYet();
      if (!(error instanceof NoSuchBox)) throw error;
      const [oldest] = unknown;
      if (unknown.size >= UNKNOWN_MAX && oldest !== undefined) unknown.delete(oldest);
      unknown.add(key);
      return undefined;
    }
  }

  /** Empties the cache after a change of the registry. Lookups in progress do not fill it either. */
  clear(): void {
    this.#known.clear();
    this.#unknown = new Set();
  }

  /** Looks up a name. One query at a time finds all names that wait, however many strangers make up. */
  #lookUp(name: BoxName): Promise<BoxPlace | undefined> {
    return new Promise((found, failed) => {
      this.#waiting.push({ name, found, failed });
      if (!this.#isLoading) void this.#loadAll();
    });
  }

  async #loadAll(): Promise<void> {
    this.#isLoading = true;
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, LOOKUPS_MAX);
      try {
        const places = await this.#load(some.map(({ name }) => name));
        for (const [i, { found }] of some.entries()) found(places[i]);
      } catch (error) {
        for (const { failed } of some) failed(error);
      }
    }
    this.#isLoading = false;
  }
}

/** PostgreSQL's code for a missing table (undefined_table). */
const NO_TABLE = '42P01';

/** Thrown at the first start of a cluster, before shard 0 has created its tables. */
class NotYet extends Error {
  readonly statusCode = 503;

  constructor() {
    super('the cluster has just begun: ask again in a moment');
  }
}

/** Keeps a name without a box out of the cache of boxes. */
class NoSuchBox extends Error {}
