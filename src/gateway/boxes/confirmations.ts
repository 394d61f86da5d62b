import { type Result, refuse } from '../common/result.ts';

/** How many pushes of one box may be unanswered. One more replaces the oldest. */
const WAITING_PER_BOX_MAX = 16;

type Settle = (result: Result<undefined>) => void;

/** Holds the pushes that wait for their confirmation. */
export class Confirmations {
  /** Pushes by terminalCode, then by pushId, oldest first. */
  readonly #waiting = new Map<string, Map<string, Settle>>();

  /** Waits for the result that `settle` or `settleAll` receives. */
  wait(terminalCode: string, pushId: string): Promise<Result<undefined>> {
    const { promise, resolve } = Promise.withResolvers<Result<undefined>>();
    const waiting = this.#waiting.get(terminalCode) ?? new Map<string, Settle>();
    this.#waiting.set(terminalCode, waiting.set(pushId, resolve));
    const [oldest] = waiting.keys();
    if (oldest !== undefined && waiting.size > WAITING_PER_BOX_MAX) {
      this.settle(terminalCode, oldest, refuse('REPLACED', 'too many unanswered pushes to this box'));
    }
    return promise;
  }

  settle(terminalCode: string, pushId: string, result: Result<undefined>): void {
    this.#waiting.get(terminalCode)?.get(pushId)?.(result);
    this.forget(terminalCode, pushId);
  }

  /** Ends a wait without a result. */
  forget(terminalCode: string, pushId: string): void {
    const waiting = this.#waiting.get(terminalCode);
    waiting?.delete(pushId);
    if (waiting?.size === 0) this.#waiting.delete(terminalCode);
  }

  isAwaited(terminalCode: string, pushId: string): boolean {
    return this.#waiting.get(terminalCode)?.has(pushId) === true;
  }

  /** Selects the pushes of a box that do not wait for their confirmation. */
  unawaited(terminalCode: string): { terminalCode: string; except: string[] } {
    return { terminalCode, except: this.#awaited(terminalCode) };
  }

  settleAll(terminalCode: string, result: Result<undefined>): void {
    for (const pushId of this.#awaited(terminalCode)) this.settle(terminalCode, pushId, result);
  }

  settleEverything(result: Result<undefined>): void {
    for (const terminalCode of [...this.#waiting.keys()]) this.settleAll(terminalCode, result);
  }

  #awaited(terminalCode: string): string[] {
    return [...(this.#waiting.get(terminalCode)?.keys() ?? [])];
  }
}
