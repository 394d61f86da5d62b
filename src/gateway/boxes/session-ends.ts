import { CODES } from '../../protocol/codes.ts';
import { refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { BoxQueues } from './box-queues.ts';
import { BROKER_TRANSPORT } from './broker-client.ts';
import type { Confirmations } from './confirmations.ts';
import type { BoxConnection } from './connection.ts';
import type { PaymentNews } from './news.ts';
import type { LostBy, Session, StaleSessions } from './session.ts';

/** The parts of the hub that an end of a session changes. */
interface Held {
  sessions: Map<string, Session>;
  queues: BoxQueues;
  confirmations: Confirmations;
  staleSessions: StaleSessions;
  news: PaymentNews;
}

/** The end of a session. Pushes that wait are refused for `reason`, which is `why` by default. */
interface Ending {
  why: string;
  reason?: string;
  /** True if the connection ends, too. */
  closes?: boolean;
  /** True if the box is there, and says hello again soon. */
  comesBack?: boolean;
}

/** Ends sessions of boxes, each in the queue of its box. */
export class SessionEnds {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #held: Held;

  constructor(world: World, stored: Stored, held: Held) {
    this.#world = world;
    this.#stored = stored;
    this.#held = held;
  }

  /** Ends the session of a box if it has this id or connection (PROTOCOL.md, clause PRE-3). */
  disconnected(terminalCode: string, by: { sessionId: string } | { connection: BoxConnection }, why: string): void {
    void this.#end(terminalCode, 'lost', (session) => {
      if ('connection' in by ? session.connection !== by.connection : session.sessionId !== by.sessionId) return;
      this.#world.log.info('box-disconnected', { box: terminalCode, why });
      return { why, reason: `the connection to the box was lost: ${why}` };
    });
  }

  /** Refuses and ends the session of a box that lost its right to one. Settles with whether the box had a session. */
  expel(terminalCode: string, reason: string, disabled = false): Promise<boolean> {
    return this.#end(terminalCode, 'expel', (session) => {
      session.send({ type: 'refused', code: 'NOT_REGISTERED', reason, disabled });
      this.#world.log.warn('box-expelled', { box: terminalCode, code: 'NOT_REGISTERED', reason });
      return { why: reason, closes: true };
    });
  }

  /** Makes a box say hello again and so receive its account. It shows its QR until the welcome (clause MSG-12). */
  async renew(terminalCode: string, reason: string): Promise<void> {
    await this.#end(terminalCode, 'renew', (session) => {
      this.#held.staleSessions.refuse(session, 'SESSION_ENDED');
      return { why: reason, comesBack: true };
    });
  }

  /**
   * Ends the sessions of boxes that then find another gateway. A box over MQTT goes when another gateway has buried this
   * one and opens a door in its lane. Until then this gateway still has it.
   */
  sendAway(why: string): void {
    for (const [terminalCode, session] of this.#held.sessions) {
      if (session.connection.transport === BROKER_TRANSPORT) continue;
      void this.#end(terminalCode, 'away', (it) =>
        it === session ? { why, closes: true, comesBack: true } : undefined,
      );
    }
  }

  /**
   * Sends the box of this connection to another lane (PROTOCOL.md, clause SHA-2), unless a push is open on it. A gateway
   * that ends keeps only boxes that are to confirm a push. Settles with whether the box goes.
   */
  move(terminalCode: string, to: { connection: BoxConnection; lane: number }): Promise<boolean> {
    return this.#end(terminalCode, 'move', async (session) => {
      if (session.connection !== to.connection) return;
      const { isLeaving } = this.#world.place.lanes;
      if (!isLeaving && (await this.#stored.store.orders.openPushIds(terminalCode)).length > 0) return;
      // A push may have begun meanwhile, whose row was not there yet.
      if (this.#held.confirmations.unawaited(terminalCode).except.length > 0) return;
      session.send({ type: 'refused', code: 'MOVED', reason: CODES.MOVED, shard: to.lane });
      return { why: CODES.MOVED, comesBack: true };
    });
  }

  /**
   * Ends the session of a box that this gateway does not have any more, if `refusalOf` returns how its agent is refused
   * (PROTOCOL.md, clauses MSG-8 and MSG-12).
   */
  async lost(terminalCode: string, refusalOf: (session: Session) => Promise<LostBy | undefined>): Promise<void> {
    await this.#end(terminalCode, 'lost', async (session) => {
      const code = await refusalOf(session);
      if (code === undefined) return;
      this.#world.log.warn('box-lost', { box: terminalCode, code });
      this.#held.staleSessions.lost(terminalCode, session, code);
      return { why: 'this gateway does not have the box any more', closes: code === 'SUPERSEDED' };
    });
  }

  /** Ends the session of a box if `decide` returns how. Settles with whether it has ended. */
  async #end(
    terminalCode: string,
    what: string,
    decide: (session: Session) => Ending | undefined | Promise<Ending | undefined>,
  ): Promise<boolean> {
    let hasEnded = false;
    await this.#held.queues.run(terminalCode, what, async () => {
      const session = this.#held.sessions.get(terminalCode);
      const ending = session && (await decide(session));
      if (session === undefined || ending === undefined) return;
      const { why, reason = why, closes = false, comesBack = false } = ending;
      hasEnded = true;
      this.#held.sessions.delete(terminalCode);
      session.end();
      this.#world.place.release(terminalCode, session.sessionId, comesBack);
      this.#held.news.lost(terminalCode);
      this.#world.trafficLog.box(terminalCode, false, why);
      this.#held.confirmations.settleAll(terminalCode, refuse('BOX_OFFLINE', reason));
      this.#world.changes.publish('boxes');
      if (closes) session.connection.end();
    });
    return hasEnded;
  }
}
