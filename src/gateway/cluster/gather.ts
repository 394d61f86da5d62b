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

  /** Rejects with the error of `run`. */
  ask(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (!this.#isRunning) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      const taken = this.#take();
      try {
        const results = await this.#run(taken.map(({ item }) => item));
        for (const [i, { resolve }] of taken.entries()) resolve(results[i] as Result);
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    }
    this.#isRunning = false;
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
