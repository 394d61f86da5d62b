import type { Kysely } from 'kysely';
import { LIMITS } from '../../../protocol/fields.ts';
import type { Due } from '../../../protocol/messages.ts';
import type { Tables } from '../schema/tables.ts';

/** A credit whose time at the bank is longer ago than this is late (PROTOCOL.md, clause CRE-5). */
export const CREDIT_FRESH_MS = 300_000;

/** Facts of a credit that are sent with its payment to boxes and partner (PROTOCOL.md, clause MSG-13). */
export interface CreditSides {
  late: boolean;
  due: Due | null;
}

/** The sides of a payment that no source has reported. */
export const ON_TIME: CreditSides = { late: false, due: null };

/** Returns the sides of these payments by payment, for those that a source has reported. */
export async function sidesOf(
  db: Kysely<Tables>,
  payments: readonly { id: string }[],
): Promise<ReadonlyMap<string, CreditSides>> {
  if (payments.length === 0) return new Map();
  const ids = payments.map(({ id }) => id);
  const rows = await db
    .selectFrom('credits')
    .select(['payment_id', 'late', 'order_amount', 'order_paid'])
    .where('payment_id', 'in', ids)
    .execute();
  return new Map(rows.map((row) => [row.payment_id ?? '', sidesIn(row)]));
}

export function sidesIn({
  late,
  order_amount: amount,
  order_paid: paid,
}: {
  late: number;
  order_amount: number | null;
  order_paid: number | null;
}): CreditSides {
  return { late: late === 1, due: amount === null || paid === null ? null : dueOf(amount, paid) };
}

/** Returns what is due for an order of this amount after this sum (PROTOCOL.md, clause MSG-13). Null if nothing is. */
export function dueOf(amount: number, paid: number): Due | null {
  return amount === paid ? null : { amount, paid: Math.min(paid, amount + LIMITS.amountMax) };
}
