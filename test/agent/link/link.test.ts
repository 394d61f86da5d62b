import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Connection, TransportIo } from '../../../src/device/agent/contract.ts';
import { configuredSecret } from '../../../src/device/agent/enrolment/secret.ts';
import { Link } from '../../../src/device/agent/link/link.ts';
import type { BoxEvent } from '../../../src/device/box/state.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { PayboxError } from '../../../src/lib/errors.ts';
import { BoundedQueue } from '../../../src/lib/queue.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { signingKeyOf } from '../../../src/protocol/keys.ts';
import {
  type DownBody,
  type DownMessage,
  downMessage,
  type UpMessage,
  upMessage,
} from '../../../src/protocol/messages.ts';
import { LINK, paymentOf, pushOf, uuid } from '../../box/samples.ts';
import { quietLog } from '../../support/kept-log.ts';
import { eventually } from '../../support/net.ts';

/** The gateway's end of one session. It checks every message that the box sends and refuses to be used after its end. */
class Far implements Connection {
  readonly incoming = new BoundedQueue<DownMessage>(100, 'reject');
  readonly sent: UpMessage[] = [];
  closed = false;
  failing = false;
  isDeaf = false;
  /** Takes the answers to signs of life; the gateway does not hear the box without. */
  heard: TransportIo['heard'] | undefined;
  /** The interval that it asks for in its answers. */
  aliveMs: number | undefined;
  /** Times of the monotonic clock at which it was heard. */
  readonly aliveAtMs: number[] = [];
  lane: number | undefined;
  noLane: TransportIo['noLane'] | undefined;
  clock: Clock = systemClock;

  async send(message: UpMessage): Promise<void> {
    if (this.closed) throw new Error('sent on a closed session');
    if (this.failing) throw new Error('cable out');
    if (message.type === 'alive') {
      this.aliveAtMs.push(this.clock.monotonicMs());
      this.heard?.(message.id, this.aliveMs);
    } else this.sent.push(upMessage.parse(message));
  }

  async close(): Promise<void> {
    this.closed = true;
    this.incoming.close();
  }

  say(body: DownBody, sessionId = this.hello()?.sessionId): void {
    const head = { v: 1, id: systemRandom.uuid(), sentAtMs: systemClock.wallMs() };
    this.incoming.offer(downMessage.parse({ ...head, ...body, sessionId }));
  }

  hello(): Extract<UpMessage, { type: 'hello' }> | undefined {
    return this.sent.find((message) => message.type === 'hello');
  }

  async welcome(): Promise<void> {
    await eventually('hello', () => this.hello());
    this.say({ type: 'welcome', link: LINK, openPushIds: [uuid(1)] });
  }
}

function linkOf(
  open: (attempt: number) => Promise<Connection>,
  {
    clock = systemClock as Clock,
    shownPushId = (): string | null => uuid(7),
    secret = configuredSecret('Sample-box-secret-known-to-all'),
  } = {},
) {
  const events: BoxEvent[] = [];
  let attempts = 0;
  const link = new Link({
    clock,
    random: systemRandom,
    log: quietLog(),
    identity: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' },
    secret,
    key: signingKeyOf(systemRandom.secret(32)),
    agentVersion: '0.0.0',
    display: 'browser',
    open: async ({ heard, lane, clock, noLane }) => {
      const session = await open(attempts++);
      if (session instanceof Far) Object.assign(session, { lane, clock, noLane });
      if (session instanceof Far && !session.isDeaf) session.heard = heard;
      return session;
    },
    checkQr: (qrCode) =>
      qrCode.length > 400 ? { ok: false, code: 'QR_TOO_DENSE', reason: 'too dense' } : { ok: true },
    shownPushId,
    emit: (event) => void events.push(event),
  });
  onTestFinished(() => link.close());
  link.start();
  return { link, events, types: () => events.map((event) => event.type), attempts: () => attempts };
}

describe('the link', () => {
  it('MSG-11 the link ends a session without answers to its heartbeats within 20 s, and says hello anew', async () => {
    const clock = new VirtualClock();
    const sessions: Far[] = [];
    const open = async () => {
      const far = new Far();
      far.isDeaf = sessions.length === 0;
      sessions.push(far);
      return far;
    };
    const { link, types } = linkOf(open, { clock });
    await eventually('a session', () => sessions.length === 1);
    await sessions[0]?.welcome();
    await eventually('registered', () => types().includes('registered'));
    await clock.advance(19_999);
    expect([sessions[0]?.closed, link.status().connectedAtMs]).toEqual([false, expect.any(Number)]);
    await clock.advance(1);
    await eventually('its end', () => sessions[0]?.closed);
    await eventually('the reason', () => link.status().reason?.includes('heartbeat'));
    await clock.advance(250);
    await eventually('another session', () => sessions.length === 2);
    await sessions[1]?.welcome();
    await eventually('registered again', () => types().filter((it) => it === 'registered').length === 2);
    expect(types()).toEqual(['connecting', 'registered', 'connecting', 'registered']);
    await clock.advance(120_000);
    expect(sessions[1]?.closed).toBe(false);
  });

  it('MSG-12 the link says hello anew when the gateway reports that its session is over, and no person has to see it', async () => {
    const sessions: Far[] = [];
    const { types } = linkOf(async () => {
      const far = new Far();
      sessions.push(far);
      return far;
    });
    await eventually('a session', () => sessions.length === 1);
    await sessions[0]?.welcome();
    await eventually('registered', () => types().includes('registered'));
    sessions[0]?.say({ type: 'refused', code: 'SESSION_ENDED', reason: '' });
    await eventually('another session', () => sessions.length === 2);
    await sessions[1]?.welcome();
    await eventually('registered again', () => types().filter((it) => it === 'registered').length === 2);
    expect(types()).toEqual(['connecting', 'registered', 'connecting', 'registered']);
  });

  it('MSG-11 the link sends heartbeats in the interval that the gateway sent last', async () => {
    const [far, clock] = [new Far(), new VirtualClock()];
    const { types } = linkOf(async () => far, { clock });
    await eventually('hello', () => far.hello());
    far.say({ type: 'welcome', link: LINK, openPushIds: [], aliveMs: 60_000 });
    await eventually('registered', () => types().includes('registered'));
    const begunMs = clock.monotonicMs();
    far.aliveMs = 25_000;
    await clock.advance(60_000);
    far.aliveMs = undefined;
    await clock.advance(25_000 + 4_999);
    far.aliveMs = 60_000;
    await clock.advance(5_001 + 60_000);
    expect(far.aliveAtMs.map((atMs) => atMs - begunMs)).toEqual([60_000, 85_000, 95_000, 155_000]);
    far.isDeaf = true;
    far.heard = undefined;
    await clock.advance(60_000);
    expect(far.closed).toBe(false);
    await clock.advance(60_000);
    await eventually('its end', () => far.closed);
  });

  it('SHA-2 SHA-3 the link moves to the lane that it is sent to, stays there, and says hello in lane 0 when that lane is no more', async () => {
    const clock = new VirtualClock();
    const sessions: Far[] = [];
    const { types } = linkOf(
      async () => {
        const far = new Far();
        sessions.push(far);
        return far;
      },
      { clock },
    );
    const next = () => {
      const { length } = sessions;
      return eventually('another session', async () => {
        await clock.advance(250);
        return sessions.length > length;
      });
    };
    const first = await eventually('a hello', () => sessions[0]?.hello() && sessions[0]);
    first.say({ type: 'refused', code: 'MOVED', reason: '', shard: 5 });
    await eventually('at once', () => sessions[1]?.hello());
    await sessions[1]?.welcome();
    await eventually('registered', () => types().includes('registered'));
    await sessions[1]?.close();
    for (let count = 0; count < 3; count += 1) await next();
    expect(sessions.at(-1)?.noLane?.()).toBe(true);
    await next();
    expect(sessions.map((it) => it.lane)).toEqual([0, 5, 5, 5, 5, 0]);
    expect(new Set(sessions.map((it) => it.hello()?.sessionId)).size).toBe(6);
    sessions[5]?.say({ type: 'refused', code: 'MOVED', reason: '', shard: 5 });
    await eventually('back again', () => sessions[6]?.hello());
    // What the broker says of lane 0 is over: it has sent the box back.
    expect(sessions[6]?.noLane?.()).toBe(false);
    await sessions[6]?.welcome();
    await eventually('registered', () => types().filter((it) => it === 'registered').length === 2);
    expect(sessions[6]?.noLane?.()).toBe(true);
    expect(types()).not.toContain('refused');
  });

  it('PRE-6 the link spreads the hellos of boxes that come back', async () => {
    const clock = new VirtualClock();
    const sessions: Far[] = [];
    linkOf(
      async () => {
        const far = Object.assign(new Far(), { spreadMs: 4_000 });
        sessions.push(far);
        return far;
      },
      { clock },
    );
    const waits: number[] = [];
    const soon = async <T>(found: () => T | undefined): Promise<T> => {
      for (let steps = 0; steps < 1_000; steps += 1) {
        const it = found();
        if (it !== undefined) return it;
        await clock.advance(10);
        await setImmediate();
      }
      throw new Error('not within 10 s');
    };
    const hello = async (index: number) => {
      const far = await soon(() => sessions[index]);
      const openedMs = clock.monotonicMs();
      await soon(() => far.hello());
      waits.push(clock.monotonicMs() - openedMs);
      return far;
    };
    const first = await hello(0);
    await first.welcome();
    for (let index = 1; index <= 12; index += 1) {
      await sessions[index - 1]?.close();
      await (await hello(index)).welcome();
    }
    sessions[12]?.say({ type: 'refused', code: 'MOVED', reason: '', shard: 5 });
    await hello(13);
    expect([waits[0], waits[13]]).toEqual([0, 0]);
    const spread = waits.slice(1, 13);
    expect(Math.max(...spread)).toBeGreaterThan(1_000);
    expect(Math.max(...spread)).toBeLessThanOrEqual(4_000);
    expect(new Set(spread).size).toBeGreaterThan(6);
  });

  it('SHA-2 the link follows three moves in a row, and waits before the next one as before a redial', async () => {
    const clock = new VirtualClock();
    const sessions: Far[] = [];
    linkOf(
      async () => {
        const far = new Far();
        sessions.push(far);
        return far;
      },
      { clock },
    );
    const answered = async (index: number) => {
      const far = await eventually(`hello ${index}`, () => sessions[index]?.hello() && sessions[index]);
      far.say({ type: 'refused', code: 'MOVED', reason: '', shard: (index + 1) % 2 });
      await eventually('its end', () => far.closed);
    };
    for (let index = 0; index < 4; index += 1) await answered(index);
    for (let turn = 0; turn < 50; turn += 1) await clock.advance(0);
    expect(sessions.length).toBe(4);
    await clock.advance(50);
    for (let index = 4, waitMs = 100; index < 12; index += 1, waitMs *= 2) {
      await answered(index);
      for (let turn = 0; turn < 50; turn += 1) await clock.advance(Math.min(waitMs, 30_000) / 2 / 50 - 0.001);
      expect(sessions.length).toBe(index + 1);
      await clock.advance(Math.min(waitMs, 30_000));
    }
  });

  it('SIG-4 the link begins a new session after a day, once no QR is on the screen', async () => {
    const clock = new VirtualClock();
    const sessions: Far[] = [];
    let shown: string | null = uuid(7);
    const open = async () => {
      const far = new Far();
      sessions.push(far);
      return far;
    };
    const { types } = linkOf(open, { clock, shownPushId: () => shown });
    await eventually('a session', () => sessions[0]);
    await sessions[0]?.welcome();
    await eventually('registered', () => types().includes('registered'));
    await clock.advance(86_400_000 + 600_000);
    expect(sessions[0]?.closed).toBe(false);
    shown = null;
    await clock.advance(60_000);
    expect(sessions[0]?.closed).toBe(true);
    await eventually('the next hello', async () => {
      await clock.advance(250);
      return sessions[1]?.hello();
    });
    expect(sessions[1]?.hello()?.sessionId).not.toBe(sessions[0]?.hello()?.sessionId);
  });

  it('ENR-6 the link treats a gateway that is there but never answers a hello as one that refuses the secret', async () => {
    const clock = new VirtualClock();
    const sessions: Far[] = [];
    let refusals = 0;
    const refused = () => {
      refusals += 1;
    };
    const secret = { get: async () => 'Sample-box-secret-known-to-all', refused };
    const open = async () => {
      const far = new Far();
      sessions.push(far);
      return far;
    };
    const { types } = linkOf(open, { clock, secret });
    const closed = () => sessions.filter((it) => it.closed).length;
    await eventually('eleven hellos without an answer', async () => {
      await clock.advance(4_000);
      expect(refusals).toBe(Math.max(0, closed() - 9));
      return closed() === 11;
    });
    await eventually('the next hello', async () => {
      await clock.advance(4_000);
      return sessions[11]?.hello();
    });
    await sessions[11]?.welcome();
    await eventually('registered', () => types().includes('registered'));
    await sessions[11]?.close();
    await eventually('one more without an answer', async () => {
      await clock.advance(4_000);
      return closed() === 13;
    });
    expect(refusals).toBe(2);
  });

  it('MSG-4 the link says hello with a fresh session, and ignores everything before the welcome', async () => {
    const far = new Far();
    const { link, events, types } = linkOf(async () => far);
    const hello = await eventually('hello', () => far.hello());
    expect(hello).toMatchObject({
      terminalCode: 'VVB000001',
      serialNumber: 'VVB900001',
      display: 'browser',
      shownPushId: uuid(7),
    });
    far.say(pushOf(1));
    far.say({ type: 'welcome', link: LINK, openPushIds: [uuid(1)] }, uuid(1));
    link.send([{ type: 'accepted', pushId: uuid(1) }]);
    await far.welcome();
    await eventually('registered', () => types().includes('registered'));
    expect(events).toEqual([
      { type: 'connecting' },
      {
        ...{ type: 'registered', account: LINK, gatewayMs: expect.any(Number), openPushIds: [uuid(1)] },
        ...{ sandbox: false, sandboxMark: false },
      },
    ]);
    expect(far.sent.map((message) => message.type)).toEqual(['hello']);
    expect(link.status()).toMatchObject({ reason: undefined, connectedAtMs: expect.any(Number) });
  });

  it.each([
    [true, { mode: 'sandbox', sandboxMark: true }],
    [false, { mode: 'sandbox', sandboxMark: false }],
    [false, { mode: 'live', sandboxMark: true }],
    [false, {}],
  ] as const)(
    'AGT-15 MSG-13 asks for the mark of a sandbox (%s) where the welcome has %j',
    async (sandboxMark, said) => {
      const far = new Far();
      const { events, types } = linkOf(async () => far);
      await eventually('hello', () => far.hello());
      far.say({ type: 'welcome', link: LINK, openPushIds: [], ...said });
      await eventually('registered', () => types().includes('registered'));
      expect(events.at(-1)).toMatchObject({ type: 'registered', sandboxMark });
    },
  );

  it('MSG-2 MSG-4 MSG-5 the link turns messages of this session into events, in order, and sends in order', async () => {
    const far = new Far();
    const begunMs = systemClock.monotonicMs();
    const { link, events, types } = linkOf(async () => far);
    await far.welcome();
    const welcomedMs = systemClock.monotonicMs();
    await eventually('registered', () => types().includes('registered'));
    far.say(pushOf(9), uuid(1));
    far.say(pushOf(1, { sessionMs: 700 }));
    far.say({ type: 'withdraw', pushId: uuid(1), why: 'cancelled' });
    far.say(paymentOf(2));
    far.say({ type: 'ack', reportIds: [uuid(3)] });
    await eventually('all', () => types().includes('acked'));
    expect(types().slice(2)).toEqual(['push', 'withdraw', 'payment', 'acked']);
    const push = events[2];
    expect(push).toMatchObject({ push: { pushId: uuid(1) }, qrCheck: { ok: true } });
    const bornMs = push?.type === 'push' ? push.bornAtMs - 700 : Number.NaN;
    expect(bornMs).toBeGreaterThanOrEqual(begunMs);
    expect(bornMs).toBeLessThanOrEqual(welcomedMs);
    const report = { type: 'paid', transactionId: uuid(4), orderId: '', amount: 1, recorded: true } as const;
    link.send([
      { type: 'accepted', pushId: uuid(1) },
      { ...report, id: uuid(4) },
    ]);
    await eventually('sent', () => far.sent.length === 3);
    expect(far.sent.slice(1)).toMatchObject([{ type: 'accepted' }, { type: 'paid', id: uuid(4) }]);
  });

  it('the link redials with a fresh session when the connection ends, cannot send, or cannot be opened', async () => {
    const fars = [new Far(), new Far(), new Far()] as const;
    const { link, types, attempts } = linkOf(async (attempt) => {
      if (attempt === 0) throw new Error('connection refused');
      return fars[attempt - 1] ?? fars[2];
    });
    await fars[0].welcome();
    await eventually('registered', () => types().includes('registered'));
    await fars[0].close();
    await fars[1].welcome();
    await eventually('registered again', () => types().filter((type) => type === 'registered').length === 2);
    fars[1].failing = true;
    link.send([{ type: 'accepted', pushId: uuid(1) }]);
    await fars[2].welcome();
    await eventually('registered a third time', () => types().filter((type) => type === 'registered').length === 3);
    expect(types()).toEqual([
      'connecting',
      'connecting',
      'registered',
      'connecting',
      'registered',
      'connecting',
      'registered',
    ]);
    expect(attempts()).toBe(4);
    expect(new Set(fars.map((far) => far.hello()?.sessionId)).size).toBe(3);
    expect(fars[0].closed && fars[1].closed).toBe(true);
  });

  it('BOX-HTTP-4 the link asks a gateway again when that one says, however long this lasts', async () => {
    const clock = new VirtualClock();
    const refused = { severity: 'retryable', retryAfterMs: 1_000 } as const;
    const { attempts } = linkOf(async () => Promise.reject(new PayboxError('LINK_LOST', 'not now', refused)), {
      clock,
    });
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(1_000);
      await setImmediate();
    }
    // Each wait is half of what it is told, to all of it.
    expect(attempts()).toBeGreaterThanOrEqual(55);
    expect(attempts()).toBeLessThanOrEqual(121);
  });

  it('the link redials within 50 ms at its start, and within 250 ms from its first welcome on', async () => {
    const clock = new VirtualClock();
    const first = new Far();
    const { link, types, attempts } = linkOf(
      async (attempt) => {
        if (attempt === 1) return first;
        throw new Error('connection refused');
      },
      { clock },
    );
    await eventually('a refused dial', () => link.status().reason);
    await clock.advance(50);
    await first.welcome();
    await eventually('registered', () => types().includes('registered'));
    await first.close();
    await eventually('its end', () => link.status().reason);
    await clock.advance(100);
    expect(attempts()).toBe(2);
    await clock.advance(150);
    await eventually('another dial', () => attempts() === 3);
  });

  it('MSG-4 the link reports a refusal and tries again', async () => {
    const fars = [new Far(), new Far()] as const;
    const { events, types } = linkOf(async (attempt) => fars[attempt] ?? fars[1]);
    await eventually('hello', () => fars[0].hello());
    fars[0].say({ type: 'refused', code: 'NOT_REGISTERED', reason: 'no such box' });
    await fars[1].welcome();
    await eventually('registered', () => types().includes('registered'));
    expect(events[1]).toEqual({ type: 'refused', code: 'NOT_REGISTERED', reason: 'no such box' });
  });

  it('REG-6 the link of a disabled box says that it is disabled, keeps its secret, and asks again within 5 s while it lasts', async () => {
    const clock = new VirtualClock();
    const sessions: Far[] = [];
    const open = async () => {
      const far = new Far();
      sessions.push(far);
      return far;
    };
    let refusals = 0;
    const refused = () => {
      refusals += 1;
    };
    const { events, types } = linkOf(open, {
      clock,
      secret: { get: async () => 'Sample-box-secret-known-to-all', refused },
    });
    for (let i = 0; i < 8; i += 1) {
      const far = await eventually(`hello ${i}`, () => sessions[i]?.hello() && sessions[i]);
      far.say({ type: 'refused', code: 'NOT_REGISTERED', reason: 'disabled', disabled: true });
      await eventually('its refusal', () => types().filter((type) => type === 'refused').length === i + 1);
      await eventually('the end of the session', () => far.closed);
      await clock.advance(5_000);
    }
    await eventually('the last hello', () => sessions[8]?.hello());
    await sessions[8]?.welcome();
    await eventually('registered', () => types().includes('registered'));
    expect(refusals).toBe(0);
    const told = events.filter((it) => it.type === 'refused');
    expect(new Set(told.map(({ code }) => code))).toEqual(new Set(['BOX_DISABLED']));
  });

  it('MSG-8 the link leaves the box to a newer agent, and asks once a minute at most whether that is gone', async () => {
    const [fars, clock] = [[new Far(), new Far(), new Far(), new Far()] as const, new VirtualClock()];
    const { link, types, attempts } = linkOf(async (attempt) => fars[attempt] ?? fars[3], { clock });
    const superseded = { type: 'refused', code: 'SUPERSEDED', reason: 'another agent' } as const;
    await fars[0].welcome();
    await eventually('registered', () => types().includes('registered'));
    fars[0].say(superseded, uuid(1));
    fars[0].say(superseded);
    await eventually('superseded', () => link.status().reason?.includes('SUPERSEDED') === true);
    const asks = async (far: Far) => {
      for (let second = 0; second < 60 && far.hello() === undefined; second += 1) await clock.advance(1_000);
    };
    await clock.advance(29_000);
    expect(attempts()).toBe(1);
    await asks(fars[1]);
    fars[1].say(superseded);
    await eventually('refused again', () => types().filter((type) => type === 'refused').length === 2);
    await asks(fars[2]);
    await fars[2].welcome();
    await eventually('it has the box', () => types().filter((type) => type === 'registered').length === 2);
    await fars[2].close();
    await clock.advance(500);
    await eventually('an ordinary hello', () => fars[3].hello());
    expect(fars.map((far) => far.hello()?.yields)).toEqual([false, true, true, false]);
  });

  it('AGT-8 AGT-11 the link counts the whole way of a slow welcome when it reads the clock of the gateway', async () => {
    const [far, clock] = [new Far(), new VirtualClock()];
    const { events, types } = linkOf(async () => far, { clock });
    await eventually('hello', () => far.hello());
    const sentAtMs = clock.wallMs();
    await clock.advance(2_000);
    const head = { v: 1, id: uuid(1), sentAtMs, sessionId: far.hello()?.sessionId };
    far.incoming.offer(downMessage.parse({ ...head, type: 'welcome', link: LINK, openPushIds: [] }));
    await eventually('registered', () => types().includes('registered'));
    expect(events.at(-1)).toMatchObject({ gatewayMs: sentAtMs + 2_000 });
  });
});
