import type { Kysely } from 'kysely';
import { z } from 'zod';
import { PayboxError } from '../../lib/errors.ts';
import type { Tables } from '../schema/tables.ts';

const SETTING = 'payment-kinds';
/** Changes that are kept; of more, the oldest is forgotten, whose payments were pruned long ago. */
const CHANGES_MAX = 1_000;

const changes = z.array(z.object({ kind: z.enum(['money', 'test']), afterSeq: z.int().min(0) })).max(CHANGES_MAX);
type Change = z.infer<typeof changes>[number];
export type PaymentKind = Change['kind'];

/**
 * Which payments were only tests: those that a sandbox stored (PROTOCOL.md, clause MOD-3). A payment keeps its kind
 * whatever the gateway is later.
 */
export class ModeHistory {
  readonly #db: Kysely<Tables>;
  /** Oldest first. */
  #changes: readonly Change[] = [];

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /**
   * Payments from now on are of this kind; call it once, before any is stored. `before` is the kind of earlier ones in a
   * store that does not know it. When tests end, nobody is told of them any more: their notices and callbacks that are
   * still to be sent are deleted. Throws a PayboxError when the stored history cannot be read.
   */
  async begin(kind: PaymentKind, before: PaymentKind = 'test'): Promise<void> {
    const row = await this.#db.selectFrom('settings').select('value').where('name', '=', SETTING).executeTakeFirst();
    const known = row === undefined ? [{ kind: kind === 'test' ? kind : before, afterSeq: 0 }] : decoded(row.value);
    const last = known.at(-1);
    this.#changes = known;
    if (row !== undefined && last?.kind === kind) return;
    await this.#db.transaction().execute(async (trx) => {
      const { end_seq: endSeq } = await trx.selectFrom('ledger').select('end_seq').executeTakeFirstOrThrow();
      this.#changes = last?.kind === kind ? known : [...known, { kind, afterSeq: endSeq }].slice(-CHANGES_MAX);
      const value = JSON.stringify(this.#changes);
      await trx
        .insertInto('settings')
        .values({ name: SETTING, value })
        .onConflict((it) => it.column('name').doUpdateSet({ value }))
        .execute();
      if (kind === 'money' && last?.kind === 'test') {
        await forgetDeliveries(trx, { afterSeq: last.afterSeq, uptoSeq: endSeq });
      }
    });
  }

  /** Whether the payment with this number counts in sums: tests do at a sandbox only. */
  counts(seq: number): boolean {
    return this.#changes.at(-1)?.kind === 'test' || !this.isTest(seq);
  }

  /** Whether the payment with this number was only a test. */
  isTest(seq: number): boolean {
    return (this.#changes.findLast(({ afterSeq }) => afterSeq < seq)?.kind ?? 'test') === 'test';
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

async function forgetDeliveries(db: Kysely<Tables>, { afterSeq, uptoSeq }: { afterSeq: number; uptoSeq: number }) {
  const tests = db.selectFrom('payments').select('id').where('seq', '>', afterSeq).where('seq', '<=', uptoSeq);
  await db.deleteFrom('notices').where('reported_at_ms', 'is', null).where('payment_id', 'in', tests).execute();
  const open = db
    .selectFrom('callbacks')
    .select('id')
    .where('status', '<>', 'delivered')
    .where('payment_id', 'in', tests);
  await db.deleteFrom('callback_attempts').where('callback_id', 'in', open).execute();
  await db.deleteFrom('callbacks').where('status', '<>', 'delivered').where('payment_id', 'in', tests).execute();
}
