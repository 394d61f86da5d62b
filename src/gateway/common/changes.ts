/** The lists in the console. */
export const TOPICS = [
  ...(['boxes', 'orders', 'payments', 'callbacks', 'credits', 'sources'] as const),
  ...(['enrolments', 'registry', 'faults', 'calls'] as const),
];
export type Topic = (typeof TOPICS)[number];

/** Notifies watchers that a list has changed. They then read it again. */
export class Changes {
  readonly #watchers = new Set<(topic: Topic) => void>();

  /** Returns a function that removes the watcher. */
  watch(watcher: (topic: Topic) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  publish(...topics: Topic[]): void {
    for (const topic of topics) for (const watcher of this.#watchers) watcher(topic);
  }
}
