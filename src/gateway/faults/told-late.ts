/** What a payment and its callback have in common, before either has an id. */
interface Told {
  bankAccount: string;
  content: string;
  amount: number;
}

/** Payments that the partner is to hear of late. One of the same money meanwhile is told as late. */
export class LatePayments {
  readonly #until = new Map<string, Promise<unknown>>();

  /** The partner is not to hear of it before `over` settles. */
  add(told: Told, over: Promise<unknown>): void {
    const key = keyOf(told);
    this.#until.set(key, over);
    void over.then(() => {
      if (this.#until.get(key) === over) this.#until.delete(key);
    });
  }

  /** Settles when the partner may hear of it; undefined where he may at once. */
  until(told: Told): Promise<unknown> | undefined {
    return this.#until.get(keyOf(told));
  }
}

function keyOf({ bankAccount, content, amount }: Told): string {
  return JSON.stringify([bankAccount, content, amount]);
}
