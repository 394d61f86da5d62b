import { decodeProtectedHeader } from 'jose';
import { describe, expect, it } from 'vitest';
import { keys } from '../../src/commands/actions/keys.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { signingKeyOf } from '../../src/protocol/keys.ts';
import { BoxSeal } from '../../src/protocol/seal.ts';
import { boxTopic } from '../../src/protocol/topics.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { BOX1, type TestGateway, testGateway } from './harness.ts';
import { loginAs } from './mqtt-login.ts';

const kidOf = async ({ origin }: TestGateway) => {
  const { kid } = (await (await fetch(`${origin}/_mock/keys`)).json()) as { kid: string };
  return kid;
};
const rotate = (gateway: TestGateway) => fetch(`${gateway.origin}/_mock/keys/rotate`, { method: 'POST' });
const refusals = (gateway: TestGateway) => gateway.logged('message-refused');

describe.each(['mqtt', 'http'] as const)('the signing key of a gateway, with a box over %s', (transport) => {
  it('SIG-5 is rotated in the middle of a session, and nothing fails', async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport });
    const before = await kidOf(gateway);
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
    expect((await rotate(gateway)).status).toBe(200);
    expect(await kidOf(gateway)).not.toBe(before);
    expect((await gateway.sendQr({ orderId: 'DH002' })).body.status).toBe('SUCCESS');
    expect(box.of('show')).toHaveLength(2);
    expect(gateway.logged('box-connected')).toHaveLength(1);
    expect(refusals(gateway)).toEqual([]);
  });
});

it('SIG-5 outlives a restart of the gateway, and a rotation does too', async () => {
  const dataDir = await temporaryFolder();
  const first = await testGateway({ dataDir });
  await rotate(first);
  const kid = await kidOf(first);
  await first.close();
  expect(await kidOf(await testGateway({ dataDir }))).toBe(kid);
});

it('SIG-5 is rotated by a command', async () => {
  const gateway = await testGateway();
  const before = await kidOf(gateway);
  await keys({ gateway: gateway.origin, rotate: true });
  expect(await kidOf(gateway)).not.toBe(before);
});

it('SIG-2 SIG-3 begins no session with the hello of an earlier one, as long as the gateway runs', async () => {
  const gateway = await testGateway();
  const watcher = await loginAs(gateway, BOX1);
  const hellos: string[] = [];
  const first = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt', hello: false });
  const { terminalCode, serialNumber } = BOX1;
  const head = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'hello', sessionId: first.sessionId };
  const names = { terminalCode, serialNumber, agentVersion: '', display: '', shownPushId: null };
  hellos.push(first.sealed({ ...head, ...names }));
  expect(decodeProtectedHeader(hellos[0] ?? '')).toMatchObject({ alg: 'EdDSA', terminalCode, seq: 1 });
  await first.sendText(hellos[0] ?? '');
  await first.next('welcome');
  await first.close();
  const second = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
  await watcher.client.publishAsync(boxTopic(terminalCode, 'up'), hellos[0] ?? '', { qos: 1 });
  await eventually('the refusal', () => refusals(gateway).length === 1);
  expect(refusals(gateway)).toMatchObject([{ code: 'MESSAGE_REPLAYED' }]);
  expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
  expect(second.of('refused')).toEqual([]);
});

it('SIG-2 SIG-3 begins no session with a hello that was held back until a later one of the box was taken', async () => {
  const gateway = await testGateway();
  const { client } = await loginAs(gateway, BOX1);
  const { terminalCode, serialNumber } = BOX1;
  const names = { terminalCode, serialNumber, agentVersion: '', display: '', shownPushId: null };
  const helloOf = (sessionId: string) =>
    ({ v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'hello', sessionId, ...names }) as const;
  const other = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt', hello: false });
  const { challenge } = decodeProtectedHeader(other.sealed(helloOf(other.sessionId))) as { challenge: string };
  const [key, clock] = [signingKeyOf(systemRandom.secret(32)), new VirtualClock()];
  const sealed = async (sessionId: string) => {
    await clock.advance(1);
    return new BoxSeal({ ...BOX1, sessionId }, key, clock).seal(helloOf(sessionId), challenge);
  };
  const [held, later] = [crypto.randomUUID(), crypto.randomUUID()];
  const [first, second] = [await sealed(held), await sealed(later)];
  await client.publishAsync(boxTopic(terminalCode, 'up'), second, { qos: 1 });
  await client.publishAsync(boxTopic(terminalCode, 'up'), first, { qos: 1 });
  await eventually('the refusal', () => refusals(gateway).length === 1);
  expect(refusals(gateway)).toMatchObject([{ code: 'MESSAGE_REORDERED' }]);
  const session = () => gateway.mock<{ online: boolean; sessionId?: string }>(`/boxes/${terminalCode}`);
  // A hello is verified before it is answered, for which the store is read.
  await eventually('the session', async () => (await session()).online);
  expect(await session()).toMatchObject({ online: true, sessionId: later });
});
