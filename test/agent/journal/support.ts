import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { openJournal } from '../../../src/device/agent/journal/journal.ts';
import type { Entry } from '../../../src/device/box/entry.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { keptLog } from '../../support/kept-log.ts';

export const CONFIG = {
  terminalCode: 'VVB000001',
  serialNumber: 'VVB900001',
  version: '1',
  paidHoldMs: 1,
  endedHoldMs: 1,
  plainLink: false,
};
export const AT = { monotonicMs: 1000, wallMs: 1_700_000_000_000 };

/** A journal that is closed when the test ends, with the lines that it logs. */
export function open(folder: string, terminalCode = CONFIG.terminalCode, clock: Clock = new VirtualClock(AT.wallMs)) {
  const { log, lines } = keptLog(clock);
  const journal = openJournal(folder, terminalCode, { clock, log });
  onTestFinished(() => journal.close());
  return { journal, lines, events: () => lines.map((line) => line.event) };
}

export function push(pushId: string = randomUUID(), expiresAtMs = AT.wallMs + 60_000): Entry & { kind: 'push' } {
  const holder = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
  const order = { pushId, orderId: 'DH1', amount: 50_000, content: 'Cà phê', qrCode: '000201', holder };
  return { kind: 'push', order: { ...order, expiresAtMs, lifetimeMs: 60_000 } };
}

export function payment(
  transactionId: string = randomUUID(),
  pushId: string | null = null,
  paidAtMs = AT.wallMs,
): Entry & { kind: 'payment' } {
  const paid = { transactionId, orderId: 'DH1', amount: 50_000, content: 'Cà phê', paidAtMs, late: false, due: null };
  return { kind: 'payment', payment: paid, pushId };
}

export const ended = (pushId: string): Entry => ({ kind: 'ended', pushId, orderId: 'DH1', how: 'expired' });
export const acked = (...ids: string[]): Entry => ({ kind: 'acked', ids });
export const shown = ({ order: { pushId } }: Entry & { kind: 'push' }): Entry => ({ kind: 'shown', pushId });
