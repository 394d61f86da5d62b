import type { Candidate, OrderFinder } from '../../store/repositories/credits.ts';
import type { PaymentDetails } from '../../store/repositories/payments.ts';
import type { Search } from '../../store/repositories/search.ts';
import { codesIn } from './content.ts';
import { orderCodesIn } from './order-code.ts';

/** Shorter contents stand in too many texts: they must be the whole text. */
const CONTAINED_CHARS_MIN = 3;
/** Codes of one text that are looked up. */
const CODES_MAX = 10;

/**
 * The id of the order that this money pays; undefined for none. The text names it by a code, or by its content together
 * with the amount (PROTOCOL.md, clauses MAT-2 and MAT-3).
 */
export async function findOrder(
  { text, amount }: { text: string; amount: number },
  finder: OrderFinder,
): Promise<string | undefined> {
  const codes = allCodesIn(text);
  const named = (await finder.byCodes(codes)).toSorted((a, b) => codes.indexOf(a.code) - codes.indexOf(b.code));
  const byCode = named.find((it) => it.amount - it.paid === amount) ?? named.find(isUnpaid) ?? named[0];
  if (byCode !== undefined) return byCode.id;
  return bestContained(text, await finder.byAmount(amount))?.id;
}

/** The codes of orders in a text, first those of this gateway (PROTOCOL.md, clauses CBK-8 and MAT-1). */
export function allCodesIn(text: string): string[] {
  return [...orderCodesIn(reduced(text)), ...codesIn(text)].slice(0, CODES_MAX);
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

/** Letters and digits of a text, as banks leave them: capitals without accents. */
export function reduced(text: string): string {
  return plain(text).replaceAll(/[^A-Z0-9]/g, '');
}

function plain(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').replaceAll(/[đĐ]/g, 'D').toUpperCase();
}

/** A text without its breaks, and where they were. */
interface Spaced {
  reduced: string;
  /** Positions in `reduced` before which the text has a break. */
  breaks: ReadonlySet<number>;
  /** Whether the bank kept blanks: then a content does not begin or end inside a word. */
  hasBlanks: boolean;
}

function spaced(text: string): Spaced {
  const words = plain(text)
    .trim()
    .split(/[^A-Z0-9]+/);
  const breaks = new Set<number>();
  let length = 0;
  for (const word of words) {
    breaks.add(length);
    length += word.length;
  }
  breaks.add(length);
  return { reduced: words.join(''), breaks, hasBlanks: /\s/.test(text.trim()) };
}

function isContained(content: string, { reduced: text, breaks, hasBlanks }: Spaced): boolean {
  if (content.length < CONTAINED_CHARS_MIN) return content !== '' && content === text;
  for (let at = text.indexOf(content); at >= 0; at = text.indexOf(content, at + 1)) {
    if (isEdge(at) && isEdge(at + content.length)) return true;
  }
  return false;

  /** A number never ends inside a longer one: DH1 does not stand in DH12. */
  function isEdge(at: number): boolean {
    if (breaks.has(at)) return true;
    return !hasBlanks && !/\d\d/.test(text.slice(at - 1, at + 1));
  }
}

function isUnpaid({ status }: Pick<Candidate, 'status'>): boolean {
  return status !== 'paid';
}

function rankOf({ status }: Pick<Candidate, 'status'>): number {
  if (status === 'shown') return 0;
  if (status === 'pushed') return 1;
  return status === 'paid' ? 3 : 2;
}
