import type { VietQr } from '../../protocol/vietqr.ts';

const OTHER_VND = 1_000;

/** A content that no order has asked for. */
export const OTHER_CONTENT = 'ANOTHER CONTENT';

/** Another amount in đồng than this one, and as legal. */
export function otherAmount(amount: number): number {
  return amount > OTHER_VND ? amount - OTHER_VND : amount + OTHER_VND;
}

/** Another account than this one, as a typing error makes it. */
export function otherAccount(account: string): string {
  return `${account.slice(0, -1)}${account.endsWith('0') ? '1' : '0'}`;
}

/** The same payment for another content; what else a QR may say beside it would not fit in. */
export function withOtherContent({ bill: _, reference: _reference, terminal: _terminal, ...qr }: VietQr): VietQr {
  return { ...qr, purpose: OTHER_CONTENT };
}
