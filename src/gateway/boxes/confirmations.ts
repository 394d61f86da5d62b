import { type Result, refuse } from '../result.ts';

/** Unanswered pushes of one box. One more replaces the oldest. */
const WAITING_PER_BOX_MAX = 16;

interface Waiting {
  pushId: string;
  terminalCode: string;
  settle: (result: Result<undefined>) => void;
}

/** Pushes that wait for their confirmation. */
export class Confirmations {
  readonly #waiting = new Map<string, Waiting>();

  /** Settles with the result given to `settle` or `settleAll`. */
  wait(pushId: string, terminalCode: string): Promise<Result<undefined>> {
    const { promise, resolve } = Promise.withResolvers<Result<undefined>>();
    this.#waiting.set(pushId, { pushId, terminalCode, settle: resolve });
    const [oldest, ...others] = this.#of(terminalCode);
    if (oldest !== undefined && others.length >= WAITING_PER_BOX_MAX) {
      this.settle(oldest.pushId, refuse('REPLACED', 'too many unanswered pushes to this box'));
    }
    return promise;
  }

  settle(pushId: string, result: Result<undefined>): void {
    this.#waiting.get(pushId)?.settle(result);
    this.#waiting.delete(pushId);
  }

  /** Ends a wait without a result. */
  forget(pushId: string): void {
    this.#waiting.delete(pushId);
  }

  /** Ids of the pushes of a box that wait for their confirmation. */
  awaited(terminalCode: string): string[] {
    return this.#of(terminalCode).map(({ pushId }) => pushId);
  }

  /** Settles every push of a box, or of all boxes. */
  settleAll(terminalCode: string | undefined, result: Result<undefined>): void {
    for (const { pushId } of this.#of(terminalCode)) this.settle(pushId, result);
  }

  #of(terminalCode: string | undefined): Waiting[] {
    return [...this.#waiting.values()].filter((it) => terminalCode === undefined || it.terminalCode === terminalCode);
  }
}
