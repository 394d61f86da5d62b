import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { crc16 } from '../../src/protocol/crc16.ts';
import { signingKeyOf } from '../../src/protocol/keys.ts';
import type { DownBody, DownMessage } from '../../src/protocol/messages.ts';
import { GatewaySeal, readUp } from '../../src/protocol/seal.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { ACCOUNT, BOX1, OTHER_ACCOUNT, qrFor } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { headOf, said, startHostileRelay } from './hostile-relay.ts';
import { bootRealBox } from './real-box.ts';

const [UP, DOWN] = [boxTopic(BOX1.terminalCode, 'up'), boxTopic(BOX1.terminalCode, 'down')];
const OTHERS = { bin: '970436', account: OTHER_ACCOUNT.bankAccount };

/** A real box with a gateway that signs as the right one would, whatever it is told to. */
async function signedFor() {
  const relay = await startHostileRelay();
  const challenge = crypto.randomUUID();
  await relay.inject(GATEWAY_PRESENCE_TOPIC, JSON.stringify({ v: 1, online: true, sessionId: challenge }), true);
  const { terminalCode, serialNumber, secret } = BOX1;
  const box = await bootRealBox({ terminalCode, serialNumber, secret }, { transport: 'mqtt', url: relay.url });
  const key = signingKeyOf(systemRandom.secret(32));
  // On a slow machine the first hello may have been given up for a second one.
  const hello = await relay.message(UP, 'hello');
  const read = readUp(terminalCode, hello);
  if (!read.ok) throw new Error(read.reason);
  const greeted = GatewaySeal.greet({ terminalCode, secret }, challenge, read.value, systemClock);
  if (!greeted.ok) throw new Error(greeted.reason);
  const sessionId = String(said(hello)?.sessionId);
  const tell = async (body: DownBody) => {
    const head = { v: 1, id: crypto.randomUUID(), sentAtMs: Date.now(), sessionId } as const;
    const sealed = greeted.value.seal.seal({ ...head, ...body } as DownMessage, key);
    expect(headOf(sealed)).toMatchObject({ kid: key.kid, terminalCode });
    await relay.inject(DOWN, sealed);
  };
  await tell({ type: 'welcome', link: ACCOUNT, openPushIds: [] });
  await eventually('online', async () => (await box.status()).online);
  onTestFinished(() => box.close());
  const answers = (type: string, pushId: string) =>
    relay
      .messages(UP, type)
      .map(said)
      .find((it) => it?.pushId === pushId);
  return { box, tell, answers };
}

const show = (change: object): Extract<DownBody, { type: 'show' }> => ({
  ...{ type: 'show', pushId: crypto.randomUUID(), orderId: 'DH001', amount: 50_000, content: 'DH001', ...ACCOUNT },
  ...{ qrCode: qrFor(), expiresAtMs: Date.now() + 300_000, expiresInMs: 300_000, sessionMs: 0, ...change },
});

/** With the CRC that it should have. */
function withCrc(payload: string): string {
  const covered = payload.slice(0, -4);
  return covered + crc16(covered);
}

const { userBankName: _name, ...others } = OTHER_ACCOUNT;
const SWAPS: [string, string, object][] = [
  ['the QR of another account', 'QR_MISMATCH', { qrCode: qrFor({ account: OTHERS.account }) }],
  ['the same account at another bank', 'QR_MISMATCH', { qrCode: qrFor({ bin: OTHERS.bin }) }],
  ['another account at another bank', 'QR_MISMATCH', { qrCode: qrFor(OTHERS) }],
  ['another account, and fields that say so too', 'QR_MISMATCH', { qrCode: qrFor(OTHERS), ...OTHER_ACCOUNT }],
  ['another account behind fields of it, but for the name', 'QR_MISMATCH', { qrCode: qrFor(OTHERS), ...others }],
  ['fields of another account', 'QR_MISMATCH', OTHER_ACCOUNT],
  ['another bank in the fields', 'QR_MISMATCH', { bankCode: 'VCB' }],
  ['a greater amount in the QR', 'QR_MISMATCH', { qrCode: qrFor({ amount: 500_000 }) }],
  ['a smaller amount in the QR', 'QR_MISMATCH', { qrCode: qrFor({ amount: 5_000 }) }],
  ['another amount in the fields', 'QR_MISMATCH', { amount: 50_001 }],
  ['a QR without an amount', 'QR_MISMATCH', { qrCode: qrFor({ amount: undefined, initiation: 'static' }) }],
  ['a QR to a card of the same number', 'QR_MISMATCH', { qrCode: qrFor({ service: 'card' }) }],
  ['a changed digit of the account', 'QR_INVALID', { qrCode: qrFor().replace('0123456789', '0123456788') }],
  [
    'a changed digit of the account, with its CRC',
    'QR_MISMATCH',
    { qrCode: withCrc(qrFor().replace('0123456789', '0123456788')) },
  ],
  ['a second account behind the first', 'QR_INVALID', { qrCode: twice() }],
  ['an address of the web', 'QR_INVALID', { qrCode: 'https://pay.example/?to=SHOP2ACC' }],
];

/** The account template of another account after that of the right one: readers differ in which of them they take. */
function twice(): string {
  const template = (payload: string) => /38\d\d/.exec(payload)?.[0] ?? '';
  const taken = (payload: string) => {
    const at = payload.indexOf(template(payload));
    return payload.slice(at, at + 4 + Number(template(payload).slice(2)));
  };
  const payload = qrFor();
  return withCrc(payload.replace(taken(payload), `${taken(payload)}${taken(qrFor(OTHERS))}`));
}

it('THR-23 whoever can have anything signed for a box has it show no QR but one for its account and the amount beside it', async () => {
  const { box, tell, answers } = await signedFor();
  const honest = show({});
  await tell(honest);
  await eventually('the honest QR', () => answers('shown', honest.pushId));
  for (const [what, code, change] of SWAPS) {
    const swapped = show({ orderId: 'EVIL', ...change });
    await tell(swapped);
    const rejected = await eventually(what, () => answers('rejected', swapped.pushId));
    expect([what, rejected.code, answers('shown', swapped.pushId)]).toEqual([what, code, undefined]);
    expect((await box.status()).order).toMatchObject({ orderId: 'DH001', qrCode: qrFor() });
  }
  // Who signs tells the account once, at the begin of a session; the box says when it is another than before.
  await tell({ type: 'welcome', link: OTHER_ACCOUNT, openPushIds: [] });
  const swapped = show({ orderId: 'EVIL', qrCode: qrFor(OTHERS), ...OTHER_ACCOUNT });
  await tell(swapped);
  expect((await eventually('the answer', () => answers('rejected', swapped.pushId))).code).toBe('QR_MISMATCH');
  expect(box.refusals()).toEqual([]);
});
