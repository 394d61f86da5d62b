import { findBank } from '../../../protocol/banks.ts';
import type { DownBody } from '../../../protocol/messages.ts';
import { encodeVietQr, type VietQr } from '../../../protocol/vietqr.ts';
import { ACCOUNT, type ScriptedGateway } from './gateway/scripted-gateway.ts';

const LIFETIME_MS = 300_000;
const AMOUNT_MIN = 10_000;
const AMOUNTS = 90_000;

type Show = Extract<DownBody, { type: 'show' }>;
type Payment = Extract<DownBody, { type: 'payment' }>;

/** Returns the QR of an order; `change` replaces parts of it. */
export function qrOf({ amount, content, bankAccount, bankCode }: Show, change: Partial<VietQr> = {}): string {
  const bin = findBank(bankCode)?.bin ?? '';
  const account = { bin, account: bankAccount, service: 'account', initiation: 'dynamic' } as const;
  return encodeVietQr({ ...account, amount, purpose: content, ...change });
}

/** Makes orders and payments that differ from all others. */
export function ordersOf(gateway: ScriptedGateway) {
  const { random, clock } = gateway;
  const name = () => random.uuid().slice(0, 8).toUpperCase();
  const amount = () => AMOUNT_MIN + Math.floor(random.fraction() * AMOUNTS);
  return {
    /** Makes an order whose lifetime begins now. */
    order: (change: Partial<Show> = {}): Show => {
      const orderId = name();
      const expiresInMs = change.expiresInMs ?? LIFETIME_MS;
      const plain: Show = {
        type: 'show',
        pushId: random.uuid(),
        orderId,
        amount: amount(),
        content: `BENCH ${orderId}`,
        ...ACCOUNT,
        qrCode: '',
        expiresAtMs: clock.wallMs() + expiresInMs,
        expiresInMs,
        sessionMs: gateway.session?.signer.ageMs ?? 0,
        ...change,
      };
      return { ...plain, qrCode: change.qrCode ?? qrOf(plain) };
    },
    payment: (change: Partial<Payment> = {}): Payment => {
      const { bankAccount, bankCode } = ACCOUNT;
      const orderId = name();
      return {
        type: 'payment',
        transactionId: random.uuid(),
        pushId: null,
        orderId,
        amount: amount(),
        content: `BENCH ${orderId}`,
        bankAccount,
        bankCode,
        paidAtMs: clock.wallMs(),
        repeated: false,
        late: false,
        due: null,
        ...change,
      };
    },
  };
}
