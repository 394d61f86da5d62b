/** What happened in a run, with milliseconds since its begin. */
export class Timeline {
  readonly #startedMs = performance.now();
  readonly #entries: string[] = [];

  add(what: string): void {
    this.#entries.push(`+${(performance.now() - this.#startedMs).toFixed(1)} ms ${what}`);
  }

  toString(): string {
    return this.#entries.join('\n  ');
  }
}
