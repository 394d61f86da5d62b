/** What a watcher of the gateway may want to read anew. */
export type Topic = 'boxes' | 'orders' | 'payments' | 'callbacks' | 'enrolments' | 'faults';

/** Tells watchers that something changed, not what: they read it from the lists. */
export class Changes {
  readonly #watchers = new Set<(topic: Topic) => void>();

  /** Returns what ends the watching. */
  watch(watcher: (topic: Topic) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  publish(...topics: Topic[]): void {
    for (const topic of topics) for (const watcher of this.#watchers) watcher(topic);
  }
}
