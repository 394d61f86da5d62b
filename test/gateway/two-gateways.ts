import { onTestFinished } from 'vitest';
import type { BoxConnection } from '../../src/gateway/boxes/connection.ts';
import { Hub } from '../../src/gateway/boxes/hub.ts';
import { SharedBoxes } from '../../src/gateway/boxes/shared-boxes.ts';
import {
  type Ask,
  type Hearing,
  type HeldSession,
  type Place,
  placeAlone,
  type Questions,
  type SessionElsewhere,
} from '../../src/gateway/common/place.ts';
import type { Edges } from '../../src/gateway/faults/edges.ts';
import type { PaymentHearers } from '../../src/gateway/money/receive-payment.ts';
import type { Boxes } from '../../src/gateway/stages/boxes.ts';
import { hearingOf } from '../../src/gateway/stages/hearing.ts';
import type { Money } from '../../src/gateway/stages/money.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { turn, VirtualClock } from '../../src/lib/virtual-clock.ts';
import type { DownMessage, DownOf, UpBody } from '../../src/protocol/messages.ts';
import { ACCOUNT, BOX1, qrFor } from './harness.ts';
import { oneShop, serviceAlone } from './service-alone.ts';
import { only, storedIn, worldOf } from './stage-records.ts';

export const CONFIRM_MS = 5_000;
/** A box that its gateway has left is on its way for this time. */
const COMING_MS = 5_000;
const NOBODY_CALLED = { wake: () => undefined };

/** What may be lost or doubled on its way from one gateway to another. */
export type Carried = 'push' | 'post' | 'heard' | 'traffic' | 'answer' | `hint ${string}`;

/**
 * The places of gateways that share a database, in memory. It is stricter than the real one: it loses and doubles what
 * it is told to, and rows of boxes are read and written one turn later.
 */
export class PlaceRoom {
  readonly rows = new Map<string, SessionElsewhere>();
  /** The boxes that their gateways have sent away, or that were those of a buried one, and when. */
  readonly left = new Map<string, number>();
  /** How often something arrives: 0 is lost, 2 is doubled. */
  arrives: (what: Carried) => number = () => 1;
  /** Everything that was said, as it left. */
  readonly said: Carried[] = [];
  readonly #clock: Clock;
  readonly #ears = new Map<string, Hearing>();
  readonly #leases = new Map<string, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  join(run: string): Place {
    // What was read is believed for ever, until somebody reads it again.
    const known = new Map<string, string | undefined>();
    const elsewhere = async (code: string) => {
      await turn();
      const row = this.rows.get(code);
      const found = row?.run === run ? undefined : row;
      known.set(code, found?.run);
      return found;
    };
    return {
      ...placeAlone(run),
      sharing: { name: run, run, application: run, generation: '' },
      begin: (hearing) => void this.#ears.set(run, hearing),
      claim: (session) => this.#claim(run, session),
      heldBy: (box, sessionId) => async () => {
        const row = this.rows.get(box);
        return row?.run === run && row.sessionId === sessionId;
      },
      release: (code, sessionId, comesBack) => {
        const row = this.rows.get(code);
        if (row?.run !== run || row.sessionId !== sessionId) return;
        this.rows.delete(code);
        if (comesBack === true) this.left.set(code, this.#clock.monotonicMs());
      },
      isComing: async (code) => {
        await turn();
        const leftMs = this.left.get(code) ?? Number.NEGATIVE_INFINITY;
        return this.rows.get(code)?.run === run || this.#clock.monotonicMs() - leftMs < COMING_MS;
      },
      elsewhere,
      holder: async (code) => known.get(code) ?? (await elsewhere(code))?.run,
      allElsewhere: async (codes) => {
        const found = await Promise.all(codes.map(elsewhere));
        return new Map(found.flatMap((it) => (it === undefined ? [] : [[it.terminalCode, it] as const])));
      },
      onlineElsewhere: async (limit) =>
        [...this.rows.values()].flatMap((it) => (it.run === run ? [] : [it.terminalCode])).slice(0, limit),
      lost: async (sessions) => {
        await turn();
        const isOwn = (code: string, sessionId: string) =>
          this.rows.get(code)?.run === run && this.rows.get(code)?.sessionId === sessionId;
        return [...sessions].flatMap(([code, it]) => (isOwn(code, it.sessionId) ? [] : [code]));
      },
      lease: async (work) => {
        if (!this.#leases.has(work)) this.#leases.set(work, run);
        return this.#leases.get(work) === run;
      },
      hint: (hint) => {
        for (const to of this.#others(run)) {
          this.#carry(`hint ${hint.about}`, () => this.#ears.get(to)?.hint(structuredClone(hint)));
        }
      },
      ask: (to, kind, question, withinMs) => this.#ask(to, kind, question, withinMs),
      others: () => this.#others(run),
    };
  }

  /** Buries a run: what it has is nobody's. */
  bury(run: string): void {
    this.#ears.delete(run);
    for (const [work, holder] of this.#leases) if (holder === run) this.#leases.delete(work);
    for (const [code, row] of this.rows) {
      if (row.run !== run) continue;
      this.rows.delete(code);
      this.left.set(code, this.#clock.monotonicMs());
    }
  }

  async #claim(run: string, session: HeldSession): Promise<{ before: string | undefined }> {
    await turn();
    const { terminalCode: box, sessionId } = session;
    const before = this.rows.get(box)?.run;
    this.rows.set(box, { ...session, run });
    await turn();
    if (before !== undefined && before !== run) {
      this.#carry('hint session', () => this.#ears.get(before)?.hint({ about: 'session', box, sessionId }));
    }
    return { before };
  }

  async #ask<K extends Ask>(to: string, kind: K, question: Questions[K]['question'], withinMs: number) {
    const answered = Promise.withResolvers<Questions[K]['answer'] | undefined>();
    void this.#clock.sleep(withinMs).then(() => answered.resolve(undefined));
    this.#carry(kind, () => {
      void this.#ears
        .get(to)
        ?.answer(kind, structuredClone(question))
        .then((answer) => this.#carry('answer', () => answered.resolve(structuredClone(answer))));
    });
    return answered.promise;
  }

  #others(run: string): string[] {
    return [...this.#ears.keys()].filter((it) => it !== run);
  }

  #carry(what: Carried, arrive: () => void): void {
    this.said.push(what);
    for (let left = this.arrives(what); left > 0; left -= 1) void turn().then(arrive);
  }
}

/** A box that can speak with several gateways. It answers as a real one does, unless it is told to be silent. */
export class TestBox {
  readonly got: DownMessage[] = [];
  /** What the screen has. */
  screen: string | undefined;
  readonly paid: string[] = [];
  confirms = true;
  /** How many of its connections a gateway has ended. */
  ended = 0;
  sessionId = '';
  #at: Hub | undefined;
  #connection: BoxConnection | undefined;

  /** Says hello at this gateway, on a connection of its own. */
  hello(at: Hub, how: { yields?: boolean } = {}, sessionId: string = systemRandom.uuid()): Promise<boolean> {
    const connection: BoxConnection = {
      transport: 'mqtt',
      send: (message) => this.#take(message, connection),
      end: () => {
        this.ended += 1;
      },
    };
    this.#at = at;
    this.#connection = connection;
    this.sessionId = sessionId;
    const { terminalCode, serialNumber } = BOX1;
    const version = { agentVersion: '', display: '', shownPushId: this.screen ?? null };
    return this.say({ type: 'hello', terminalCode, serialNumber, ...version, ...how });
  }

  say(body: UpBody): Promise<boolean> {
    if (this.#at === undefined || this.#connection === undefined) throw new Error('this box has said no hello');
    const head = { v: 1, id: systemRandom.uuid(), sentAtMs: 1, sessionId: this.sessionId } as const;
    return this.#at.receive(BOX1.terminalCode, this.#connection, { ...head, ...body });
  }

  leave(): void {
    this.#at?.disconnected(BOX1.terminalCode, { sessionId: this.sessionId }, 'it left');
  }

  of<T extends DownMessage['type']>(type: T): DownOf<T>[] {
    return this.got.filter((it): it is DownOf<T> => it.type === type);
  }

  #take(message: DownMessage, connection: BoxConnection): void {
    this.got.push(message);
    if (message.sessionId !== this.sessionId || connection !== this.#connection) return;
    void turn().then(() => this.#answer(message));
  }

  #answer(message: DownMessage): void {
    const at = this.#at;
    if (message.sessionId !== this.sessionId || at === undefined) return;
    switch (message.type) {
      case 'show':
        if (!this.confirms) return;
        this.screen = message.pushId;
        return void this.say({ type: 'shown', pushId: message.pushId });
      case 'withdraw': {
        const { pushId } = message;
        if (this.screen === pushId) this.screen = undefined;
        return void this.say({ type: 'ended', pushId, orderId: '', how: 'withdrawn' });
      }
      case 'payment': {
        const { transactionId, orderId, amount, pushId } = message;
        this.paid.push(transactionId);
        if (this.screen === pushId) this.screen = undefined;
        return void this.say({ type: 'paid', transactionId, orderId, amount, recorded: true });
      }
      case 'refused':
        if (message.code === 'SESSION_ENDED') void this.hello(at);
    }
  }
}

/** Two gateways over one store, with a clock that stands still. */
export async function twoGateways(config: Record<string, unknown> = {}) {
  const clock = new VirtualClock();
  const room = new PlaceRoom(clock);
  const shop = await oneShop({ confirm: 'displayed', confirmTimeoutMs: CONFIRM_MS, ...config }, { clock });
  const { store } = shop.stored;
  const gatewayOf = (run: string) => {
    const place = room.join(run);
    const world = worldOf({ config: shop.world.config, clock, place });
    const stored = storedIn(store, world);
    const hub = new Hub(world, stored);
    const shared = new SharedBoxes(world, stored, hub);
    const wakeHere = () => true;
    const sessionCheck = { soon: () => undefined };
    const boxes = only<Boxes>({ hub, shared, sessionCheck, signer: {}, streams: {}, here: {} });
    const money = only<Money>({ dispatcher: { wakeHere } });
    place.begin(hearingOf(world, stored, boxes, money, only<Edges>({})));
    shared.start();
    const service = serviceAlone(world, stored, hub, { hub, dispatcher: NOBODY_CALLED });
    const close = async () => {
      await shared.close();
      await hub.close();
    };
    onTestFinished(close);
    /** Ends all work of this gateway at once, as a burial does. */
    const die = () => {
      void shared.close();
      room.bury(run);
    };
    return { run, hub, shared, service, world, stored, close, die };
  };
  const [one, two] = [gatewayOf('one'), gatewayOf('two')];
  /** Lets things happen that wait for no clock; a query waits until the disk has what was written before it. */
  const turns = async (count = 40) => {
    for (let i = 0; i < count; i += 1) {
      await turn();
      await store.qrCodes.find('none');
    }
  };
  /** Lets time pass, in steps that leave the store its time. */
  const pass = async (ms: number, stepMs = 500) => {
    for (let left = ms; left > 0; left -= stepMs) {
      await clock.advance(Math.min(left, stepMs));
      await turns(12);
    }
  };
  /** The service of a gateway whose payments are reported to its hub as changed. */
  const serviceAt = ({ world, stored, hub }: typeof one, changed: Partial<PaymentHearers['hub']>) => {
    const told: PaymentHearers['hub'] = {
      session: (code) => hub.session(code),
      sendPayment: (...args) => hub.sendPayment(...args),
      resendFromStore: (codes) => hub.resendFromStore(codes),
      withdrawPush: (...args) => hub.withdrawPush(...args),
      ...changed,
    };
    return serviceAlone(world, stored, hub, { hub: told, dispatcher: NOBODY_CALLED });
  };
  const pushAt = (hub: Hub, pushId = systemRandom.uuid()) => {
    const { push, order, show } = pushOf(pushId, clock.wallMs());
    return { pushId, orderRef: order.id, result: hub.push(push, order, show) };
  };
  return { ...shop, clock, room, store, one, two, box: new TestBox(), turns, pass, pushAt, serviceAt };
}

/** A push of a new order to box 1. */
function pushOf(pushId: string, nowMs: number) {
  const { terminalCode } = BOX1;
  const [id, amount, content, qr_code] = [systemRandom.uuid(), 50_000, 'DH001', qrFor()];
  const [lifetimeMs, order_id] = [300_000, `DH${id.slice(0, 6)}`];
  const expiresAtMs = nowMs + lifetimeMs;
  return {
    push: {
      ...{ id: pushId, order_ref: id, terminal_code: terminalCode },
      ...{ created_at_ms: nowMs, expires_at_ms: expiresAtMs },
    },
    order: {
      ...{ id, partner: 'demo', order_id, bank_account: ACCOUNT.bankAccount, bank_code: 'MB', user_bank_name: '' },
      ...{ amount, content, trans_type: 'C' as const, qr_code, terminal_code: terminalCode, sub_terminal_code: '' },
      ...{ service_code: '', sign: '', url_link: '', created_at_ms: nowMs },
    },
    show: {
      ...{ type: 'show' as const, pushId, orderId: order_id, amount, content, ...ACCOUNT, qrCode: qr_code },
      ...{ expiresAtMs, expiresInMs: lifetimeMs },
    },
  };
}
