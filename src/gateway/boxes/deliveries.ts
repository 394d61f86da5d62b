import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Notice } from '../store/repositories/payments.ts';
import type { Pushes } from './pushes.ts';
import type { Session } from './session.ts';

/** At most this many boxes are named in one hint. */
const NAMED_MAX = 100;

/** Sends boxes their payments and withdrawals, new ones and those that the store still has for them. */
export class Deliveries {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #sessions: ReadonlyMap<string, Session>;
  readonly #pushes: Pushes;

  constructor(world: World, stored: Stored, sessions: ReadonlyMap<string, Session>, pushes: Pushes) {
    this.#world = world;
    this.#stored = stored;
    this.#sessions = sessions;
    this.#pushes = pushes;
  }

  /** Sends a payment to a box. A busy box receives it later, and a disconnected one after its next welcome. */
  sendPayment(terminalCode: string, payment: Notice): void {
    const session = this.#sessions.get(terminalCode);
    if (session === undefined) this.#hint([terminalCode]);
    else if (session.isBusy) session.needResend();
    else session.sendPayment(payment);
  }

  /** Makes the next resend to these boxes read the store. Other gateways read it at once for the boxes that they have. */
  resendFromStore(terminalCodes: readonly string[]): void {
    for (const code of terminalCodes) this.#sessions.get(code)?.needResend();
    this.#hint(terminalCodes.filter((it) => !this.#sessions.has(it)));
  }

  /** Sends a box everything unanswered from the store (PROTOCOL.md, clauses MSG-7 and MSG-9). */
  async resend(session: Session, terminalCode: string): Promise<void> {
    const { clock, config } = this.#world;
    const { store } = this.#stored;
    session.beginResend();
    await store.orders.failUnfinished(clock.wallMs(), config.confirm, this.#pushes.unawaited(terminalCode));
    for (const { id, why } of await store.orders.toWithdraw(terminalCode)) session.withdraw(id, why);
    const { notices, more } = await store.payments.takeUnreported(terminalCode, clock.wallMs(), session.isNews);
    for (const payment of notices) session.sendPayment(payment);
    session.endResend(more);
  }

  /** Sends a box what the store has for it and was not sent in this session. */
  async sendRest(session: Session, terminalCode: string): Promise<void> {
    if (session.isBusy) return session.needResend();
    const { orders, payments } = this.#stored.store;
    for (const { id, why } of await orders.toWithdraw(terminalCode)) {
      if (!session.isUnanswered(id)) session.withdraw(id, why);
    }
    const nowMs = this.#world.clock.wallMs();
    const { notices, more } = await payments.takeUnreported(terminalCode, nowMs, session.isNews);
    for (const payment of notices) if (!session.isUnanswered(payment.id)) session.sendPayment(payment);
    if (more) session.needResend();
  }

  #hint(terminalCodes: readonly string[]): void {
    for (let at = 0; at < terminalCodes.length; at += NAMED_MAX) {
      this.#world.place.hint({ about: 'notices', boxes: terminalCodes.slice(at, at + NAMED_MAX) });
    }
  }
}
