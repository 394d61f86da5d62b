/** The list that has changed. */
export type Topic = 'boxes' | 'orders' | 'payments' | 'callbacks' | 'enrolments' | 'faults';

/** Tells watchers which list has changed; they read it again. */
export class Changes {
  readonly #watchers = new Set<(topic: Topic) => void>();

  /** Returns a function that ends the watching. */
  watch(watcher: (topic: Topic) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  publish(...topics: Topic[]): void {
    for (const topic of topics) for (const watcher of this.#watchers) watcher(topic);
  }
}
