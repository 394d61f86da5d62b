import type { Action } from './script.ts';
import type { Outcome } from './shop.ts';

/** No QR. */
export const NONE = '';

/**
 * Which orders' QR may be on the screen once all is settled, from what was answered: an answered SUCCESS is a promise,
 * an unanswered request may have happened or not.
 */
export class ScreenExpectation {
  #possible: ReadonlySet<string> = new Set([NONE]);
  readonly #expires: boolean;

  /** `expires`: whether a QR may be over at any time. */
  constructor(expires: boolean) {
    this.#expires = expires;
  }

  allows(orderId: string): boolean {
    return this.#possible.has(orderId) || (this.#expires && orderId === NONE);
  }

  toString(): string {
    return [...this.#possible].map((it) => (it === NONE ? 'no QR' : it)).join(' or ');
  }

  /** What is there was seen; from here on the next run reckons. */
  seen(orderId: string): void {
    this.#possible = new Set([orderId]);
  }

  /** `certain`: no other request was under way meanwhile, so that the order of things is known. */
  after(action: Action, orderId: string, outcome: Outcome, certain: boolean): void {
    if (outcome.kind === 'unsent' || action.do === 'pay-stray') return;
    const done = outcome.kind === 'answered' && outcome.ok;
    const without = (id: string) => [...this.#possible].map((it) => (it === id ? NONE : it));
    if (action.do === 'push') {
      if (done && certain) this.#possible = new Set([orderId]);
      else if (done || outcome.kind === 'unknown') this.#add(orderId, NONE);
      else this.#add(NONE);
    } else if (action.do === 'dismiss') {
      this.#add(NONE);
    } else if (done && certain) {
      this.#possible = new Set(without(orderId));
    } else {
      this.#add(...without(orderId));
    }
  }

  #add(...ids: string[]): void {
    this.#possible = new Set([...this.#possible, ...ids]);
  }
}
