import {
  type DownMessage,
  type DownOf,
  MESSAGE_VERSION,
  type UpBody,
  type UpMessage,
} from '../../../protocol/messages.ts';
import type { KnownBox } from '../../common/directory.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';
import type { BoxQueues } from '../box-queues.ts';
import type { BoxConnection, Connect } from '../connection.ts';
import type { BoxHub } from '../wire.ts';
import { Announcements, type Said } from './announcements.ts';
import { NoticeSender, type Publish } from './notice-sender.ts';
import { greeting, qrNotice } from './notices.ts';
import { beginAgain, greetingWaitsMs } from './waits.ts';

/** How many withdrawn pushes are remembered. Such a push is not shown, even if it arrives later (clause AGT-4). */
const WITHDRAWN_MAX = 100;

/** The parts that all boxes of the dialect share. */
export interface DialectWire extends Said {
  hub: BoxHub;
  /** Puts the edge of the gateway around connections. */
  wrapConnect: (connect: Connect) => Connect;
  queues: BoxQueues;
  publish: Publish;
  /** Returns whether `publish` can report that nobody listens. */
  tellsListeners: () => boolean;
}

/** A QR that was sent to the box, with the monotonic time of its end. */
interface Shown {
  pushId: string;
  orderId: string;
  amount: number;
  qrCode: string;
  endsAtMs: number;
  over: AbortController;
}

/**
 * Represents a box of the public dialect as one of the hub's own. It translates the hub's messages, and reports what
 * such a box cannot report itself: `shown` means that the QR was sent to a connected box, `paid` that the notice was
 * sent (PROTOCOL.md, clauses VQD-5 and VQD-6).
 */
export class DialectBox {
  readonly terminalCode: string;
  readonly #box: KnownBox;
  readonly #world: World;
  readonly #stored: Stored;
  readonly #wire: DialectWire;
  readonly #connection: BoxConnection;
  readonly #notices: NoticeSender;
  readonly #withdrawn = new Set<string>();
  readonly #announcements: Announcements;
  #greeting = new AbortController();
  #returning = new AbortController();
  #session: { id: string; beganMs: number } | undefined;
  #shown: Shown | undefined;
  #isRestored = false;

  constructor(box: KnownBox, topic: string, world: World, stored: Stored, wire: DialectWire) {
    this.terminalCode = box.terminalCode;
    this.#box = box;
    this.#world = world;
    this.#stored = stored;
    this.#wire = wire;
    this.#announcements = new Announcements(box, world, stored, wire);
    this.#notices = new NoticeSender(this.terminalCode, topic, world, wire.publish);
    const { transport } = this.#notices.socket;
    const own: BoxConnection = { transport, end: () => this.#endedByHub(), send: (message) => this.#take(message) };
    const connect: Connect = (_terminalCode, socket) => {
      this.#notices.useSocket(socket);
      return own;
    };
    this.#connection = wire.wrapConnect(connect)(this.terminalCode, this.#notices.socket);
  }

  /** Greets a box that has enrolled, and repeats the greeting until the box listens. */
  async meet(): Promise<void> {
    const { hub, tellsListeners, queues } = this.#wire;
    const { clock, log } = this.#world;
    this.#greeting.abort();
    this.#greeting = new AbortController();
    const { signal } = this.#greeting;
    if (!queues.isFull(this.terminalCode)) {
      await queues.run(this.terminalCode, 'enrol', async () => void (await hub.news.meet(this.#box)));
    }
    for (const waitMs of greetingWaitsMs(tellsListeners())) {
      await clock.sleep(waitMs, signal);
      if (signal.aborted || (await this.#greet())) return;
    }
    const reason =
      'it has enrolled but does not listen on its topic; such firmware hears nothing until it is restarted';
    log.warn('box-not-answering', { box: this.terminalCode, reason });
  }

  /** Greets a box that listens, as far as the broker reports it. */
  async greet(): Promise<void> {
    this.#greeting.abort();
    await this.#greet();
  }

  lose(why: string): void {
    this.#returning.abort();
    if (this.#session === undefined) return;
    this.#session = undefined;
    this.#wire.hub.disconnected(this.terminalCode, { connection: this.#connection }, why);
  }

  close(): void {
    this.#greeting.abort();
    this.#returning.abort();
    this.#shown?.over.abort();
  }

  /** Begins a session again. The box is still there, and loses its QR in time. */
  #endedByHub(): void {
    const before = this.#session;
    if (before === undefined) return;
    this.#returning.abort();
    this.#returning = new AbortController();
    const begin = async () => {
      await this.#wire.queues.run(this.terminalCode, 'begin', async () => {
        this.#session = undefined;
        await this.#begin();
        this.#session ??= before;
      });
      return this.#session !== before;
    };
    void beginAgain(this.#box, begin, this.#world, this.#stored, this.#returning.signal);
  }

  async #greet(): Promise<boolean> {
    const { directory } = this.#stored;
    const { queues } = this.#wire;
    // Anybody with the shared login can enrol as fast as he likes, so a full queue drops the request.
    if (queues.isFull(this.terminalCode)) return false;
    await queues.run(this.terminalCode, 'greet', async () => {
      const hasStale = await this.#restore();
      if (hasStale) {
        const ended = await this.#notices.send({ notificationType: 'N12', transactionReceiveId: '' });
        this.#isRestored = ended !== 'nobody';
      }
      const outcome = await this.#notices.send(greeting(this.terminalCode, await directory.accountOf(this.#box)));
      if (outcome === 'taken') await this.#begin();
      else this.lose('nobody listens on its topic');
    });
    return this.#session !== undefined;
  }

  /** Restores the QR that an earlier run sent. Returns whether the box may show one that it must not. */
  async #restore(): Promise<boolean> {
    if (this.#isRestored) return false;
    const { store } = this.#stored;
    const { clock } = this.#world;
    const open = await store.pushes.newestShown(this.terminalCode);
    this.#isRestored = true;
    // The box may still show the QR of an order that was paid or ended meanwhile.
    if (open === undefined) return store.pushes.hasPushSince(this.terminalCode, clock.wallMs());
    const { id: pushId, order_id: orderId, amount, qr_code: qrCode, bank_account, expires_at_ms } = open;
    if (bank_account !== this.#box.account) return true;
    const endsAtMs = clock.monotonicMs() + expires_at_ms - clock.wallMs();
    this.#keep({ pushId, orderId, amount, qrCode, endsAtMs });
    return false;
  }

  /** Registers a new session of the box at the hub, and shows its QR again, which the greeting may have replaced. */
  async #begin(): Promise<void> {
    const { clock, random } = this.#world;
    const { hub } = this.#wire;
    if (this.#session === undefined) {
      const id = random.uuid();
      this.#session = { id, beganMs: clock.monotonicMs() };
      const { terminalCode, serialNumber } = this.#box;
      const shownPushId = this.#shown?.pushId ?? null;
      const names = { terminalCode, serialNumber, agentVersion: '', display: '', shownPushId };
      await this.#report({ type: 'hello', ...names });
      if (hub.session(terminalCode)?.sessionId !== id) {
        this.#session = undefined;
        return;
      }
    }
    const shown = this.#shown;
    if (shown === undefined) return;
    if (await this.#isPaid(shown.pushId)) await this.#takeAway(shown.pushId);
    else if (shown.endsAtMs <= clock.monotonicMs()) await this.#expire(shown);
    else if ((await this.#notices.send(qrNotice(shown))) !== 'taken') this.lose('nobody took its QR');
  }

  /** Returns whether the order of a push was paid while the box was away, because nobody should pay it again. */
  async #isPaid(pushId: string): Promise<boolean> {
    const { orders } = this.#stored.store;
    const order = await orders.find((await orders.idByPush(pushId)) ?? '');
    return order?.status === 'paid';
  }

  #take(message: DownMessage): void {
    const { type } = message;
    if (type !== 'show' && type !== 'withdraw' && type !== 'payment') return;
    void this.#wire.queues.run(this.terminalCode, type, async () => {
      // The hub repeats to the next session every message that is still valid.
      if (this.#session?.id !== message.sessionId) return;
      if (type === 'show') await this.#show(message);
      else if (type === 'withdraw') await this.#withdraw(message);
      else await this.#announce(message);
    });
  }

  async #show({ pushId, orderId, amount, qrCode, expiresInMs, sessionMs }: DownOf<'show'>): Promise<void> {
    const endsAtMs = (this.#session?.beganMs ?? 0) + sessionMs + expiresInMs;
    if (this.#withdrawn.has(pushId) || endsAtMs <= this.#world.clock.monotonicMs()) {
      await this.#report({ type: 'ended', pushId, orderId, how: 'withdrawn' });
      return;
    }
    const replaced = this.#shown;
    if ((await this.#notices.send(qrNotice({ amount, qrCode }))) !== 'taken') {
      this.lose('nobody took its QR');
      return;
    }
    this.#keep({ pushId, orderId, amount, qrCode, endsAtMs });
    if (replaced?.pushId === pushId) return;
    await this.#report({ type: 'shown', pushId });
    if (replaced === undefined) return;
    await this.#report({ type: 'ended', pushId: replaced.pushId, orderId: replaced.orderId, how: 'replaced' });
  }

  /** Withdraws a push. N12 names no QR that a box could compare, so it is not sent if another QR is on the screen. */
  async #withdraw({ pushId }: DownOf<'withdraw'>): Promise<void> {
    this.#withdrawn.add(pushId);
    const [oldest] = this.#withdrawn;
    if (this.#withdrawn.size > WITHDRAWN_MAX && oldest !== undefined) this.#withdrawn.delete(oldest);
    if (this.#shown === undefined || this.#shown.pushId === pushId) {
      if (!(await this.#takeAway(pushId))) return;
    }
    await this.#report({ type: 'ended', pushId, orderId: '', how: 'withdrawn' });
  }

  async #expire({ pushId, orderId }: Shown): Promise<void> {
    if (this.#session === undefined || this.#shown?.pushId !== pushId) return;
    if (await this.#takeAway(pushId)) await this.#report({ type: 'ended', pushId, orderId, how: 'expired' });
  }

  /** Removes the QR from the screen. Returns whether the box received the notice. */
  async #takeAway(pushId: string): Promise<boolean> {
    const isTaken = (await this.#notices.send({ notificationType: 'N12', transactionReceiveId: pushId })) === 'taken';
    if (isTaken) this.#forget();
    else this.lose('nobody took the end of its QR');
    return isTaken;
  }

  /** Sends the notice of a payment at most once (clause VQD-6). */
  async #announce(payment: DownOf<'payment'>): Promise<void> {
    const { log, changes } = this.#world;
    const { transactionId, pushId, orderId, amount } = payment;
    const notice = await this.#announcements.take(payment);
    if (notice !== undefined) {
      const outcome = await this.#notices.send(notice);
      if (outcome !== 'taken') {
        if (outcome === 'nobody') await this.#announcements.putBack(transactionId);
        this.lose('nobody took the notice of a payment');
        return;
      }
      await this.#announcements.sent(transactionId);
      log.info('notice-sent', { box: this.terminalCode, transactionId });
    }
    if (this.#shown?.pushId === pushId) this.#forget();
    await this.#report({ type: 'paid', transactionId, orderId, amount, recorded: false });
    changes.publish('payments');
  }

  #keep(shown: Omit<Shown, 'over'>): void {
    const { clock } = this.#world;
    const { queues } = this.#wire;
    this.#forget();
    const kept = { ...shown, over: new AbortController() };
    this.#shown = kept;
    const { signal } = kept.over;
    void clock.sleep(Math.max(0, shown.endsAtMs - clock.monotonicMs()), signal).then(async () => {
      if (!signal.aborted) await queues.run(this.terminalCode, 'expire', () => this.#expire(kept));
    });
  }

  #forget(): void {
    this.#shown?.over.abort();
    this.#shown = undefined;
  }

  async #report(body: UpBody): Promise<void> {
    const { hub } = this.#wire;
    const { random, clock } = this.#world;
    if (this.#session === undefined) return;
    const { id: sessionId } = this.#session;
    const head = { v: MESSAGE_VERSION, id: random.uuid(), sentAtMs: clock.wallMs(), sessionId } as const;
    await hub.receive(this.terminalCode, this.#connection, { ...head, ...body } satisfies UpMessage);
  }
}
