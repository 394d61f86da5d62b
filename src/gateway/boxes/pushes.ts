import { withDeadline } from '../../lib/clock.ts';
import type { Code } from '../../protocol/codes.ts';
import type { ShowBody } from '../../protocol/messages.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { NewOrder, NewPush } from '../store/schema/tables.ts';
import type { Confirmations } from './confirmations.ts';
import type { Session } from './session.ts';

/** Pushes orders to boxes, and withdraws them. */
export class Pushes {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #sessions: ReadonlyMap<string, Session>;
  readonly #confirmations: Confirmations;

  constructor(world: World, stored: Stored, sessions: ReadonlyMap<string, Session>, confirmations: Confirmations) {
    this.#world = world;
    this.#stored = stored;
    this.#sessions = sessions;
    this.#confirmations = confirmations;
  }

  /**
   * Stores a push, sends it to its box and waits for the confirmation (PROTOCOL.md, clauses SND-3 to SND-6). The
   * confirmation is a report, which the hub passes to `Confirmations.settle`.
   */
  async push(push: NewPush, newOrder: NewOrder | undefined, show: ShowBody): Promise<Result<undefined>> {
    const { clock, changes } = this.#world;
    const { confirm, confirmTimeoutMs } = this.#world.config;
    const { orders } = this.#stored.store;
    const { id, terminal_code: terminalCode } = push;
    const session = this.#sessions.get(terminalCode);
    if (session === undefined) return refuse('BOX_OFFLINE', 'the box is not connected');
    const asked = { ...show, sessionMs: session.ageMs(), ...(confirm === 'displayed' && { confirm }) };
    const confirmed = this.#confirmations.wait(terminalCode, id);
    try {
      await orders.startPush(push, newOrder).catch((error: unknown) => {
        // The store may have saved the push anyway. The next resend ends it.
        session.needResend();
        throw error;
      });
      changes.publish('orders');
      if (this.#sessions.get(terminalCode) === session) session.send(asked);
      else this.#confirmations.settle(terminalCode, id, refuse('BOX_OFFLINE', 'the connection to the box was lost'));
      const answer = () => withDeadline(clock, confirmTimeoutMs, confirmed);
      const first = await answer();
      if (first?.ok === true) return first;
      const result = first ?? refuse('BOX_TIMEOUT', `no confirmation within ${confirmTimeoutMs} ms`);
      if (await this.#fail(push, result.code)) return result;
      if (await orders.isConfirmed(id, confirm)) return accept(undefined);
      return first ?? (await answer()) ?? result;
    } finally {
      this.#confirmations.forget(terminalCode, id);
      changes.publish('orders');
    }
  }

  /** Withdraws a push from its box. A box that is not connected receives this after its next welcome. */
  withdraw(terminalCode: string, pushId: string, why: 'cancelled' | 'paid'): void {
    this.#confirmations.settle(terminalCode, pushId, refuse('WITHDRAWN', `the order was ${why}`));
    this.#sessions.get(terminalCode)?.withdraw(pushId, why);
  }

  /** Marks a push as failed. Returns whether it was unfinished. If the store fails, the next resend marks it. */
  async #fail({ id, terminal_code: terminalCode }: NewPush, code: Code): Promise<boolean> {
    try {
      const nowMs = this.#world.clock.wallMs();
      const failed = await this.#stored.store.orders.failPush(id, terminalCode, code, nowMs, false);
      if (failed) this.#sessions.get(terminalCode)?.withdraw(id, 'timeout');
      return failed;
    } catch (error) {
      this.#sessions.get(terminalCode)?.withdraw(id, 'timeout');
      this.#sessions.get(terminalCode)?.needResend();
      throw error;
    }
  }
}
