import { crc16 } from '../../../protocol/crc16.ts';
import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import type { Trial } from '../check-context.ts';
import type { Body } from '../gateway-transcript.ts';
import { qrOf } from '../orders.ts';
import { oldEnough, refusedAs } from './pushes.ts';

/** Of another holder, at another bank. */
const FOREIGN_ACCOUNT = '9876543210';
const FOREIGN_BANK = 'VCB';
const FOREIGN_BIN = '970436';

/** Pushes that would have somebody pay another amount, or somebody else. */
const WRONG: readonly [title: string, code: string, make: (trial: Trial) => Body<'show'>][] = [
  ['no VietQR', 'QR_INVALID', (trial) => trial.order({ qrCode: 'https://pay.example/4711' })],
  ['a QR with a wrong CRC', 'QR_INVALID', (trial) => withQr(trial, (qr) => `${qr.slice(0, -4)}${otherCrc(qr)}`)],
  ['a QR that is cut off', 'QR_INVALID', (trial) => withQr(trial, (qr) => qr.slice(0, -10))],
  [
    'a QR with a second merchant account',
    'QR_INVALID',
    (trial) => withQr(trial, (qr) => withField(qr, '26', '0004test')),
  ],
  ['a QR with a fee on top', 'QR_INVALID', (trial) => withQr(trial, (qr) => withField(qr, '56', '5000'))],
  ['another amount in the QR', 'QR_MISMATCH', (trial) => mismatched(trial, (order) => ({ amount: order.amount + 1 }))],
  ['a QR without an amount', 'QR_MISMATCH', (trial) => mismatched(trial, () => ({ amount: undefined }))],
  ['another account in the QR', 'QR_MISMATCH', (trial) => mismatched(trial, () => ({ account: FOREIGN_ACCOUNT }))],
  ['another bank in the QR', 'QR_MISMATCH', (trial) => mismatched(trial, () => ({ bin: FOREIGN_BIN }))],
  ['a QR to a card of that number', 'QR_MISMATCH', (trial) => mismatched(trial, () => ({ service: 'card' }))],
  ['another account in QR and fields', 'QR_MISMATCH', (trial) => trial.order({ bankAccount: FOREIGN_ACCOUNT })],
  ['another bank in QR and fields', 'QR_MISMATCH', (trial) => trial.order({ bankCode: FOREIGN_BANK })],
  ['another account in the fields', 'QR_MISMATCH', (trial) => ({ ...trial.order(), bankAccount: FOREIGN_ACCOUNT })],
  ['another bank in the fields', 'QR_MISMATCH', (trial) => ({ ...trial.order(), bankCode: FOREIGN_BANK })],
];

/** Payloads that are none, each by the clause that says so. */
const INVALID: readonly [clause: string, title: string, change: (qr: string) => string][] = [
  ['QRP-1', 'a QR with a length that is no number', (qr) => withRaw(qr, '80XXab')],
  ['QRP-2', 'a QR of another currency', (qr) => sealedQr(qr.replace('5303704', '5303840'))],
  ['QRP-2', 'a QR of another country', (qr) => sealedQr(qr.replace('5802VN', '5802US'))],
  ['QRP-3', 'a QR whose CRC is in small letters', withSmallCrc],
  ['QRP-4', 'a QR with a tag twice', (qr) => withField(qr, '58', 'VN')],
  ['QRP-4', 'a QR with an empty tag', (qr) => withField(qr, '80', '')],
  ['QRP-4', 'a QR with a space after it', (qr) => `${qr} `],
  ['QRP-4', 'a QR that does not begin with 00', (qr) => sealedQr(qr.slice('000201'.length))],
  ['QRP-5', 'a QR with another first character', (qr) => `1${qr.slice(1)}`],
  ['QRP-5', 'a QR with another character in its account', (qr) => qr.replace('QRIBFTTA', 'QRIBFTTB')],
  ['QRP-7', 'a QR with an account in an unreserved tag', (qr) => withField(qr, '80', '0312345678')],
  ['QRP-7', 'a QR with an account in a language', (qr) => withField(qr, '64', '0002VI01100312345678')],
  ['QRP-7', 'a QR with a tip', (qr) => withField(qr, '55', '01')],
];

/** Payloads that are unlike ours, and right. */
const UNLIKE_OURS: readonly [clause: string, title: string, change: (qr: string) => string][] = [
  [
    'QRP-2',
    'a QR with its tags in another order',
    (qr) => sealedQr(qr.replace('5802VN', '').replace('5303704', '5802VN5303704')),
  ],
  ['QRP-7', 'a QR with a tag that says no account and no amount', (qr) => withField(qr, '80', 'bench')],
];

/** Clause AGT-1 of PROTOCOL.md, and what display and limits refuse. */
export const REFUSAL_CHECKS = [
  ...WRONG.map(([title, code, make]) =>
    boxCheck('AGT-1', `refuses ${title} as ${code}`, async (trial) => {
      const order = make(trial);
      trial.tell(order);
      await refusedAs(trial, order, code);
    }),
  ),
  ...INVALID.map(([clause, title, change]) =>
    boxCheck(clause, `refuses ${title} as QR_INVALID`, async (trial) => {
      const order = withQr(trial, change);
      trial.tell(order);
      await refusedAs(trial, order, 'QR_INVALID');
    }),
  ),
  ...UNLIKE_OURS.map(([clause, title, change]) =>
    boxCheck(clause, `shows ${title}`, async (trial) => {
      const order = withQr(trial, change);
      trial.tell(order);
      const verdict = await trial.verdictOn(order.pushId);
      if (verdict.type === 'rejected') throw new Mismatch(`rejected with ${verdict.code}: ${verdict.reason}`);
    }),
  ),
  boxCheck('AGT-1', 'refuses a push whose lifetime was over before it came', async (trial) => {
    await oldEnough(trial, 2_000);
    const { sessionMs, ...order } = trial.order({ expiresInMs: 1_000 });
    const late = { ...order, sessionMs: sessionMs - 2_000 };
    trial.tell(late);
    await refusedAs(trial, late, 'WITHDRAWN');
  }),
  boxCheck('AGT-1', 'refuses every push while no account is linked to it', async (trial) => {
    trial.gateway.account = null;
    await trial.reconnected();
    const order = trial.order();
    trial.tell(order);
    await refusedAs(trial, order, 'E36', 'QR_MISMATCH');
  }),
  boxCheck(
    'AGT-1',
    'a push that is refused leaves the QR that is on the screen',
    async (trial) => {
      const order = await trial.alone();
      const wrong = mismatched(trial, () => ({ account: FOREIGN_ACCOUNT }));
      trial.tell(wrong);
      await trial.given('a refusal', () => refusedAs(trial, wrong, 'QR_MISMATCH'));
      await trial.qrStays(order, 'the QR was taken away');
      const ended = trial.since('ended').some(({ pushId }) => pushId === order.pushId);
      if (ended) throw new Mismatch('the order on the screen has ended');
    },
    { needs: ['screen'] },
  ),
  boxCheck(
    'AGT-9',
    'the longest QR is either readable on the screen or refused as QR_TOO_DENSE',
    async (trial) => {
      const order = withQr(trial, (qr) =>
        Array.from({ length: 35 }, (_, index) => `${65 + index}`).reduce(
          (long, tag) => withField(long, tag, 'XXXXX'),
          qr,
        ),
      );
      trial.tell(order);
      const verdict = await trial.verdictOn(order.pushId);
      if (verdict.type === 'shown') {
        if (!(await trial.isReadable(order))) throw new Mismatch('no QR can be read on the screen');
      } else if (verdict.code !== 'QR_TOO_DENSE')
        throw new Mismatch(`rejected with ${verdict.code}: ${verdict.reason}`);
    },
    { needs: ['screen'] },
  ),
];

function withQr(trial: Trial, change: (qr: string) => string): Body<'show'> {
  const order = trial.order();
  return { ...order, qrCode: change(order.qrCode) };
}

function mismatched(trial: Trial, change: (order: Body<'show'>) => Parameters<typeof qrOf>[1]): Body<'show'> {
  const order = trial.order();
  return { ...order, qrCode: qrOf(order, change(order)) };
}

/** Puts a field before the CRC, which is made anew. */
function withField(qr: string, tag: string, value: string): string {
  return withRaw(qr, `${tag}${String(value.length).padStart(2, '0')}${value}`);
}

function withRaw(qr: string, field: string): string {
  return sealedQr(`${qr.slice(0, -8)}${field}${qr.slice(-8)}`);
}

/** With the CRC of what it says. */
function sealedQr(qr: string): string {
  const covered = qr.slice(0, -4);
  return covered + crc16(covered);
}

/** The same with the CRC in small letters, and with a field that makes it have letters where it has none. */
function withSmallCrc(qr: string): string {
  const fields = Array.from({ length: 100 }, (_, index) => withField(qr, '80', String(index)));
  const sealed = [qr, ...fields].find((it) => /[A-F]/.test(it.slice(-4))) ?? qr;
  return sealed.slice(0, -4) + sealed.slice(-4).toLowerCase();
}

function otherCrc(qr: string): string {
  return qr.endsWith('0000') ? '0001' : '0000';
}
