import { expect, it, onTestFinished } from 'vitest';
import type { Hearing, Place } from '../../src/gateway/common/place.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { connectFakeBox, type FakeBox, type FakeBoxOptions } from '../support/fake-box.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';
import { BOX1, BOX2, failed } from './harness.ts';
import { pushTo } from './lanes-fixture.ts';
import { boxesOverHttp, oneShop } from './service-alone.ts';
import { SharedPlaces } from './shared-places.ts';
import { only } from './stage-records.ts';

/** Two gateways of one database with boxes over HTTP. A box has its stream at the first, and posts at the second. */
async function twoGateways() {
  const places = new SharedPlaces();
  const { log, lines } = keptLog();
  const begin = async (run: string) => {
    const place = places.join(run);
    const { world, stored } = await oneShop({}, { place, log });
    const gateway = await boxesOverHttp(world, stored);
    onTestFinished(() => gateway.close());
    const answer: Hearing['answer'] = (kind, question) => {
      if (kind !== 'post' || !('message' in question)) throw new Error(`nobody answers ${kind}`);
      const { box: terminalCode, sessionId, message } = question;
      return gateway.streams.take({ terminalCode, sessionId }, message) as ReturnType<Hearing['answer']>;
    };
    place.begin(only<Hearing>({ answer }));
    return gateway;
  };
  const one = await begin('one');
  const two = await begin('two');
  const connect = (more: Partial<FakeBoxOptions> = {}) => {
    const gateway = { origin: one.origin, mqttUrl: undefined };
    return connectFakeBox({ gateway, identity: BOX1, transport: 'http', postsTo: () => two.origin, ...more });
  };
  return { places, one, two, connect, logged: (event: string) => lines.filter((it) => it.event === event) };
}

const headersOf = ({ sessionId }: { sessionId: string }, { terminalCode, secret } = BOX1) => ({
  authorization: `Basic ${Buffer.from(`${terminalCode}:${loginOf(secret)}`).toString('base64')}`,
  'paybox-session': sessionId,
  'content-type': 'application/jose',
});

async function post({ origin }: { origin: string }, body: string, headers: Record<string, string>) {
  const answer = await fetch(`${origin}/box/v1/messages`, { method: 'POST', headers, body });
  return [answer.status, JSON.parse((await answer.text()) || 'null'), answer.headers.get('paybox-reason')] as const;
}

const sealed = (box: FakeBox, more = {}) =>
  box.sealed({ v: 1, id: crypto.randomUUID(), sentAtMs: 1, sessionId: box.sessionId, type: 'alive', ...more });

it('SHA-5 BOX-HTTP-2 a balancer may carry the posts of a box to any gateway: they are taken in their order, each once', async () => {
  let turns = 0;
  const gateways: string[] = [];
  const { one, two, connect, logged } = await twoGateways();
  gateways.push(one.origin, two.origin);
  const box = await connect({ postsTo: () => gateways[turns++ % 2] ?? '' });
  expect([one.hub.session(BOX1.terminalCode)?.sessionId, two.hub.sessions.size]).toEqual([box.sessionId, 0]);
  for (let n = 0; n < 4; n += 1) expect(await pushTo(one.hub, BOX1)).toEqual({ ok: true });
  for (let n = 0; n < 4; n += 1) await box.send({ type: 'alive' });
  await eventually('the answers', () => box.heard.length === 4);
  expect(box.heard).toEqual(box.alive);
  expect([logged('message-refused'), logged('request-refused')]).toEqual([[], []]);
});

it('BOX-HTTP-2 BOX-HTTP-4 the gateway answers a post for another one as that one would', async () => {
  const { one, two, connect } = await twoGateways();
  const box = await connect();
  const headers = headersOf(box);
  const message = sealed(box);
  expect(await post(two, message, headers)).toEqual([202, null, null]);
  expect(await post(two, message, headers)).toEqual([202, null, null]);
  for (const body of ['x', 'x'.repeat(16_384), sealed(box, { type: 'welcome' }), message.replace('.', '..')]) {
    expect(await post(two, body, headers)).toEqual(await post(one, body, headers));
    expect((await post(two, body, headers)).slice(0, 2)).toEqual([400, failed('E46')]);
  }
  // Longer than what one notification of the database can carry.
  const long = sealed(box, { unknown: 'x'.repeat(11_000) });
  expect([long.length > 14_000, (await post(two, long, headers))[0]]).toEqual([true, 202]);
  expect((await post(two, 'x'.repeat(16_385), headers))[0]).toBe(413);
  const wrong = { ...headers, authorization: `Basic ${Buffer.from(`${BOX1.terminalCode}:wrong`).toString('base64')}` };
  expect((await post(two, sealed(box), wrong))[0]).toBe(401);
  expect((await post(two, sealed(box), headersOf(box, BOX2)))[0]).toBe(409);
  expect((await post(two, sealed(box), headersOf({ sessionId: crypto.randomUUID() })))[0]).toBe(409);
  expect((await post(two, sealed(box), headers))[0]).toBe(202);
});

it('BOX-HTTP-1 a session has one stream in all gateways', async () => {
  const { one, two, connect, places } = await twoGateways();
  const box = await connect();
  const stream = async (origin: string) => {
    const answer = await fetch(`${origin}/box/v1/stream`, { headers: headersOf(box) });
    await answer.body?.cancel();
    return answer.status;
  };
  expect([await stream(one.origin), await stream(two.origin)]).toEqual([409, 409]);
  await box.close();
  await eventually('its end', () => places.streams.size === 0);
  expect((await post(two, sealed(box), headersOf(box)))[0]).toBe(409);
  expect(await stream(two.origin)).toBe(200);
});

it('BOX-HTTP-4 the gateway answers 503 to a post that nobody takes, and asks the database once for a session', async () => {
  let lookups = 0;
  let isAnswered = true;
  let isThere = true;
  const { two, places, connect } = await twoGateways();
  const streamElsewhere = async () => {
    lookups += 1;
    if (!isThere) throw new Error('the database is away');
    return 'one';
  };
  const asking = places.join('three');
  const ask: Place['ask'] = async (...question) => (isAnswered ? asking.ask(...question) : undefined);
  const { world, stored } = await oneShop({}, { place: { ...asking, streamElsewhere, ask } });
  const three = await boxesOverHttp(world, stored);
  onTestFinished(() => three.close());
  const box = await connect({ postsTo: () => three.origin });
  const headers = headersOf(box);
  for (let n = 0; n < 3; n += 1) await box.send({ type: 'alive' });
  expect(lookups).toBe(1);
  isAnswered = false;
  expect((await post(three, sealed(box), headers)).slice(0, 2)).toEqual([503, failed('E05')]);
  isAnswered = true;
  isThere = false;
  expect((await post(three, sealed(box), headers)).slice(0, 2)).toEqual([503, failed('E05')]);
  const stream = await fetch(`${three.origin}/box/v1/stream`, {
    headers: headersOf({ sessionId: crypto.randomUUID() }),
  });
  expect([stream.status, await stream.json()]).toEqual([503, failed('E05')]);
  // What the other gateways take goes on.
  expect((await post(two, sealed(box), headers))[0]).toBe(202);
});
