import { crc32 } from 'node:zlib';
import { z } from 'zod';
import type { PaymentFacts } from '../schema/tables.ts';
import type { LedgerHead } from './ledger.ts';

/** A mark has the facts of this many newest acknowledged payments. Of older ones it has only the numbers. */
export const RECENT_PAYMENTS_MAX = 1_000;
/** Each payment has one line, all of equal length. A later payment overwrites the line in the same place. */
const LINE_BYTES = 512;

/** An acknowledged payment: enough to find it at the bank, and in the books of its partner. */
export interface AcknowledgedPayment extends LedgerHead, PaymentFacts {}

/** The facts in a line, in this order. */
const factsSchema = z.tuple([
  ...([z.int(), z.string(), z.string(), z.string(), z.string(), z.string()] as const),
  ...([z.string(), z.string(), z.int(), z.int()] as const),
]);

/** Holds the newest acknowledged payments of a chain. Older ones are dropped. */
export class RecentPayments {
  readonly #byNumber = new Map<number, AcknowledgedPayment>();

  constructor(payments: readonly AcknowledgedPayment[] = []) {
    for (const payment of payments) this.add(payment);
  }

  add(payment: AcknowledgedPayment): void {
    this.#byNumber.set(payment.number, payment);
    this.#byNumber.delete(payment.number - RECENT_PAYMENTS_MAX);
  }

  /** Returns the payments in the order of their numbers. */
  all(): AcknowledgedPayment[] {
    return [...this.#byNumber.values()].toSorted((a, b) => a.number - b.number);
  }
}

/** Returns the line of a payment, and its offset among the lines of a mark. */
export function lineOfPayment(payment: AcknowledgedPayment): { line: Buffer; offset: number } {
  const { number, link, id, partner, order_id, reference_number, bank_account, bank_code, amount, paid_at_ms } =
    payment;
  const lineWith = (texts: readonly string[]) => {
    const facts = JSON.stringify([number, link, id, ...texts, bank_account, bank_code, amount, paid_at_ms]);
    return Buffer.from(`${crc32(facts)} ${facts}`);
  };
  const whole = lineWith([partner, order_id, reference_number]);
  // Very long names are rare. Then the line has only the facts that identify the payment.
  const content = whole.length < LINE_BYTES ? whole : lineWith(['', '', '']);
  const line = Buffer.alloc(LINE_BYTES, ' ');
  content.copy(line);
  line.write('\n', LINE_BYTES - 1);
  return { line, offset: (number % RECENT_PAYMENTS_MAX) * LINE_BYTES };
}

/** Returns the payments in these lines, without lines that are empty or damaged. */
export function paymentsInLines(bytes: Buffer): AcknowledgedPayment[] {
  const count = Math.min(RECENT_PAYMENTS_MAX, Math.ceil(bytes.length / LINE_BYTES));
  return Array.from({ length: count }, (_, i) => bytes.toString('utf8', i * LINE_BYTES, (i + 1) * LINE_BYTES)).flatMap(
    (line) => paymentIn(line.trimEnd()) ?? [],
  );
}

function paymentIn(line: string): AcknowledgedPayment | undefined {
  const [, crc, text = ''] = /^(\d+) (\[.*\])$/.exec(line) ?? [];
  if (crc === undefined || crc32(text) !== Number(crc)) return undefined;
  const [number, link, id, partner, order_id, reference_number, ...facts] = factsSchema.parse(JSON.parse(text));
  const [bank_account, bank_code, amount, paid_at_ms] = facts;
  return { number, link, id, partner, order_id, reference_number, bank_account, bank_code, amount, paid_at_ms };
}
