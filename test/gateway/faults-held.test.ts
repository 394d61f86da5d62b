import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { MakeAttempt } from '../../src/gateway/money/callbacks/attempt.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { type FaultName, type FaultOrder, magicContent } from '../../src/protocol/faults.ts';
import type { DownOf } from '../../src/protocol/messages.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { askFaults, faultsOnly } from './faults.ts';
import { ACCOUNT, BOX1, BOX2, GENERATE, order as generated, partnerServer, qrFor, testGateway } from './harness.ts';

const BOX = BOX1.terminalCode;
const DEADLINE_MS = 5_000;

const show = (content: string): DownOf<'show'> => ({
  v: 1,
  id: systemRandom.uuid(),
  sessionId: systemRandom.uuid(),
  sentAtMs: 0,
  type: 'show',
  pushId: systemRandom.uuid(),
  orderId: content,
  amount: 50_000,
  content,
  ...ACCOUNT,
  qrCode: qrFor(),
  expiresAtMs: 1,
  expiresInMs: 1,
  sessionMs: 0,
});

/** The faults of a gateway with a connection to a box and a way to its partner, on a clock that stands still. */
function open() {
  const { clock, faults, links, withFaults, connectBox } = faultsOnly();
  const said: string[] = [];
  const connection = connectBox((message) => said.push(message.type === 'show' ? message.content : message.type));
  const posted: string[] = [];
  const make: MakeAttempt = async (to, { post }, stop) => {
    const { content } = JSON.parse(to.body) as { content: string };
    posted.push(content);
    const headers = { requestHeaders: {}, startedAtMs: 0, durationMs: 0 };
    const answer = await post(to.url, {}, to.body, stop).catch(() => undefined);
    const result = answer === undefined ? 'retry' : 'delivered';
    return { ...headers, result, warning: null, status: answer?.status ?? null, answer: null, error: null };
  };
  const attempt = withFaults(make);
  const stop = new AbortController();
  const heard: string[] = [];
  return {
    clock,
    faults,
    links,
    connection,
    said,
    posted,
    heard,
    order: async (order: FaultOrder): Promise<string> => {
      const ordered = await faults.order(order);
      if (!ordered.ok) throw new Error(ordered.reason);
      return ordered.value.id;
    },
    /** A callback for this content; when its attempt is over, it is heard. */
    call: (content: string) => {
      const { bankAccount: bankaccount } = ACCOUNT;
      const ids = { transactionid: content, transactiontime: 1, referencenumber: content, orderId: content };
      const none = { sign: '', urlLink: '', serviceCode: '', subTerminalCode: '' };
      const told = { ...ids, ...none, amount: 1, content, bankaccount, transType: 'C', terminalCode: BOX };
      const to = {
        id: content,
        url: 'http://127.0.0.1/',
        auth: { kind: 'none' },
        signingSecret: undefined,
        success: 'any2xx' as const,
      } as const;
      const post = async () => ({ status: 200, body: '', cut: false });
      const outgoing = { ...to, body: JSON.stringify(told), tries: 0, byHand: false };
      void attempt(outgoing, { clock, post }, stop.signal).then(({ result }) => heard.push(`${content} ${result}`));
    },
    standing: () => faults.active().map((it) => [it.fault, it.happened]),
    settle: () => clock.advance(0),
  };
}

const NAMES = ['A', 'B', 'C', 'D', 'E'];

describe('what a fault holds back', () => {
  it.each(['box-slow', 'push-late'] as const)('FLT-11 %s: goes at its end at once, in order', async (fault) => {
    const { order, connection, said, standing, clock, faults, settle } = open();
    const id = await order({ fault, seconds: 600, times: NAMES.length });
    for (const name of NAMES) connection.send(show(name));
    connection.send(show('next'));
    await clock.advance(599_000);
    expect(said).toEqual(['next']);
    expect(standing()).toEqual([[fault, NAMES.length]]);
    expect(await faults.end(id)).toBe(true);
    await settle();
    expect(said).toEqual(['next', ...NAMES]);
    expect([standing(), clock.sleeping()]).toEqual([[], []]);
  });

  it('FLT-11 held messages go in the order in which they were held, whichever faults hold them', async () => {
    const { order, connection, said, clock, faults, settle } = open();
    await order({ fault: 'box-slow', content: 'B', seconds: 600 });
    await order({ fault: 'push-late', content: 'A', seconds: 5 });
    await order({ fault: 'box-slow', content: 'A', seconds: 600 });
    await order({ fault: 'push-late', content: 'C', seconds: 700 });
    await order({ fault: 'link-slow', seconds: 600 });
    for (const name of ['A', 'B', 'C']) connection.send(show(name));
    await faults.endAll();
    await settle();
    expect(said).toEqual(['A', 'B', 'C']);
    expect(clock.sleeping()).toEqual([]);
  });

  it('FLT-11 a message that two faults hold goes on when both have ended', async () => {
    const { order, connection, said, faults, settle, clock } = open();
    const late = await order({ fault: 'push-late', seconds: 600 });
    await order({ fault: 'box-slow', seconds: 600 });
    connection.send(show('A'));
    await faults.end(late);
    await settle();
    expect(said).toEqual([]);
    await clock.advance(600_000 + DEADLINE_MS + 600_000);
    expect(said).toEqual(['A']);
    expect(faults.active()).toEqual([]);
  });

  it('FLT-11 a fault that has happened as often as it was to stands until it holds nothing', async () => {
    const { order, connection, said, standing, clock } = open();
    await order({ fault: 'box-slow', seconds: 2 });
    connection.send(show('A'));
    connection.send(show('B'));
    expect(said).toEqual(['B']);
    await clock.advance(1_999);
    expect(standing()).toEqual([['box-slow', 1]]);
    await clock.advance(1);
    expect([said, standing()]).toEqual([['B', 'A'], []]);
  });

  it('FLT-11 push-swapped: the push goes at its end, although no message has followed it', async () => {
    const { order, connection, said, standing, faults, settle, clock } = open();
    const id = await order({ fault: 'push-swapped' });
    connection.send(show('A'));
    await clock.advance(DEADLINE_MS);
    expect([said, standing()]).toEqual([[], [['push-swapped', 1]]]);
    await faults.end(id);
    await settle();
    expect([said, clock.sleeping()]).toEqual([['A'], []]);
  });

  it('FLT-6 push-swapped several times: each goes after the next one, which is none of them', async () => {
    const { order, connection, said, standing, settle } = open();
    await order({ fault: 'push-swapped', times: 2 });
    for (const name of ['A', 'B', 'C', 'D', 'E']) connection.send(show(name));
    await settle();
    expect(said).toEqual(['B', 'A', 'D', 'C', 'E']);
    expect(standing()).toEqual([]);
  });

  it('FLT-6 push-swapped: a push that nothing follows for two deadlines is held no longer', async () => {
    const { order, connection, said, standing, clock } = open();
    await order({ fault: 'push-swapped' });
    connection.send(show('A'));
    await clock.advance(2 * DEADLINE_MS);
    expect([said, standing()]).toEqual([['A'], []]);
  });

  it('FLT-11 link-slow: messages both ways go at its end, in order', async () => {
    const { order, connection, said, faults, settle, clock } = open();
    await order({ fault: 'link-slow', seconds: 600, seed: 5 });
    for (const name of NAMES) connection.send(show(name));
    await settle();
    expect(said).toEqual([]);
    await faults.endAll();
    await settle();
    expect([said, clock.sleeping()]).toEqual([NAMES, []]);
  });

  it('FLT-11 sync-late: callbacks go at its end at once, in order', async () => {
    const { order, call, posted, heard, standing, faults, settle, clock } = open();
    await order({ fault: 'sync-late', seconds: 600, times: NAMES.length });
    for (const name of NAMES) call(name);
    await clock.advance(599_000);
    expect([posted, standing()]).toEqual([[], [['sync-late', NAMES.length]]]);
    await faults.endAll();
    await settle();
    expect(posted).toEqual(NAMES);
    expect(heard).toEqual(NAMES.map((it) => `${it} delivered`));
    expect(clock.sleeping()).toEqual([]);
  });

  it('FLT-11 sync-swapped: the callback goes at its end, although no other has followed it', async () => {
    const { order, call, posted, standing, faults, settle } = open();
    await order({ fault: 'sync-swapped' });
    call('A');
    await settle();
    expect([posted, standing()]).toEqual([[], [['sync-swapped', 1]]]);
    await faults.endAll();
    await settle();
    expect(posted).toEqual(['A']);
  });

  it('FLT-8 sync-swapped several times: each goes after the next one, which is none of them', async () => {
    const { order, call, posted, standing, settle } = open();
    await order({ fault: 'sync-swapped', times: 2 });
    for (const name of ['A', 'B', 'C', 'D', 'E']) {
      call(name);
      await settle();
    }
    expect(posted).toEqual(['B', 'A', 'D', 'C', 'E']);
    expect(standing()).toEqual([]);
  });

  it('FLT-11 partner-never: the answer is heard at its end', async () => {
    const { order, call, heard, standing, faults, settle } = open();
    await order({ fault: 'partner-never' });
    call('A');
    await settle();
    expect([heard, standing()]).toEqual([[], [['partner-never', 1]]]);
    await faults.endAll();
    await settle();
    expect(heard).toEqual(['A delivered']);
  });

  it('FLT-11 a content: what it holds goes on when all faults are ended', async () => {
    const { connection, call, said, posted, standing, faults, settle, clock } = open();
    const [push, sync] = [magicContent('push-late'), magicContent('sync-late')];
    connection.send(show(push));
    call(sync);
    await clock.advance(1_000);
    expect([said, posted, standing()]).toEqual([[], [], []]);
    await faults.endAll();
    await settle();
    expect([said, posted, clock.sleeping()]).toEqual([[push], [sync], []]);
  });

  it('FLT-11 faults hold no more than 10,000 messages: one more has the oldest go on', async () => {
    const { order, connection, said, standing, settle, clock } = open();
    await order({ fault: 'box-slow', seconds: 600, times: 10_000 });
    const [first, second, push] = [show('first'), show('second'), show('more')];
    connection.send(first);
    connection.send(second);
    for (let n = 2; n < 10_000; n += 1) connection.send(push);
    await settle();
    expect(said).toEqual([]);
    await order({ fault: 'box-slow', seconds: 600 });
    connection.send(push);
    await settle();
    expect(said).toEqual(['first']);
    expect(standing()).toEqual([
      ['box-slow', 10_000],
      ['box-slow', 1],
    ]);
    await clock.advance(600_000);
    expect([said.length, standing(), clock.sleeping()]).toEqual([10_001, [], []]);
  });

  it('FLT-11 held messages are dropped where the gateway stops, and leave no wait', async () => {
    const { order, connection, call, said, faults, settle, clock } = open();
    await order({ fault: 'push-late', seconds: 600 });
    await order({ fault: 'push-swapped', content: 'B' });
    await order({ fault: 'sync-late', seconds: 600 });
    connection.send(show('A'));
    connection.send(show('B'));
    call('C');
    faults.close();
    await settle();
    expect([said, faults.active(), clock.sleeping()]).toEqual([[], [], []]);
  });
});

it('FLT-11 a gateway that stops in the midst of faults answers who waits, tells boxes nothing, and ends in time', async () => {
  const partner = await partnerServer();
  const gateway = await testGateway({ callback: { url: partner.url } });
  const boxes = [
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' }),
    await connectFakeBox({ gateway, identity: BOX2, transport: 'http' }),
  ];
  const order = async (fault: FaultName, more: object = {}) =>
    expect((await askFaults(gateway, '', 'POST', { fault, ...more })).status).toBe(201);
  await order('service-slow', { content: 'SLOW', seconds: 600 });
  await order('push-late', { seconds: 600, times: 2 });
  await order('sync-late', { seconds: 600 });
  const slow = gateway.post(GENERATE, generated({ content: 'SLOW' }));
  const pushes = [BOX1, BOX2].map(({ terminalCode, serialNumber }) =>
    gateway.sendQr({ terminalCode, serialNumber, orderId: terminalCode }),
  );
  await gateway.testCallback({ content: 'NONE' });
  const happened = () => gateway.logged('fault-triggered').length;
  await eventually('all that is held', () => happened() === 4);
  await gateway.close();
  expect((await slow).status).toBe(200);
  for (const pushed of pushes) expect((await pushed).body.message).toBe('BOX_OFFLINE');
  expect(boxes.flatMap((it) => it.of('show'))).toEqual([]);
  expect(partner.calls).toEqual([]);
  expect(gateway.log.filter((it) => ['end-timed-out', 'end-failed'].includes(it.event))).toEqual([]);
});

describe('held connections', () => {
  it('FLT-9 messages of a held connection that wait to be posted are forgotten with it', async () => {
    const { faults, links, order } = open();
    await order({ fault: 'half-open', seconds: 600 });
    const [given, kept] = [new Socket(), new Socket()];
    let passed = '';
    const waits = [
      links.passable(BOX, given).then(() => {
        passed += 'given up ';
      }),
      links.passable(BOX, kept).then(() => {
        passed += 'kept';
      }),
    ];
    given.destroy();
    await waits[0];
    expect(passed).toBe('given up ');
    await faults.endAll();
    await waits[1];
    expect([given, kept].map((it) => it.listenerCount('close'))).toEqual([0, 0]);
  });

  it('FLT-9 a box has no more than 16 held connections: one more ends the oldest', async () => {
    const { faults, links } = open();
    await faults.order({ fault: 'half-open', seconds: 600 });
    const sockets = Array.from({ length: 17 }, () => new Socket());
    for (const socket of sockets) links.connected(BOX, socket)();
    const isHeld = (socket: Socket) => Object.hasOwn(socket, 'destroy');
    const isCut = (socket: Socket) => socket.destroyed;
    expect([sockets.map(isHeld), sockets.map(isCut)]).toEqual([
      sockets.map((_, n) => n > 0),
      sockets.map((_, n) => n === 0),
    ]);
    await faults.endAll();
    expect(sockets.filter((it) => isHeld(it) || isCut(it))).toEqual([sockets[0]]);
  });
});
