/** A list in the console. */
export type Topic =
  | 'boxes'
  | 'orders'
  | 'payments'
  | 'callbacks'
  | 'credits'
  | 'sources'
  | 'enrolments'
  | 'registry'
  | 'faults'
  | 'calls';

/** Notifies watchers that a list has changed; they read it again. */
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
