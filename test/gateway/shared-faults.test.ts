import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { type News, type Place, placeAlone } from '../../src/gateway/common/place.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { injectFaults, settable } from '../../src/gateway/faults/fault-injection.ts';
import { faultNewsIn } from '../../src/gateway/faults/fault-news.ts';
import { Faults } from '../../src/gateway/faults/faults.ts';
import { LinkFaults } from '../../src/gateway/faults/link-faults.ts';
import { LatePayments } from '../../src/gateway/faults/payment-faults.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import type { FaultOrder } from '../../src/protocol/faults.ts';
import type { DownOf } from '../../src/protocol/messages.ts';
import { BOX1 } from './harness.ts';
import { only, worldOf } from './stage-records.ts';

const BOX = BOX1.terminalCode;
const HTTP_SESSION = {
  ...{ run: 'b', terminalCode: BOX, sessionId: 's', serialNumber: BOX1.serialNumber, agentVersion: '1' },
  ...{ display: 'none', transport: 'http', sinceMs: 0 },
};

/** Two gateways of a database. What one tells, the other hears at once. */
function two({ isTold = true, elsewhere = [] as (typeof HTTP_SESSION)[] } = {}) {
  const clock = new VirtualClock();
  const living = new Set(['a', 'b']);
  const told: News[] = [];
  const config = parseGatewayConfig({ dataDir: 'x', mqtt: { url: 'mqtt://127.0.0.1:1' } }, 'test');
  const open = (run: string, toOther: (news: News) => void) => {
    const place: Place = {
      ...placeAlone(run),
      others: () => [...living].filter((it) => it !== run),
      allElsewhere: async () => new Map(elsewhere.map((it) => [it.terminalCode, it])),
      tell: async (news) => {
        told.push(news);
        if (isTold) toOther(news);
        return isTold;
      },
    };
    const world = worldOf({ config, clock: settable(clock), machine: clock, place });
    const latePayments = new LatePayments();
    const faults = new Faults(world);
    const links = new LinkFaults(world, { faults, latePayments, payPush: async () => undefined });
    const hear = (news: News) => {
      const told = news.about === 'edges' ? faultNewsIn(news.text) : undefined;
      if (told?.about === 'order' || told?.about === 'end' || told?.about === 'occurrence') faults.hear(told);
    };
    const order = async (wanted: FaultOrder) => {
      const result = await faults.order(wanted);
      if (!result.ok) throw new Error(result.reason);
      return result.value.id;
    };
    const listed = () => faults.active().map(({ id, happened }) => [id, happened]);
    return { world, faults, links, latePayments, hear, order, listed };
  };
  const a = open('a', (news) => b.hear(news));
  const b: ReturnType<typeof open> = open('b', (news) => a.hear(news));
  return { a, b, clock, living, told };
}

const aboutsOf = (told: readonly News[]) =>
  told.map((it) => (it.about === 'edges' ? faultNewsIn(it.text).about : it.about));

it('SHA-8 a fault that is ordered at one gateway happens at all under one id, as often as ordered in all together', async () => {
  const { a, b } = two();
  const id = await a.order({ fault: 'service-500', times: 3 });
  const subject = { boxes: [BOX] };
  expect([a.listed(), b.listed()]).toEqual([[[id, 0]], [[id, 0]]]);
  const happened = [b, b, a, b, a].map(({ faults }) => faults.take('service-500', subject) !== undefined);
  expect(happened).toEqual([true, true, true, false, false]);
  expect([a.listed(), b.listed()]).toEqual([[], []]);
});

it('SHA-8 a lasting fault is counted over all gateways', async () => {
  const { a, b, clock, told } = two();
  const id = await a.order({ fault: 'service-500', seconds: 60 });
  for (let n = 0; n < 5; n += 1) b.faults.take('service-500', { boxes: [BOX] });
  await clock.advance(250);
  expect([a.listed(), b.listed()]).toEqual([[[id, 5]], [[id, 5]]]);
  expect(aboutsOf(told).filter((it) => it === 'occurrence')).toHaveLength(1);
  await clock.advance(60_000);
  expect([a.listed(), b.listed()]).toEqual([[], []]);
});

it('SHA-8 any gateway ends a fault with what it delays at another, and all faults', async () => {
  const { a, b, clock } = two();
  const id = await a.order({ fault: 'service-slow', seconds: 600 });
  const delayed = a.faults.delay('service-slow', { boxes: [BOX] })?.delayed(600_000);
  await clock.advance(0);
  expect([a.listed(), b.listed()]).toEqual([[[id, 1]], [[id, 1]]]);
  expect(await b.faults.end(id)).toBe(true);
  expect([await delayed, a.listed(), b.listed()]).toEqual([true, [], []]);
  expect(await b.faults.end(id)).toBe(false);
  await a.order({ fault: 'push-lost', box: BOX });
  await b.order({ fault: 'push-twice' });
  await b.faults.endAll();
  expect([a.listed(), b.listed()]).toEqual([[], []]);
});

it('SHA-8 FLT-11 a fault that has happened often enough is listed everywhere until it delays nothing, or its gateway has ended', async () => {
  const { a, b, clock, living } = two();
  const first = await a.order({ fault: 'service-slow', seconds: 5 });
  void a.faults.delay('service-slow', { boxes: [BOX] })?.delayed(5_000);
  expect([b.listed(), b.faults.delay('service-slow', { boxes: [BOX] })]).toEqual([[[first, 1]], undefined]);
  await clock.advance(5_000);
  expect([a.listed(), b.listed()]).toEqual([[], []]);
  const second = await a.order({ fault: 'service-slow', seconds: 5 });
  void a.faults.delay('service-slow', { boxes: [BOX] })?.delayed(5_000);
  expect(b.listed()).toEqual([[second, 1]]);
  living.delete('a');
  expect(b.listed()).toEqual([]);
});

it('SHA-8 a fault that the others cannot be told is ordered nowhere', async () => {
  const { a, told } = two({ isTold: false });
  await expect(a.faults.order({ fault: 'clock-skew' })).rejects.toThrow('the other gateways could not be told');
  expect([a.listed(), aboutsOf(told)]).toEqual([[], ['order']]);
});

it('SHA-8 the calendars of all gateways are ahead while the fault clock-skew is active', async () => {
  const clock = new VirtualClock();
  const wallMs = clock.wallMs();
  const config = parseGatewayConfig({ dataDir: 'x' }, 'test');
  const clocks = [settable(clock), settable(clock)];
  const edges = clocks.map((own) => injectFaults(worldOf({ config, clock: own }), own));
  for (const edge of edges)
    edge.hear(JSON.stringify({ about: 'order', id: 'f', order: { fault: 'clock-skew', seconds: 10 } }));
  expect(clocks.map((own) => own.wallMs() - wallMs)).toEqual([7_200_000, 7_200_000]);
  for (const edge of edges) edge.hear(JSON.stringify({ about: 'end', id: 'f' }));
  expect(clocks.map((own) => own.wallMs() - wallMs)).toEqual([0, 0]);
});

it('SHA-8 FLT-2 a fault of the link is ordered for a box that another gateway has over HTTP, by an admin or a content', async () => {
  const content = { content: 'FAULT LINK CUT', boxes: [BOX] };
  const { a } = two({ elsewhere: [HTTP_SESSION] });
  expect(await a.faults.contentProblem(content)).toBeUndefined();
  expect((await a.faults.order({ fault: 'link-cut', box: BOX })).ok).toBe(true);
  for (const elsewhere of [[], [{ ...HTTP_SESSION, transport: 'mqtt' }]]) {
    const { a: alone } = two({ elsewhere });
    expect(await alone.faults.contentProblem(content)).toContain('link-cut is for admins only, or not possible here');
    expect(await alone.faults.order({ fault: 'link-cut', box: BOX })).toMatchObject({ ok: false, code: 'E46' });
  }
});

it('SHA-8 FLT-5 a token that a fault lets expire is refused at all gateways', async () => {
  const own = settable(new VirtualClock());
  const edges = injectFaults(worldOf({ config: parseGatewayConfig({ dataDir: 'x' }, 'test'), clock: own }), own);
  const tokens = edges.tokens({ issue: async () => 'token', read: async () => 'shop' });
  expect(await tokens.read('token')).toBe('shop');
  const sha256 = createHash('sha256').update('token').digest('hex');
  edges.hear(JSON.stringify({ about: 'token-expired', sha256 }));
  expect(await tokens.read('token')).toBeUndefined();
});

it('SHA-8 FLT-7 a payment that a fault delays reaches no box earlier at another gateway', async () => {
  const { b, clock } = two();
  const sent: string[] = [];
  const socket = { transport: 'http', problem: () => undefined, send: () => undefined, end: () => undefined } as const;
  const connection = b.links.connect(() => ({
    transport: 'http',
    end: () => undefined,
    send: (message) => sent.push(message.type === 'payment' ? message.content : message.type),
  }))(BOX, socket);
  const late = { bankAccount: '0123456789', content: 'LATE', amount: 1_000 };
  b.latePayments.add(late, b.faults.delayFor(null)(5_000));
  for (const content of ['LATE', 'OTHER'])
    connection.send(only<DownOf<'payment'>>({ type: 'payment', ...late, content }));
  expect(sent).toEqual(['OTHER']);
  await clock.advance(5_000);
  expect(sent).toEqual(['OTHER', 'LATE']);
});
