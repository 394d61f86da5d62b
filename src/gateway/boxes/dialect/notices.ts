import { vietnamTime } from '../../../lib/vietnam-time.ts';
import { findBank } from '../../../protocol/banks.ts';
import { amountText, FIRMWARE_PACKET_BYTES_MAX, packetBytes, type WireNotice } from '../../../protocol/dialect.ts';
import type { DownOf, LinkedAccount } from '../../../protocol/messages.ts';
import { encodeVietQr } from '../../../protocol/vietqr.ts';

/** How many characters of a content are announced. */
const CONTENT_SAID_MAX = 60;

/** How many characters of the transactionId distinguish payments of the same text. */
const CODE_CHARS = 6;

/**
 * Returns the first message to a box that listens: its account with a static QR, or that it is connected (clause
 * VQD-3).
 */
export function greeting(terminalCode: string, account: LinkedAccount | null): WireNotice {
  const bank = account === null ? undefined : findBank(account.bankCode);
  if (account === null || bank === undefined) return { notificationType: 'N00' };
  const { bankAccount, userBankName } = account;
  return {
    notificationType: 'N16',
    bankAccount,
    bankShortName: bank.code,
    userBankName,
    terminalCode,
    terminalName: terminalCode,
    qrCode: staticQr(bank.bin, bankAccount),
    bankCode: bank.code,
    imgBank: '',
    homePage: '',
  };
}

/** Returns the QR of an order (clause VQD-5). */
export function qrNotice({ amount, qrCode }: { amount: number; qrCode: string }): WireNotice {
  return { notificationType: 'N17', amount: amountText(amount), qrCode };
}

function staticQr(bin: string, account: string): string {
  return encodeVietQr({ bin, account, service: 'account', initiation: 'static', amount: undefined });
}

/**
 * Returns the notice of a payment, and its text without a code. Only the text distinguishes two payments from one that
 * is sent twice, so a text that the box may already know gets a code of its transaction (clause VQD-6).
 */
export function paidNotice(
  { amount, content, paidAtMs, transactionId }: DownOf<'payment'>,
  template: string,
  mayBeKnown: (text: string) => boolean,
): { text: string; notice: WireNotice } {
  const said = Array.from(content).slice(0, CONTENT_SAID_MAX).join('').trim();
  const values = { amount: String(amount), content: said === '' ? 'trống' : said, time: timeSaid(paidAtMs) };
  const text = template.replaceAll(/\{(amount|content|time)\}/g, (_all, name: keyof typeof values) => values[name]);
  const code = transactionId.slice(-CODE_CHARS).toUpperCase();
  const message = mayBeKnown(text) ? `${text}, mã giao dịch ${code}` : text;
  return { text, notice: { notificationType: 'N05', amount: amountText(amount), message } };
}

/** Returns the time of the day in Vietnam, as people say it. */
function timeSaid(wallMs: number): string {
  const [hours = '', minutes = '', seconds = ''] = vietnamTime(wallMs).slice(11).split(':').map(Number).map(String);
  return `${hours} giờ ${minutes} phút ${seconds} giây`;
}

/** Returns the time in Vietnam as `dd/MM/yyyy HH:mm:ss`. */
export function timePaidOf(wallMs: number): string {
  const [date = '', time] = vietnamTime(wallMs).split(' ');
  return `${date.split('-').reverse().join('/')} ${time}`;
}

/** Returns the payload of a message, or undefined if its packet would be too long for firmware (clause VQD-4). */
export function payloadFor(topic: string, notice: WireNotice): string | undefined {
  const payload = JSON.stringify(notice);
  return packetBytes(topic, payload) <= FIRMWARE_PACKET_BYTES_MAX ? payload : undefined;
}
