import { cp, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { loginOf, signingKeyOf } from '../../src/protocol/keys.ts';
import { BoxSeal } from '../../src/protocol/seal.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { ACCOUNT, BOX1, qrFor, type TestGateway, testGateway } from '../gateway/harness.ts';
import { type Login, loginAs } from '../gateway/mqtt-login.ts';
import { loginStatus } from '../support/asking-box.ts';
import { connectFakeBox, type FakeBoxIdentity } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { said } from './hostile-relay.ts';
import { bootRealBox, type RealBox } from './real-box.ts';

const NAMES = { terminalCode: 'VVB000002', serialNumber: 'VVB900002' };
const ADMIN = 'A-sample-of-an-admin-token';
const refusals = (gateway: TestGateway) => gateway.log.filter((it) => it.event === 'message-refused');

const gatewayWith = (box2: object, dataDir?: string) =>
  testGateway({
    ...(dataDir === undefined ? {} : { dataDir }),
    config: { adminToken: ADMIN, boxes: [BOX1, { ...NAMES, account: ACCOUNT.bankAccount, ...box2 }] },
  });

/** What an operator does. */
async function operate(gateway: TestGateway, path: string, body: object = {}): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${ADMIN}` };
  const answer = await fetch(`${gateway.origin}/_mock${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect([path, answer.status]).toEqual([path, 200]);
}

async function enrolled(gateway: TestGateway, dataDir?: string): Promise<RealBox> {
  const enrolment = { enrolment: { url: gateway.origin } };
  const box = await bootRealBox(NAMES, { transport: 'mqtt', url: gateway.mqttUrl }, dataDir, enrolment);
  const code = await eventually('a code', async () => (await box.status()).enrolment?.code);
  await operate(gateway, `/enrolments/${NAMES.terminalCode}/accept`, { code });
  await eventually('online', async () => (await box.status()).online);
  return box;
}

async function pushedTo2(gateway: TestGateway, orderId: string) {
  const request = { ...NAMES, orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) };
  return (await gateway.sendQr(request)).body.status;
}

/** What is sealed as by a box with these names and this secret, as an answer to the live gateway. */
async function helloBy({ client, received }: Login, identity: FakeBoxIdentity): Promise<string> {
  await client.subscribeAsync(GATEWAY_PRESENCE_TOPIC, { qos: 1 });
  const birth = await eventually('the gateway', () => received.find((it) => it.topic === GATEWAY_PRESENCE_TOPIC));
  const { terminalCode, serialNumber } = identity;
  const sessionId = crypto.randomUUID();
  const head = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'hello', sessionId } as const;
  const hello = { ...head, terminalCode, serialNumber, agentVersion: '', display: '', shownPushId: null };
  const seal = new BoxSeal({ ...identity, sessionId }, signingKeyOf(systemRandom.secret(32)), systemClock);
  return seal.seal(hello, JSON.parse(birth.payload).sessionId);
}

async function refusedByGateway(gateway: TestGateway, { client }: Login, terminalCode: string, hello: string) {
  const before = refusals(gateway).length;
  await client.publishAsync(boxTopic(terminalCode, 'up'), hello, { qos: 1 });
  await eventually('a refusal', () => refusals(gateway).length > before);
  return refusals(gateway)[before]?.code;
}

/** All that a secret opened is shut to it, and what is said under another cannot be read as one's own. */
async function expectWorthless(gateway: TestGateway, old: string, current: string) {
  await expect(loginAs(gateway, { ...NAMES, secret: old })).rejects.toMatchObject({ code: 4 });
  expect(await loginStatus(gateway.origin, NAMES.terminalCode, old)).toBe(401);
  // As if the broker let it in all the same.
  const inside = await loginAs(gateway, { ...NAMES, secret: current });
  const hello = await helloBy(inside, { ...NAMES, secret: old });
  expect(await refusedByGateway(gateway, inside, NAMES.terminalCode, hello)).toBe('KEY_UNKNOWN');
  await inside.client.subscribeAsync(boxTopic(NAMES.terminalCode, 'down'), { qos: 1 });
  const box = await connectFakeBox({ gateway, identity: { ...NAMES, secret: current }, transport: 'mqtt' });
  const down = boxTopic(NAMES.terminalCode, 'down');
  const ofBox = ({ topic, payload }: { topic: string; payload: string }) =>
    topic === down && said(payload)?.sessionId === box.sessionId;
  const told = await eventually('the welcome', () => inside.received.find(ofBox));
  const session = { ...NAMES, sessionId: box.sessionId, secret: old };
  const stolen = new BoxSeal(session, signingKeyOf(systemRandom.secret(32)), systemClock);
  expect(stolen.open(told.payload)).toMatchObject({ ok: false, code: 'KEY_UNKNOWN' });
}

describe('whoever has the card of a box', () => {
  it('THR-21 finds on it no secret of gateway, partner or another box, and its own for its owner only', async () => {
    const dataDir = await temporaryFolder();
    const gateway = await gatewayWith({}, dataDir);
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const box = await enrolled(gateway);
    expect(await pushedTo2(gateway, 'DH1')).toBe('SUCCESS');
    await box.close();
    const files = await filesIn(box.dataDir);
    const own = (await readFile(join(box.dataDir, 'secret'), 'utf8')).trim();
    const secrets = [BOX1.secret, loginOf(BOX1.secret), 'demo-secret', 'other-secret', ADMIN];
    expect(files.size).toBeGreaterThan(1);
    for (const [name, { bytes, mode }] of files) {
      for (const secret of secrets) expect([name, secret, bytes.includes(secret)]).toEqual([name, secret, false]);
      if (bytes.includes(own) || bytes.includes(loginOf(own))) expect([name, mode]).toEqual(['secret', 0o600]);
    }
    await gateway.close();
    for (const [name, { mode }] of await filesIn(dataDir)) expect([name, mode]).toEqual([name, 0o600]);
  });

  it('THR-21 is no other box with it', async () => {
    const gateway = await gatewayWith({});
    const box1 = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const box = await enrolled(gateway);
    const secret = (await readFile(join(box.dataDir, 'secret'), 'utf8')).trim();
    await box.close();
    await expect(loginAs(gateway, { terminalCode: BOX1.terminalCode, secret })).rejects.toMatchObject({ code: 4 });
    expect(await loginStatus(gateway.origin, BOX1.terminalCode, secret)).toBe(401);
    const thief = await loginAs(gateway, { ...NAMES, secret });
    const asBox1 = await helloBy(thief, { ...BOX1, secret });
    expect(await refusedByGateway(gateway, thief, NAMES.terminalCode, asBox1)).toBe('WRONG_BOX');
    const ended = thief.ended;
    thief.client.publish(boxTopic(BOX1.terminalCode, 'up'), asBox1, { qos: 1 });
    await ended;
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
    expect(box1.of('refused')).toEqual([]);
  });

  it('THR-21 has nothing in hand once its secret is forgotten, although its copy of the box runs at that moment', async () => {
    const gateway = await gatewayWith({});
    const box = await enrolled(gateway);
    const old = (await readFile(join(box.dataDir, 'secret'), 'utf8')).trim();
    await box.close();
    const copy = await temporaryFolder();
    await cp(box.dataDir, copy, { recursive: true });
    const enrolment = { enrolment: { url: gateway.origin } };
    const thief = await bootRealBox(NAMES, { transport: 'mqtt', url: gateway.mqttUrl }, copy, enrolment);
    await eventually('the thief to be in', async () => (await thief.status()).online);
    const before = gateway.log.filter((it) => it.event === 'box-online').length;
    await operate(gateway, `/boxes/${NAMES.terminalCode}/forget`);
    await eventually('the thief to be out', async () => !(await thief.status()).online);
    expect(await pushedTo2(gateway, 'DH1')).toBe('FAILED');
    // Both show a code: that of the box in the shop is what its owner types.
    const again = await enrolled(gateway, await temporaryFolder());
    const current = (await readFile(join(again.dataDir, 'secret'), 'utf8')).trim();
    expect(await pushedTo2(gateway, 'DH2')).toBe('SUCCESS');
    expect((await again.status()).order?.orderId).toBe('DH2');
    expect((await thief.status()).online).toBe(false);
    expect(gateway.log.filter((it) => it.event === 'box-online')).toHaveLength(before + 1);
    await thief.close();
    await again.close();
    await expectWorthless(gateway, old, current);
  });

  it('THR-21 has nothing in hand once its secret is another in the configuration', async () => {
    const dataDir = await temporaryFolder();
    const [old, current] = ['The-secret-of-this-box-before', 'The-secret-of-this-box-after'];
    const first = await gatewayWith({ secret: old }, dataDir);
    const link = { transport: 'mqtt', url: first.mqttUrl };
    const box = await bootRealBox({ ...NAMES, secret: old }, link);
    await eventually('online', async () => (await box.status()).online);
    expect(await pushedTo2(first, 'DH1')).toBe('SUCCESS');
    await first.close();
    await expectWorthless(await gatewayWith({ secret: current }, dataDir), old, current);
  });
});

async function filesIn(folder: string): Promise<Map<string, { bytes: Buffer; mode: number }>> {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((it) => it.isFile());
  const read = names.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name);
    return [name, { bytes: await readFile(path), mode: (await stat(path)).mode & 0o777 }] as const;
  });
  return new Map(await Promise.all(read));
}
