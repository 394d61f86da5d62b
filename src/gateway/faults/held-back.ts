import type { Clock } from '../../lib/clock.ts';

/** What a payment and its callback have in common, before either has an id. */
interface Told {
  bankAccount: string;
  content: string;
  amount: number;
}

/** Payments that the partner is to hear of late. One of the same money meanwhile is told as late. */
export class HeldBack {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(told: Told, ms: number): void {
    const key = keyOf(told);
    const untilMs = this.#clock.monotonicMs() + ms;
    this.#untilMs.set(key, untilMs);
    void this.#clock.sleep(ms).then(() => {
      if (this.#untilMs.get(key) === untilMs) this.#untilMs.delete(key);
    });
  }

  /** How long it still is held back, in milliseconds. */
  leftMs(told: Told): number {
    return Math.max(0, (this.#untilMs.get(keyOf(told)) ?? 0) - this.#clock.monotonicMs());
  }
}

function keyOf({ bankAccount, content, amount }: Told): string {
  return JSON.stringify([bankAccount, content, amount]);
}
