import { expect, it } from 'vitest';
import { BoxQueues } from '../../../src/gateway/boxes/box-queues.ts';
import type { BoxConnection } from '../../../src/gateway/boxes/connection.ts';
import { DialectBox, type DialectWire } from '../../../src/gateway/boxes/dialect/dialect-box.ts';
import type { Outcome } from '../../../src/gateway/boxes/dialect/notice-sender.ts';
import { greeting, paidNotice, payloadFor } from '../../../src/gateway/boxes/dialect/notices.ts';
import type { Box } from '../../../src/gateway/common/directory.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { boxIdOf, boxIdTopic } from '../../../src/protocol/dialect.ts';
import { LIMITS } from '../../../src/protocol/fields.ts';
import type { DownBody, DownOf, UpMessage } from '../../../src/protocol/messages.ts';
import type { OrderStatus } from '../../../src/protocol/statuses.ts';
import { keptLog } from '../../support/kept-log.ts';
import { eventually } from '../../support/net.ts';
import { ACCOUNT, qrFor } from '../harness.ts';
import { only, storedOf, worldOf } from '../stage-records.ts';
import { VIETQR_BOX } from './support.ts';

const STARTED_MS = new VirtualClock().wallMs();
const [FIRST, SECOND] = ['6f1c0000-0000-4000-8000-000000000001', '6f1c0000-0000-4000-8000-000000000002'];

const payment = (change: Partial<Extract<DownBody, { type: 'payment' }>> = {}): DownBody => ({
  type: 'payment',
  transactionId: '46f00000-0000-4000-8000-000000000001',
  pushId: null,
  orderId: '',
  amount: 50_000,
  content: 'DH001',
  ...{ bankAccount: ACCOUNT.bankAccount, bankCode: ACCOUNT.bankCode, paidAtMs: STARTED_MS + 1, repeated: false },
  ...{ late: false, due: null },
  ...change,
});

const show = (pushId: string): DownBody => ({
  ...{ type: 'show', pushId, orderId: 'DH001', amount: 50_000, content: 'DH001', ...ACCOUNT, qrCode: qrFor() },
  ...{ expiresAtMs: STARTED_MS + 300_000, expiresInMs: 300_000, sessionMs: 0 },
});
const withdraw = (pushId: string): DownBody => ({ type: 'withdraw', pushId, why: 'cancelled' });

/** A push that an earlier run of the gateway has shown. */
const LEFT = {
  ...{ id: FIRST, order_id: 'DH001', amount: 50_000, qr_code: qrFor(), bank_account: ACCOUNT.bankAccount },
  expires_at_ms: STARTED_MS + 9_000_000_000_000,
};

/** How the order of that push stands; `ended` is a push that is over. */
type LeftStatus = OrderStatus | 'ended';

/** A box that listens, at a hub and a store of which only the answers are known. */
async function listening(stored: 'first' | 'repeated' = 'first', left?: { status: LeftStatus }) {
  const clock = new VirtualClock();
  const said: string[] = [];
  const reported: unknown[][] = [];
  const reports: UpMessage[] = [];
  const known = { ...VIETQR_BOX, dialect: 'vietqr', disabled: false, secret: undefined, enrols: false } as const;
  const state: { outcome: Outcome; sessionId: string; connection?: BoxConnection; box?: Box; takes: boolean } = {
    outcome: 'taken',
    sessionId: '',
    box: known,
    takes: true,
  };
  const { log } = keptLog(clock);
  const records = storedOf({
    directory: { accountOf: async () => ACCOUNT, box: async () => state.box },
    store: {
      pushes: {
        newestShown: async () => (left?.status === 'ended' ? undefined : left && LEFT),
        hasPushSince: async () => left !== undefined,
      },
      orders: {
        idByPush: async () => 'order',
        find: async () => (left && left.status !== 'ended' ? { status: left.status } : undefined),
      },
      payments: {
        report: async (...args) => {
          reported.push(['report', ...args.slice(0, 3)]);
          return stored;
        },
        markSent: async (...args) => void reported.push(['sent', ...args]),
        unreport: async (...args) => void reported.push(['unreport', ...args]),
        dropNotice: async (...args) => void reported.push(['drop', ...args]),
      },
    },
  });
  const wire = only<DialectWire>({
    ...{ queues: new BoxQueues(log), paidMessage: '{amount}', startedMs: STARTED_MS },
    hub: {
      news: { meet: async () => ({}) },
      session: () => ({ sessionId: state.sessionId }),
      disconnected: () => undefined,
      receive: async (_code, connection, message) => {
        reports.push(message);
        if (state.takes) Object.assign(state, { connection, sessionId: message.sessionId });
        return true;
      },
    },
    wrapConnect: (connect) => connect,
    tellsListeners: () => true,
    publish: async (_topic, payload) => {
      if (state.outcome !== 'nobody') said.push(JSON.parse(payload).notificationType);
      return state.outcome;
    },
  });
  const box = new DialectBox(known, 'vietqr/boxId/sample', worldOf({ clock, log }), records, wire);
  await box.greet();
  const { sessionId } = state;
  const send = (body: DownBody) => {
    const head = { v: 1, id: systemRandom.uuid(), sentAtMs: STARTED_MS, sessionId } as const;
    state.connection?.send({ ...head, ...body });
  };
  const ended = () => reports.filter((it) => it.type === 'ended').map((it) => it.pushId);
  return { clock, box, state, said, reported, reports, send, ended };
}

it('VQD-6 a notice is stored as maybe sent before it is sent, as sent then, and reported', async () => {
  const { send, said, reported, reports } = await listening();
  send(payment());
  await eventually('the report', () => reports.at(-1)?.type === 'paid');
  expect(said).toEqual(['N16', 'N05']);
  expect(reported).toEqual([
    ['report', expect.any(String), VIETQR_BOX.terminalCode, false],
    ['sent', expect.any(String), VIETQR_BOX.terminalCode],
  ]);
});

it.each([
  ['that is stored as sent', 'repeated', payment({ repeated: true })],
  ['that an earlier run may have sent', 'first', payment({ repeated: true, paidAtMs: STARTED_MS - 1 })],
] as const)(
  'VQD-6 a notice %s is not sent again, and the hub is told that no more comes',
  async (_what, stored, body) => {
    const { send, said, reported, reports } = await listening(stored);
    send(body);
    await eventually('the report', () => reports.at(-1)?.type === 'paid');
    expect(said).toEqual(['N16']);
    expect(reported).toEqual([['report', expect.any(String), VIETQR_BOX.terminalCode, false]]);
  },
);

it('VQD-6 a notice of this run that was never sent is sent with the next session', async () => {
  const { send, said, reports } = await listening();
  send(payment({ repeated: true }));
  await eventually('the report', () => reports.at(-1)?.type === 'paid');
  expect(said).toEqual(['N16', 'N05']);
});

it.each([
  ['nobody', ['report', 'unreport']],
  ['unknown', ['report']],
] as const)('VQD-6 a notice that %s took is only sent again if that is sure', async (outcome, changes) => {
  const { send, state, reported, reports } = await listening();
  state.outcome = outcome;
  send(payment());
  await eventually('the change', () => reported.length === changes.length);
  expect(reported.map(([what]) => what)).toEqual(changes);
  expect(reports.map((it) => it.type)).toEqual(['hello']);
});

it('VQD-8 a payment that is late by the hub is dropped, reported to the hub, and never sent', async () => {
  const { send, said, reported, reports } = await listening();
  send(payment({ late: true }));
  await eventually('the report', () => reports.at(-1)?.type === 'paid');
  expect(said).toEqual(['N16']);
  expect(reported.map(([what]) => what)).toEqual(['drop']);
});

it('VQD-5 the end of a QR is sent only while that QR, or none that is known, is on the screen', async () => {
  const { send, said, ended } = await listening();
  send(withdraw(FIRST));
  await eventually('ended', () => ended().length === 1);
  send(show(SECOND));
  send(withdraw(FIRST));
  await eventually('ended again', () => ended().length === 2);
  expect(said).toEqual(['N16', 'N12', 'N17']);
  send(withdraw(SECOND));
  await eventually('the other ended', () => ended().length === 3);
  expect(said.at(-1)).toBe('N12');
});

it.each<[status: LeftStatus, notices: string[]]>([
  ['shown', ['N16', 'N17']],
  ['paid', ['N16', 'N12']],
  ['ended', ['N12', 'N16']],
])('VQD-5 a QR of an earlier run, whose order is %s now', async (status, notices) => {
  const { said } = await listening('first', { status });
  await eventually('both notices', () => said.length === notices.length);
  expect(said).toEqual(notices);
});

it('VQD-6 a text that may have been heard of another payment gets a code of the transaction', () => {
  const message = (known: boolean) => paidNotice(payment() as DownOf<'payment'>, '{amount}', () => known).notice;
  expect(message(false)).toMatchObject({ message: '50000' });
  expect(message(true)).toMatchObject({ message: '50000, mã giao dịch 000001' });
});

it('VQD-5 AGT-4 a push that was withdrawn before it came is not shown', async () => {
  const { send, said, ended } = await listening();
  send(withdraw(FIRST));
  send(show(FIRST));
  await eventually('both ends', () => ended().length === 2);
  expect(said).toEqual(['N16', 'N12']);
});

it('VQD-4 the longest greeting and the longest notice of a payment fit the buffer of firmware', () => {
  const topic = boxIdTopic(boxIdOf('VVB000001', 's'.repeat(64)));
  const account = { bankAccount: 'A'.repeat(19), bankCode: 'MB', userBankName: 'Ễ'.repeat(LIMITS.userBankNameMax) };
  expect(payloadFor(topic, greeting('VVB000001', account))).toBeDefined();
  const template = `${'ễ'.repeat(94)}{amount}{content}{time}`;
  const longest = { ...payment(), amount: LIMITS.amountMax, content: '"'.repeat(LIMITS.pushContentMax) };
  const { notice } = paidNotice(longest as DownOf<'payment'>, template, () => true);
  expect(payloadFor(topic, notice)).toBeDefined();
});

it('VQD-5 a box whose session the hub has ended begins another as soon as it can, and keeps its QR', async () => {
  const { clock, state, said, reports, send } = await listening();
  send(show(FIRST));
  await eventually('the report', () => reports.at(-1)?.type === 'shown');
  const { sessionId } = state;
  const hellos = () => reports.filter((it) => it.type === 'hello');
  state.takes = false;
  state.connection?.end();
  for (const seconds of [1, 2]) await clock.advance(seconds * 1_000);
  await eventually('two attempts', () => hellos().length === 3);
  state.takes = true;
  await eventually('the third', async () => {
    await clock.advance(1_000);
    return state.sessionId !== sessionId;
  });
  expect(hellos().at(-1)).toMatchObject({ shownPushId: FIRST });
  await eventually('its QR', () => said.length === 3);
  expect(said).toEqual(['N16', 'N17', 'N17']);
  await clock.advance(60_000);
  expect(hellos()).toHaveLength(4);
});

it('VQD-5 a box that lost its right to a session, or that has gone, begins none', async () => {
  for (const leave of [
    ({ state }: Awaited<ReturnType<typeof listening>>) => delete state.box,
    ({ box }: Awaited<ReturnType<typeof listening>>) => box.lose('it has gone'),
  ]) {
    const at = await listening();
    at.state.connection?.end();
    leave(at);
    await at.clock.advance(60_000);
    expect(at.reports.filter((it) => it.type === 'hello')).toHaveLength(1);
  }
});
