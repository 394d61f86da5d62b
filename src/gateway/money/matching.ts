import { isDeepStrictEqual } from 'node:util';
import { isContained, reduced, spaced } from '../../protocol/bank-text.ts';
import { endsInOrderCode, orderCodesIn } from '../../protocol/order-code.ts';
import type { NamedOrder, OrderFinder } from '../store/repositories/money-transaction.ts';
import type { Search } from '../store/repositories/search.ts';
import type { PaymentDetails } from '../store/schema/tables.ts';
import { codesIn, endsInCode } from './content.ts';

/** How many codes of one text are looked up. */
const CODES_MAX = 10;
/** How far the clock of a bank may be behind. */
const BANK_CLOCK_BEHIND_MAX_MS = 300_000;

/** A movement of money, with everything in it that may name an order. */
export interface Paying {
  text: string;
  amount: number;
  source: string;
  /** When the bank booked it. */
  bank_time_ms: number;
  /** The number of the order at the source. */
  orderCode?: number | undefined;
  /** The name of the order that the source read in the text. */
  code?: string | undefined;
}

/**
 * Returns the id of the order that this money pays, or undefined for none. The source names the order by its number; or
 * the text names it by a code, or by its content together with the amount. What the source read as the name comes
 * before the rest of the text (PROTOCOL.md, clauses MAT-2, MAT-3, MAT-7 and PQR-4).
 */
export async function findOrder(
  { text, amount, source, bank_time_ms, orderCode, code = '' }: Paying,
  finder: OrderFinder,
): Promise<string | undefined> {
  const requested = orderCode === undefined ? undefined : await finder.byRequest(source, orderCode);
  if (requested !== undefined) return requested;
  const codes = [...new Set([...allCodesIn(code), ...allCodesIn(text)])];
  const named = (await finder.byCodes(codes)).toSorted((a, b) => codes.indexOf(a.code) - codes.indexOf(b.code));
  // The content of a QR begins with its code. A later code may be chance: the payer's words and those of a bank
  // together.
  const byCode = named.find(isUnpaid) ?? named[0];
  if (byCode !== undefined) return byCode.id;
  // A content such as "BAN 5" is used again. An old credit that is reported late must not pay the order of the next
  // customer.
  const orders = await finder.byAmount(amount, bank_time_ms + BANK_CLOCK_BEHIND_MAX_MS);
  const coded = orders.filter(({ content }) => reduced(content) === reduced(code));
  return (code === '' ? undefined : bestContained(code, coded))?.id ?? bestContained(text, orders)?.id;
}

/** Finds the codes of orders in a text, in their order (PROTOCOL.md, clauses CBK-8, MAT-1 and MAT-2). */
export function allCodesIn(text: string): string[] {
  const letters = reduced(text);
  const at = (code: string) => letters.indexOf(code.toUpperCase());
  return [...orderCodesIn(letters), ...codesIn(letters)].toSorted((a, b) => at(a) - at(b)).slice(0, CODES_MAX);
}

/**
 * Returns whether a text names only the order with this code (without a code: no order). The answer holds even after a
 * bank has changed the text and added words behind it (PROTOCOL.md, clause MAT-6).
 */
export function namesOnly(text: string, code?: string): boolean {
  const expected = code === undefined ? [] : [code];
  const letters = reduced(text);
  const isBegun = endsInOrderCode(letters) || endsInCode(letters);
  return !isBegun && isDeepStrictEqual(allCodesIn(text), expected);
}

/**
 * Returns the content of the order that money pays. A bank changes the text around the code, so the stored content is
 * used (clause CBK-8).
 */
export async function contentPaid(search: Search, money: PaymentDetails): Promise<string> {
  for (const code of allCodesIn(money.content)) {
    const content = await search.contentWithCode(money, code);
    if (content !== undefined) return content;
  }
  return money.content;
}

/**
 * Returns the order whose whole content stands in a text. The longest content wins. Of equal ones the order wins that a
 * box shows, then one on its way to a box, then an unpaid one, then the first.
 */
export function bestContained<Order extends NamedOrder>(text: string, orders: readonly Order[]): Order | undefined {
  const within = spaced(text);
  const found = orders
    .map((order) => ({ order, content: reduced(order.content) }))
    .filter(({ content }) => isContained(content, within))
    .toSorted((a, b) => b.content.length - a.content.length || rankOf(a.order) - rankOf(b.order));
  return found[0]?.order;
}

function isUnpaid({ status }: NamedOrder): boolean {
  return status !== 'paid';
}

function rankOf({ status }: NamedOrder): number {
  if (status === 'shown') return 0;
  if (status === 'pushed') return 1;
  return status === 'paid' ? 3 : 2;
}
