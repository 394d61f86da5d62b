/** How many rows are cached. A list counts each of its rows. */
const ROWS_MAX = 10_000;

interface Entry {
  value: Promise<unknown>;
  rows: number;
}

/** Caches the rows of the registry that were read last. It also caches that a row does not exist. */
export class RowCache {
  /** Entries by key, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #rows = 0;

  /** Returns the cached value of this key, or what `load` reads. Failures are not cached. */
  get<T>(key: string, load: () => Promise<T>): Promise<T> {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return known.value as Promise<T>;
    }
    const value = load();
    const entry = { value, rows: 1 };
    this.#entries.set(key, entry);
    this.#rows += 1;
    this.#evict();
    value.then(
      (found) => this.#weigh(key, entry, Array.isArray(found) ? found.length : 1),
      () => this.#drop(key, entry),
    );
    return value;
  }

  /** Clears the cache. Reads that are running are not cached either. */
  clear(): void {
    this.#entries.clear();
    this.#rows = 0;
  }

  #weigh(key: string, entry: Entry, rows: number): void {
    if (this.#entries.get(key) !== entry) return;
    this.#rows += Math.max(1, rows) - entry.rows;
    entry.rows = Math.max(1, rows);
    this.#evict();
  }

  #evict(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#rows <= ROWS_MAX) return;
      this.#drop(key, entry);
    }
  }

  #drop(key: string, entry: Entry): void {
    if (this.#entries.get(key) !== entry) return;
    this.#entries.delete(key);
    this.#rows -= entry.rows;
  }
}
