import pg from 'pg';

/** The class of SQLSTATEs with which PostgreSQL refuses a value, such as a text with NUL. */
const DATA_EXCEPTION = '22';
/** One statement gets at most this many items. */
const AT_ONCE_MAX = 500;

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Gathers what several callers ask of the database into one statement: while one statement runs, the next callers wait
 * together. `run` gets items of which no two have the same key, and returns a result for each.
 */
export class Gathered<Item, Result> {
  readonly #run: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #keyOf: (item: Item) => string;
  #waiting: Waiting<Item, Result>[] = [];
  #isRunning = false;

  constructor(keyOf: (item: Item) => string, run: (items: readonly Item[]) => Promise<readonly Result[]>) {
    this.#keyOf = keyOf;
    this.#run = run;
  }

  /** Rejects with the error of `run`. An item with a value that the database refuses fails no other item. */
  ask(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (!this.#isRunning) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) await this.#runThese(this.#take());
    this.#isRunning = false;
  }

  async #runThese(taken: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#run(taken.map(({ item }) => item));
      for (const [i, { resolve }] of taken.entries()) resolve(results[i] as Result);
    } catch (error) {
      // The server does not say which item it refuses. So each is tried by itself, and only that one fails.
      if (taken.length > 1 && isOfAValue(error)) for (const it of taken) await this.#runThese([it]);
      else for (const { reject } of taken) reject(error);
    }
  }

  #take() {
    const keys = new Set<string>();
    const taken: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    for (const it of this.#waiting) {
      const key = this.#keyOf(it.item);
      if (taken.length < AT_ONCE_MAX && !keys.has(key)) taken.push(it);
      else left.push(it);
      keys.add(key);
    }
    this.#waiting = left;
    return taken;
  }
}

function isOfAValue(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith(DATA_EXCEPTION) === true;
}
