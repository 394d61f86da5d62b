/** The lists in the console. */
export const TOPICS = [
  ...(['boxes', 'orders', 'payments', 'callbacks', 'credits', 'sources'] as const),
  ...(['enrolments', 'registry', 'faults', 'calls', 'cluster'] as const),
];
export type Topic = (typeof TOPICS)[number];

/** Called with a list that has changed, at this gateway (`isHere`) or at another one of its database. */
type Watcher = (topic: Topic, isHere: boolean) => void;

/** Notifies watchers that a list has changed. They then read it again. */
export class Changes {
  readonly #watchers = new Set<Watcher>();

  /** Returns a function that removes the watcher. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  publish(...topics: Topic[]): void {
    for (const topic of topics) for (const watcher of this.#watchers) watcher(topic, true);
  }

  /** Publishes changes at another gateway. */
  publishElsewhere(...topics: readonly Topic[]): void {
    for (const topic of topics) for (const watcher of this.#watchers) watcher(topic, false);
  }
}
