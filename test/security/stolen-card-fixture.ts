import { expect } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { signingKeyOf } from '../../src/protocol/keys.ts';
import { BoxSeal } from '../../src/protocol/seal.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { ACCOUNT, BOX1, qrFor, type TestGateway, testGateway } from '../gateway/harness.ts';
import { type Login, loginAs } from '../gateway/mqtt-login.ts';
import { loginStatus } from '../support/asking-box.ts';
import { connectFakeBox, type FakeBoxIdentity } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { said } from './hostile-relay.ts';
import { bootRealBox, type RealBox } from './real-box.ts';

export const NAMES = { terminalCode: 'VVB000002', serialNumber: 'VVB900002' };
export const ADMIN = 'A-sample-of-an-admin-token';
export const refusals = (gateway: TestGateway) => gateway.log.filter((it) => it.event === 'message-refused');

export const gatewayWith = (box2: object, dataDir?: string) =>
  testGateway({
    ...(dataDir === undefined ? {} : { dataDir }),
    config: { adminToken: ADMIN, boxes: [BOX1, { ...NAMES, account: ACCOUNT.bankAccount, ...box2 }] },
  });

/** What an operator does. */
export async function operate(gateway: TestGateway, path: string, body: object = {}): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${ADMIN}` };
  const answer = await fetch(`${gateway.origin}/_mock${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect([path, answer.status]).toEqual([path, 200]);
}

export async function enrolled(gateway: TestGateway, dataDir?: string): Promise<RealBox> {
  const enrolment = { enrolment: { url: gateway.origin } };
  const box = await bootRealBox(NAMES, { transport: 'mqtt', url: gateway.mqttUrl }, dataDir, enrolment);
  const code = await eventually('a code', async () => (await box.status()).enrolment?.code);
  await operate(gateway, `/enrolments/${NAMES.terminalCode}/accept`, { code });
  await eventually('online', async () => (await box.status()).online);
  return box;
}

export async function pushedTo2(gateway: TestGateway, orderId: string) {
  const request = { ...NAMES, orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) };
  return (await gateway.sendQr(request)).body.status;
}

/** What is sealed as by a box with these names and this secret, as an answer to the live gateway. */
export async function helloBy({ client, received }: Login, identity: FakeBoxIdentity): Promise<string> {
  await client.subscribeAsync(GATEWAY_PRESENCE_TOPIC, { qos: 1 });
  const birth = await eventually('the gateway', () => received.find((it) => it.topic === GATEWAY_PRESENCE_TOPIC));
  const { terminalCode, serialNumber } = identity;
  const sessionId = crypto.randomUUID();
  const head = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'hello', sessionId } as const;
  const hello = { ...head, terminalCode, serialNumber, agentVersion: '', display: '', shownPushId: null };
  const seal = new BoxSeal({ ...identity, sessionId }, signingKeyOf(systemRandom.secret(32)), systemClock);
  return seal.seal(hello, JSON.parse(birth.payload).sessionId);
}

export async function refusedByGateway(gateway: TestGateway, { client }: Login, terminalCode: string, hello: string) {
  const before = refusals(gateway).length;
  await client.publishAsync(boxTopic(terminalCode, 'up'), hello, { qos: 1 });
  await eventually('a refusal', () => refusals(gateway).length > before);
  return refusals(gateway)[before]?.code;
}

/** All that a secret opened is shut to it, and what is said under another cannot be read as one's own. */
export async function expectWorthless(gateway: TestGateway, old: string, current: string) {
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
