import { createHmac } from 'node:crypto';
import { expect } from 'vitest';
import { systemRandom } from '../../src/lib/random.ts';
import { writeJws } from '../../src/protocol/jws.ts';
import { signingKeyOf } from '../../src/protocol/keys.ts';
import { boxTopic } from '../../src/protocol/topics.ts';
import { BOX1, OTHER_ACCOUNT, qrFor, type TestGateway, testGateway } from '../gateway/harness.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { type HostileRelay, headOf, startHostileRelay } from './hostile-relay.ts';
import { type RealBox, startRealBox } from './real-box.ts';

export const [UP, DOWN, PRESENCE] = (['up', 'down', 'presence'] as const).map((it) =>
  boxTopic(BOX1.terminalCode, it),
) as [string, string, string];
/** The partner hears of no payment, which is not what this is about. */
export const NOBODY = { url: 'http://127.0.0.1:9/' };
export const SUCCESS = { status: 'SUCCESS', message: '' };

export interface Stage {
  relay: HostileRelay;
  gateway: TestGateway;
  box: RealBox;
  dataDir: string;
}

export const startGatewayAt = (relay: HostileRelay, dataDir: string, confirmTimeoutMs = 20_000) =>
  testGateway({
    dataDir,
    callback: NOBODY,
    config: { mqtt: { url: relay.url, username: 'gateway', password: 'x' }, confirmTimeoutMs },
  });

/** A real gateway and a real box at a broker that neither should trust. */
export async function stage(confirmTimeoutMs?: number): Promise<Stage> {
  const relay = await startHostileRelay();
  const dataDir = await temporaryFolder();
  const gateway = await startGatewayAt(relay, dataDir, confirmTimeoutMs);
  const box = await startRealBox(BOX1, { transport: 'mqtt', url: relay.url });
  return { relay, gateway, box, dataDir };
}

/** Pushes an order of its own QR; what the partner is answered. */
export async function pushed(gateway: TestGateway, orderId: string, { terminalCode, serialNumber } = BOX1) {
  const request = { orderId, content: orderId, qrCode: qrFor({ purpose: orderId }), terminalCode, serialNumber };
  return (await gateway.sendQr(request)).body;
}

/** The name under which a box refuses what the relay tells it; the screen stays as it was. */
export async function refusedByBox({ relay, box }: Stage, payload: string, retain = false): Promise<unknown> {
  const before = box.refusals().length;
  const screen = (await box.status()).order?.qrCode;
  await relay.inject(DOWN, payload, retain);
  await eventually('a refusal', () => box.refusals().length > before);
  expect(await box.status()).toMatchObject({ online: true, state: screen === undefined ? 'idle' : 'showing' });
  expect((await box.status()).order?.qrCode).toBe(screen);
  return box.refusals()[before];
}

export const refusalsOf = (gateway: TestGateway) => gateway.log.filter((it) => it.event === 'message-refused');

/** The name under which a gateway refuses what the relay says for a box. */
export async function refusedByGateway(relay: HostileRelay, gateway: TestGateway, payload: string, topic = UP) {
  const before = refusalsOf(gateway).length;
  await relay.inject(topic, payload);
  await eventually('a refusal', () => refusalsOf(gateway).length > before);
  return refusalsOf(gateway)[before]?.code;
}

/** What the relay would seal itself: under a key of its own, introduced with all that it has ever seen pass. */
export function forgery(
  relay: HostileRelay,
  body: object,
  sessionId: unknown,
  { from, introduce = true, challenge }: { from: 'box' | 'gateway'; introduce?: boolean; challenge?: string },
) {
  const key = signingKeyOf(systemRandom.secret(32));
  const { terminalCode } = BOX1;
  const login = relay.passwords.get(terminalCode) ?? '';
  const answered = challenge ?? String(headOf(relay.messages(UP, 'hello').at(-1) ?? '').challenge);
  const asked: { challenge?: string } = from === 'box' ? { challenge: answered } : {};
  // By hand, so that a proof under what the broker knows is one, however the project makes its own.
  const parts = ['paybox/v1 key', from, terminalCode, sessionId, asked.challenge ?? '', key.kid];
  const proof = createHmac('sha256', login).update(parts.join('\n')).digest('base64url');
  const introduction = introduce ? { jwk: key.jwk, proof, ...asked } : {};
  const head = { terminalCode, seq: 1_000, sessionMs: 0, expiresMs: 86_400_000, helloMs: 2 ** 40, ...introduction };
  const message = { v: 1, id: crypto.randomUUID(), sentAtMs: Date.now(), ...body, sessionId };
  return writeJws(key, head, JSON.stringify(message));
}

export const showOf = (change: object) => ({
  ...{ type: 'show', pushId: crypto.randomUUID(), orderId: 'EVIL', amount: 50_000, content: 'EVIL', ...OTHER_ACCOUNT },
  ...{ qrCode: qrFor({ bin: '970436', account: OTHER_ACCOUNT.bankAccount }), expiresInMs: 300_000, sessionMs: 0 },
  ...{ expiresAtMs: Date.now() + 300_000, ...change },
});

/** Payments that the gateway believes to have been announced by a box. */
export async function reported(gateway: TestGateway): Promise<unknown[]> {
  const payments = await gateway.mock<{ boxes: { reportedAt: string | null }[] }[]>('/payments');
  return payments.flatMap(({ boxes }) => boxes.map((it) => it.reportedAt)).filter((it) => it !== null);
}

export const pay = async (gateway: TestGateway, content: string) => (await gateway.testCallback({ content })).body;
