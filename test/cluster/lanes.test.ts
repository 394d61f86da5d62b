import { expect, it } from 'vitest';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { BOX1, type TestGateway, testGateway } from '../gateway/harness.ts';
import { brokerOfLanes, LANES_PASSWORD } from '../gateway/lanes-fixture.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { startPostgres } from '../support/postgres.ts';

const adminToken = newSecret(systemRandom);

async function cluster() {
  const databaseUrl = await (await startPostgres()).database();
  const url = await brokerOfLanes();
  const mqtt = { url, username: GATEWAY_LOGIN, password: LANES_PASSWORD };
  const start = (name: string) =>
    testGateway({ config: { databaseUrl, mqtt, adminToken, confirm: 'displayed', cluster: { name } } });
  return { url, start };
}

/** Follows a box from lane 0 to its home, as its own link does. */
async function begin(url: string, identity = BOX1, first = 0) {
  const gateway = { origin: '', mqttUrl: url };
  for (let lane = first, hops = 0; hops < 5; hops += 1) {
    const box = await connectFakeBox({ gateway, identity, transport: 'mqtt', lane, hello: false });
    await box.hello();
    const answer = await eventually('an answer', () => box.received[0]);
    if (answer.type !== 'refused') return { box, lane };
    expect(answer).toMatchObject({ code: 'MOVED' });
    await box.close();
    lane = answer.shard ?? 0;
  }
  throw new Error('it was sent on for ever');
}

it('SHA-2 SHA-5 a box begins in lane 0, has its home at a gateway, and another home when that one ends', async () => {
  const { url, start } = await cluster();
  const gateways: Record<string, TestGateway> = { a: await start('a'), b: await start('b') };
  const { box, lane } = await begin(url);
  expect(box.of('welcome')).toHaveLength(1);
  for (const gateway of Object.values(gateways)) {
    const answer = await gateway.sendQr({ orderId: crypto.randomUUID().slice(0, 8) });
    expect([answer.status, answer.body]).toEqual([200, { status: 'SUCCESS', message: '' }]);
  }
  expect(box.of('show')).toHaveLength(2);
  const holder = gateways.a?.logged('box-connected').length === 1 ? 'a' : 'b';
  await gateways[holder]?.close();
  const again = await begin(url, BOX1, lane);
  expect(again.lane).not.toBe(lane);
  const left = gateways[holder === 'a' ? 'b' : 'a'];
  expect((await left?.sendQr({ orderId: 'AFTER' }))?.body).toEqual({ status: 'SUCCESS', message: '' });
  // The gateway comes back, and the box goes home.
  await start(holder);
  const { pushId, orderId } = await again.box.next('show');
  await again.box.send({ type: 'ended', pushId, orderId, how: 'expired' });
  expect(await again.box.next('refused')).toMatchObject({ code: 'MOVED', shard: lane });
  const home = await begin(url, BOX1, lane);
  expect(home.lane).toBe(lane);
  expect((await left?.sendQr({ orderId: 'HOME' }))?.body).toEqual({ status: 'SUCCESS', message: '' });
});

it('SHA-5 BOX-HTTP-2 a box over HTTP has its stream at one gateway, and posts at any', async () => {
  const { start } = await cluster();
  const [a, b] = [await start('a'), await start('b')];
  const gateways = [a, b];
  let posts = 0;
  const postsTo = () => gateways[posts++ % 2]?.origin ?? '';
  const box = await connectFakeBox({ gateway: a, identity: BOX1, transport: 'http', postsTo });
  for (const gateway of [a, b, a, b]) {
    const answer = await gateway.sendQr({ orderId: crypto.randomUUID().slice(0, 8) });
    expect([answer.status, answer.body]).toEqual([200, { status: 'SUCCESS', message: '' }]);
  }
  // Longer than one notification of the database.
  const long = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, sessionId: box.sessionId, type: 'alive' };
  await box.sendText(box.sealed({ ...long, unknown: 'x'.repeat(11_000) }));
  await box.sendText(box.sealed({ ...long, unknown: 'x'.repeat(11_000) }));
  await eventually('both answers', () => box.heard.length === 2);
  // Nobody else begins a stream of this session.
  const refused = await connectFakeBox({
    ...{ gateway: b, identity: BOX1, transport: 'http' },
    again: box,
    hello: false,
  }).catch(String);
  expect(refused).toContain('HTTP 409');
  expect([a, b].flatMap((it) => it.logged('message-refused'))).toEqual([]);
});

it('ERR-8 SHA-4 a box whose hello has texts that no database can hold is served, and others see it', async () => {
  const { start } = await cluster();
  const [a, b] = [await start('a'), await start('b')];
  const box = await connectFakeBox({ gateway: a, identity: BOX1, transport: 'http', hello: false });
  const version = { agentVersion: '1\0', display: 'a\ud800b', shownPushId: null };
  await box.send({ type: 'hello', terminalCode: BOX1.terminalCode, serialNumber: BOX1.serialNumber, ...version });
  await box.next('welcome');
  const viewAt = async ({ origin }: TestGateway) => {
    const answer = await fetch(`${origin}/_mock/boxes`, { headers: { authorization: `Bearer ${adminToken}` } });
    const boxes = (await answer.json()) as { terminalCode: string }[];
    return boxes.find((it) => it.terminalCode === BOX1.terminalCode);
  };
  const seen = { online: true, agentVersion: '1\\u0000', display: 'a\\ud800b' };
  expect(await viewAt(a)).toMatchObject(seen);
  expect(await viewAt(b)).toMatchObject(seen);
});
