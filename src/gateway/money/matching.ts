import { isDeepStrictEqual } from 'node:util';
import { isContained, reduced, spaced } from '../../protocol/bank-text.ts';
import { endsInOrderCode, orderCodesIn } from '../../protocol/order-code.ts';
import type { Candidate, OrderFinder } from '../store/repositories/money-transaction.ts';
import type { PaymentDetails } from '../store/repositories/payments.ts';
import type { Search } from '../store/repositories/search.ts';
import { codesIn, endsInCode } from './content.ts';

/** Codes of one text that are looked up. */
const CODES_MAX = 10;
/** The clock of a bank may be behind by so much. */
const BANK_CLOCK_BEHIND_MAX_MS = 300_000;

/** Money, as far as it says what it pays. */
export interface Paying {
  text: string;
  amount: number;
  source: string;
  /** When the bank booked it. */
  bank_time_ms: number;
  /** The number of the order at the source. */
  orderCode?: number | undefined;
  /** The source read this in the text as the name of the order. */
  code?: string | undefined;
}

/**
 * The id of the order that this money pays; undefined for none. The source names it by its number, or the text by a code,
 * or by its content together with the amount. What the source took for the name comes before the rest of the text (PROTOCOL.md,
 * clauses MAT-2, MAT-3, MAT-7 and PQR-4).
 */
export async function findOrder(
  { text, amount, source, bank_time_ms, orderCode, code = '' }: Paying,
  finder: OrderFinder,
): Promise<string | undefined> {
  const requested = orderCode === undefined ? undefined : await finder.byRequest(source, orderCode);
  if (requested !== undefined) return requested;
  const codes = [...new Set([...allCodesIn(code), ...allCodesIn(text)])];
  const named = (await finder.byCodes(codes)).toSorted((a, b) => codes.indexOf(a.code) - codes.indexOf(b.code));
  // The content of a QR begins with its code: a later one may be the writer's, completed by the words of a bank.
  const byCode = named.find(isUnpaid) ?? named[0];
  if (byCode !== undefined) return byCode.id;
  // A content like "BAN 5" comes again: old money, told late, is not for the customer who stands there now.
  const orders = await finder.byAmount(amount, bank_time_ms + BANK_CLOCK_BEHIND_MAX_MS);
  const coded = orders.filter(({ content }) => reduced(content) === reduced(code));
  return (code === '' ? undefined : bestContained(code, coded))?.id ?? bestContained(text, orders)?.id;
}

/** The codes of orders in a text, in their order (PROTOCOL.md, clauses CBK-8, MAT-1 and MAT-2). */
export function allCodesIn(text: string): string[] {
  const letters = reduced(text);
  const at = (code: string) => letters.indexOf(code.toUpperCase());
  return [...orderCodesIn(letters), ...codesIn(letters)].toSorted((a, b) => at(a) - at(b)).slice(0, CODES_MAX);
}

/**
 * Tells whether a text names the order with this code and no other one, or none without a code, also once a bank has changed
 * it and has written its own words behind it (PROTOCOL.md, clause MAT-6).
 */
export function namesOnly(text: string, code?: string): boolean {
  const expected = code === undefined ? [] : [code];
  const letters = reduced(text);
  const isBegun = endsInOrderCode(letters) || endsInCode(letters);
  return !isBegun && isDeepStrictEqual(allCodesIn(text), expected);
}

/** The content of the order that money pays: a bank changes the text around the code of its QR (clause CBK-8). */
export async function contentPaid(search: Pick<Search, 'contentWithCode'>, money: PaymentDetails): Promise<string> {
  for (const code of allCodesIn(money.content)) {
    const content = await search.contentWithCode(money, code);
    if (content !== undefined) return content;
  }
  return money.content;
}

/**
 * The order whose content stands in a text, whole. The longest content wins; of equal ones an order that a box shows,
 * then one on its way to a box, then an unpaid one, then the first.
 */
export function bestContained<Order extends Pick<Candidate, 'content' | 'status'>>(
  text: string,
  orders: readonly Order[],
): Order | undefined {
  const within = spaced(text);
  const found = orders
    .map((order) => ({ order, content: reduced(order.content) }))
    .filter(({ content }) => isContained(content, within))
    .toSorted((a, b) => b.content.length - a.content.length || rankOf(a.order) - rankOf(b.order));
  return found[0]?.order;
}

function isUnpaid({ status }: Pick<Candidate, 'status'>): boolean {
  return status !== 'paid';
}

function rankOf({ status }: Pick<Candidate, 'status'>): number {
  if (status === 'shown') return 0;
  if (status === 'pushed') return 1;
  return status === 'paid' ? 3 : 2;
}
