import type { Code } from '../../protocol/codes.ts';

/** A box may have this many unanswered pushes; one more takes the place of the oldest. */
const WAITING_PER_BOX_MAX = 16;

export type PushResult = { ok: true } | { ok: false; code: Code; reason: string };

interface Waiting {
  pushId: string;
  terminalCode: string;
  settle: (result: PushResult) => void;
}

/** Pushes whose confirmation is awaited. */
export class Confirmations {
  readonly #waiting = new Map<string, Waiting>();

  /** Settles with what `settle` or `settleAll` says of this push. */
  wait(pushId: string, terminalCode: string): Promise<PushResult> {
    const { promise, resolve } = Promise.withResolvers<PushResult>();
    this.#waiting.set(pushId, { pushId, terminalCode, settle: resolve });
    const [oldest, ...others] = this.#of(terminalCode);
    if (oldest !== undefined && others.length >= WAITING_PER_BOX_MAX) {
      this.settle(oldest.pushId, { ok: false, code: 'REPLACED', reason: 'too many unanswered pushes to this box' });
    }
    return promise;
  }

  settle(pushId: string, result: PushResult): void {
    this.#waiting.get(pushId)?.settle(result);
    this.#waiting.delete(pushId);
  }

  /** Ends a wait that nobody waits for any more. */
  forget(pushId: string): void {
    this.#waiting.delete(pushId);
  }

  /** The pushes of a box whose confirmation is awaited. */
  awaited(terminalCode: string): string[] {
    return this.#of(terminalCode).map(({ pushId }) => pushId);
  }

  /** Settles every push of a box, or of all boxes. */
  settleAll(terminalCode: string | undefined, result: PushResult): void {
    for (const { pushId } of this.#of(terminalCode)) this.settle(pushId, result);
  }

  #of(terminalCode: string | undefined): Waiting[] {
    return [...this.#waiting.values()].filter((it) => terminalCode === undefined || it.terminalCode === terminalCode);
  }
}
