import type { At, BoxConfig } from '../../src/device/box/state.ts';
import type { DownOf, LinkedAccount } from '../../src/protocol/messages.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';

export const CONFIG: BoxConfig = {
  terminalCode: 'VVB000001',
  serialNumber: 'VVB900001',
  version: '0.0.0',
  paidHoldMs: 10_000,
  endedHoldMs: 5_000,
  sandboxMark: true,
  plainLink: false,
};

export const LINK: LinkedAccount = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };

/** An account that another shop has. */
export const OTHER: LinkedAccount = { bankAccount: '9988776655', bankCode: 'VCB', userBankName: 'TRAN THI B' };

const SESSION_ID = '0a3c1d52-8d6b-4b7e-8f0e-5d2f1c7b9a02';
export const WALL_START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

/** A UUID that is the same for the same number. */
export const uuid = (n: number) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;

export const at = (monotonicMs: number): At => ({ monotonicMs, wallMs: WALL_START_MS + monotonicMs });

export function pushOf(n: number, change: Partial<DownOf<'show'>> = {}): DownOf<'show'> {
  const amount = change.amount ?? 50_000;
  return {
    v: 1,
    id: uuid(0xa000 + n),
    sentAtMs: WALL_START_MS,
    sessionId: SESSION_ID,
    type: 'show',
    pushId: uuid(n),
    orderId: `DH${n}`,
    content: `DH${n}`,
    ...LINK,
    qrCode: encodeVietQr({
      bin: '970422',
      account: LINK.bankAccount,
      service: 'account',
      initiation: 'dynamic',
      amount,
      purpose: `DH${n}`,
    }),
    expiresAtMs: WALL_START_MS + 300_000,
    expiresInMs: 300_000,
    sessionMs: 0,
    ...change,
    amount,
  };
}

export function paymentOf(n: number, change: Partial<DownOf<'payment'>> = {}): DownOf<'payment'> {
  return {
    v: 1,
    id: uuid(0xb000 + n),
    sentAtMs: WALL_START_MS,
    sessionId: SESSION_ID,
    type: 'payment',
    transactionId: uuid(0xc000 + n),
    pushId: uuid(n),
    orderId: `DH${n}`,
    amount: 50_000,
    content: `DH${n}`,
    bankAccount: LINK.bankAccount,
    bankCode: LINK.bankCode,
    paidAtMs: WALL_START_MS,
    repeated: false,
    late: false,
    due: null,
    ...change,
  };
}
