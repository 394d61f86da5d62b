import { type Kysely, type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { PayboxError } from '../../../lib/errors.ts';
import { keepSetting } from '../integrity/settings.ts';
import type { Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { lastSeq } from './seq.ts';

const SETTING = 'payment-kinds';
/** At most this many changes are stored. Payments of older changes were pruned long ago. */
const CHANGES_MAX = 1_000;

const changes = z.array(z.object({ kind: z.enum(['money', 'test']), afterSeq: z.int().min(0) })).max(CHANGES_MAX);
type Change = z.infer<typeof changes>[number];
export type PaymentKind = Change['kind'];

/**
 * Records which payments were only tests: those that a sandbox stored (PROTOCOL.md, clause MOD-3). A payment keeps its
 * kind, even if the mode of the gateway changes later.
 */
export class ModeHistory {
  readonly #db: Kysely<Tables>;
  /** Oldest first. */
  #changes: readonly Change[] = [];

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /**
   * Begins to count later payments as this kind. Must be called once, before any payment is stored. `before` is the
   * kind of earlier payments in a store that does not know it. At a gateway that handles real money, nobody may receive
   * news of tests: their waiting notices and callbacks are deleted. When tests end, orders that only tests have paid
   * are cancelled. Throws a PayboxError when the stored history cannot be read.
   */
  async begin(kind: PaymentKind, before: PaymentKind = 'test'): Promise<void> {
    await transact(this.#db, async (trx) => {
      const row = await trx.selectFrom('settings').select('value').where('name', '=', SETTING).executeTakeFirst();
      const known = row === undefined ? [{ kind: kind === 'test' ? kind : before, afterSeq: 0 }] : decoded(row.value);
      const last = known.at(-1);
      this.#changes = known;
      if (row !== undefined && last?.kind === kind) {
        // The deliveries of a damaged test may have been recreated since.
        if (kind === 'money') await forgetDeliveries(trx, this.#test());
        return;
      }
      const { rows } = await sql<{ seq: number }>`select ${lastSeq(trx, 'payments')} as seq`.execute(trx);
      this.#changes =
        last?.kind === kind ? known : [...known, { kind, afterSeq: rows[0]?.seq ?? 0 }].slice(-CHANGES_MAX);
      await keepSetting(trx, SETTING, JSON.stringify(this.#changes));
      if (kind === 'test') return;
      await forgetDeliveries(trx, this.#test());
      await cancelTestOrders(trx, { test: this.#test(), counted: this.counted() });
    });
  }

  /** Returns whether the payment with this number counts in sums. Tests count at a sandbox only. */
  counts(seq: number): boolean {
    return this.#changes.at(-1)?.kind !== 'money' || !this.isTest(seq);
  }

  /** Returns whether nobody may receive news of this payment: it is a test at a gateway with real money. */
  async isMuted(paymentId: string): Promise<boolean> {
    return this.#changes.at(-1)?.kind === 'money' && (await this.testsAmong([paymentId])).size > 0;
  }

  /** Returns an expression for queries of payments: 1 for a payment that counts in sums, 0 for any other. */
  counted(): RawBuilder<number> {
    return this.#changes.at(-1)?.kind === 'money' ? sql<number>`case when ${this.#test()} then 0 else 1 end` : sql`1`;
  }

  /** Returns whether the payment with this number was only a test. */
  isTest(seq: number): boolean {
    return (this.#changes.findLast(({ afterSeq }) => afterSeq < seq)?.kind ?? 'test') === 'test';
  }

  /** Returns which of these payments were only tests. */
  async testsAmong(paymentIds: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = this.#db.selectFrom('payments').select(['id', 'seq']).where('id', 'in', paymentIds);
    const found = paymentIds.length === 0 ? [] : await rows.execute();
    return new Set(found.filter(({ seq }) => this.isTest(seq)).map(({ id }) => id));
  }

  /** Returns a condition for queries of payments: it is true for a test, at a gateway that handles real money. */
  #test(): RawBuilder<boolean> {
    const known = [{ kind: 'test', afterSeq: 0 }, ...this.#changes];
    const spans = known.flatMap(({ kind, afterSeq }, i) => {
      const uptoSeq = known[i + 1]?.afterSeq ?? afterSeq;
      return kind === 'test' && uptoSeq > afterSeq ? [{ afterSeq, uptoSeq }] : [];
    });
    const within = spans.map((it) => sql`"payments"."seq" > ${it.afterSeq} and "payments"."seq" <= ${it.uptoSeq}`);
    return spans.length === 0 ? sql`1 = 0` : sql`(${sql.join(within, sql` or `)})`;
  }
}

function decoded(value: string): Change[] {
  try {
    return changes.parse(JSON.parse(value));
  } catch (cause) {
    const message = `the store's setting ${SETTING} is damaged: it is unknown which payments were tests`;
    throw new PayboxError('STORE_DAMAGED', message, { severity: 'fatal', fix: 'restore a backup', cause });
  }
}

async function forgetDeliveries(db: Kysely<Tables>, test: RawBuilder<boolean>): Promise<void> {
  const tests = db.selectFrom('payments').select('id').where(test);
  await db.deleteFrom('notices').where('reported_at_ms', 'is', null).where('payment_id', 'in', tests).execute();
  const open = db
    .selectFrom('callbacks')
    .select('id')
    .where('status', '<>', 'delivered')
    .where('payment_id', 'in', tests);
  await db.deleteFrom('callback_attempts').where('callback_id', 'in', open).execute();
  await db.deleteFrom('callbacks').where('status', '<>', 'delivered').where('payment_id', 'in', tests).execute();
}

/** Cancels the orders that tests have paid. An order that real money has paid in part ends as underpaid. */
async function cancelTestOrders(
  db: Kysely<Tables>,
  { test, counted }: { test: RawBuilder<boolean>; counted: RawBuilder<number> },
): Promise<void> {
  const tested = db.selectFrom('payments').select('order_ref').where(test).where('order_ref', 'is not', null);
  const money = db
    .selectFrom('payments')
    .select(sql<number>`coalesce(sum("payments"."amount" * ${counted}), 0)`.as('sum'))
    .where(sql<boolean>`"payments"."order_ref" = "orders"."id"`);
  await db
    .updateTable('orders')
    .set({ status: sql`case when (${money}) > 0 then 'underpaid' else 'cancelled' end`, paid_at_ms: null })
    .where('status', 'in', ['paid', 'underpaid'])
    .where('id', 'in', tested)
    .where('amount', '>', money)
    .execute();
}
