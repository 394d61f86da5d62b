import { crc16 } from '../../../../protocol/crc16.ts';
import { Mismatch } from '../../conformance.ts';
import { boxCheck } from '../box-check.ts';
import type { Body } from '../hearing.ts';
import { qrOf } from '../orders.ts';
import type { Trial } from '../trial.ts';
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

/** Clause AGT-1 of PROTOCOL.md, and what display and limits refuse. */
export const REFUSAL_CHECKS = [
  ...WRONG.map(([title, code, make]) =>
    boxCheck('AGT-1', `refuses ${title} as ${code}`, async (trial) => {
      const order = make(trial);
      trial.tell(order);
      await refusedAs(trial, order, code);
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
        ['80', '81', '82'].reduce((long, tag) => withField(long, tag, 'X'.repeat(99)), qr),
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
  const covered = `${qr.slice(0, -8)}${tag}${String(value.length).padStart(2, '0')}${value}6304`;
  return covered + crc16(covered);
}

function otherCrc(qr: string): string {
  return qr.endsWith('0000') ? '0001' : '0000';
}
