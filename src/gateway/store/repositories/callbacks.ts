import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { intact, onlyIntact } from '../integrity/checksums.ts';
import type { AttemptRow, CallbackRow, CallbackStatus, NewAttempt, Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { seqOf } from './seq.ts';

/** The changes that an attempt makes to its callback. */
export interface AfterAttempt {
  status?: CallbackStatus;
  warning?: string | null;
  tries?: number;
  next_at_ms?: number;
}

/** The callbacks that are not delivered. */
export interface Backlog {
  partners: { partner: string; waiting: number; failed: number }[];
  oldestWaitingAtMs: number | undefined;
}

/** Selects callbacks by status, partner and the time of their payment. */
export interface CallbackChoice {
  status: 'failed' | 'pending';
  partner?: string | undefined;
  /** Callbacks from this time on. */
  fromMs?: number | undefined;
  /** Callbacks before this time. */
  toMs?: number | undefined;
}

/** A partner who has pending callbacks, and when the first of them is due. */
export interface PendingPartner {
  partner: string;
  next_at_ms: number;
}

/** One batch of callbacks that are due again. */
export interface Requeued {
  /** The partner of each callback. */
  partners: string[];
  /** The `seq` after which the next batch begins. `undefined` at the end. */
  after: number | undefined;
}

/** Stores callbacks to partners, and their attempts. */
export class CallbackStore {
  readonly #db: Kysely<Tables>;
  readonly #early: Kysely<Tables>;
  readonly #log: Logger;

  /** `early`: for a look whether there is work, which then reads the rows. */
  constructor(db: Kysely<Tables>, log: Logger, early = db) {
    this.#db = db;
    this.#early = early;
    this.#log = log;
  }

  async find(id: string): Promise<CallbackRow | undefined> {
    const row = this.#db.selectFrom('callbacks').selectAll().where('id', '=', id);
    return intact('callbacks', await row.executeTakeFirst());
  }

  async ofPayments(paymentIds: string[]): Promise<CallbackRow[]> {
    if (paymentIds.length === 0) return [];
    const rows = this.#db.selectFrom('callbacks').selectAll().where('payment_id', 'in', paymentIds);
    return onlyIntact('callbacks', await rows.execute(), this.#log);
  }

  /** Returns callbacks, newest first. With `before`, an id, only older ones. With `status`, only those that have it. */
  async newest(limit: number, before?: string, status?: CallbackStatus): Promise<CallbackRow[]> {
    let rows = this.#db.selectFrom('callbacks').selectAll().orderBy('seq', 'desc').limit(limit);
    if (before !== undefined) rows = rows.where('seq', '<', seqOf('callbacks', before));
    if (status !== undefined) rows = rows.where('status', '=', status);
    return onlyIntact('callbacks', await rows.execute(), this.#log);
  }

  /** Counts the pending and the failed callbacks of each partner. */
  async backlog(): Promise<Backlog> {
    const rows = await this.#db
      .selectFrom('callbacks')
      .select(['partner', 'status', (it) => it.fn.countAll<number>().as('count')])
      .where('status', 'in', ['pending', 'failed'])
      .groupBy(['partner', 'status'])
      .orderBy('partner')
      .execute();
    const partners = Map.groupBy(rows, (it) => it.partner);
    const waiting = this.#db.selectFrom('callbacks').select('created_at_ms').where('status', '=', 'pending');
    const oldest = await waiting.orderBy('seq').limit(1).executeTakeFirst();
    return {
      partners: [...partners].map(([partner, own]) => {
        const count = (status: CallbackStatus) => Number(own.find((it) => it.status === status)?.count ?? 0);
        return { partner, waiting: count('pending'), failed: count('failed') };
      }),
      oldestWaitingAtMs: oldest?.created_at_ms,
    };
  }

  /**
   * Makes the oldest callbacks of this choice due at `atMs`, as after their first attempt: at most `limit`, and only
   * those after the `seq` in `after`.
   */
  async requeue(choice: CallbackChoice, after: number, limit: number, atMs: number): Promise<Requeued> {
    const { status, partner, fromMs, toMs } = choice;
    return transact(this.#db, async (trx) => {
      let rows = trx.selectFrom('callbacks').selectAll().where('status', '=', status);
      if (partner !== undefined) rows = rows.where('partner', '=', partner);
      if (fromMs !== undefined) rows = rows.where('created_at_ms', '>=', fromMs);
      if (toMs !== undefined) rows = rows.where('created_at_ms', '<', toMs);
      const found = await rows.where('seq', '>', after).orderBy('seq').limit(limit).execute();
      const callbacks = onlyIntact('callbacks', found, this.#log);
      const ids = callbacks.map((it) => it.id);
      const due = { status: 'pending', warning: null, tries: 1, next_at_ms: atMs } as const;
      if (ids.length > 0) await trx.updateTable('callbacks').set(due).where('id', 'in', ids).execute();
      return { partners: callbacks.map((it) => it.partner), after: found.at(-1)?.seq };
    });
  }

  /** Returns the partners who have pending callbacks. It reads one row of the index for each of them. */
  async pendingPartners(): Promise<PendingPartner[]> {
    const first = (column: string, after: RawBuilder<unknown>) =>
      sql`(select min(${sql.ref(column)}) from callbacks where status = 'pending' and ${after})`;
    const { rows } = await sql<PendingPartner>`with recursive names(name) as (
        select ${first('partner', sql`partner is not null`)}
        union all select ${first('partner', sql`partner > names.name`)} from names where names.name is not null)
      select names.name as partner, ${first('next_at_ms', sql`partner = names.name`)} as next_at_ms
      from names where names.name is not null`.execute(this.#early);
    // The callbacks of a partner may have been delivered between the two reads of a database that does not lock them.
    return rows.filter((it) => it.next_at_ms !== null);
  }

  /** Returns the pending callbacks of a partner without any attempt, oldest first. */
  neverTried(partner: string, limit: number): Promise<{ id: string }[]> {
    const rows = this.#db.selectFrom('callbacks').select('id').where('partner', '=', partner);
    // These are literals, as in the partial index: with parameters SQLite would not use it.
    const first = rows.where('status', '=', sql.lit('pending')).where('tries', '=', sql.lit(0));
    return first.orderBy('seq').limit(limit).execute();
  }

  /** Returns the pending callbacks of a partner, soonest due first. */
  nextDue(partner: string, limit: number): Promise<{ id: string; tries: number; next_at_ms: number }[]> {
    return this.#db
      .selectFrom('callbacks')
      .select(['id', 'tries', 'next_at_ms'])
      .where('status', '=', 'pending')
      .where('partner', '=', partner)
      .orderBy('next_at_ms')
      .orderBy('seq')
      .limit(limit)
      .execute();
  }

  /** Returns the newest `eachMax` attempts of each callback, oldest first. `seq` counts from 1 for each callback. */
  async attemptsOf(callbackIds: string[], eachMax: number): Promise<AttemptRow[]> {
    if (callbackIds.length === 0) return [];
    const newest = sql<number>`(select max(it.seq) from callback_attempts it
      where it.callback_id = callback_attempts.callback_id) - ${sql.lit(eachMax)}`;
    const rows = this.#db.selectFrom('callback_attempts').selectAll().where('callback_id', 'in', callbackIds);
    return rows.where('seq', '>', newest).orderBy('seq').execute();
  }

  /**
   * Stores an attempt and its changes (PROTOCOL.md, clause SYN-5), and returns the status of the callback then. Returns
   * undefined, and stores nothing, if the callback was deleted. A scheduled attempt that has failed changes only a
   * callback that is as `before`: another gateway may have delivered it meanwhile, or made it due.
   */
  async addAttempt(
    attempt: NewAttempt,
    before: Pick<CallbackRow, 'tries'>,
    after: AfterAttempt & { url: string },
  ): Promise<CallbackStatus | undefined> {
    const { callback_id } = attempt;
    const seq = sql<number>`(select coalesce(max(seq), 0) + 1 from callback_attempts where callback_id = ${callback_id})`;
    return transact(this.#db, async (trx) => {
      const own = trx.updateTable('callbacks').set(after).where('id', '=', callback_id);
      const isOutcome = after.status === undefined || after.status === 'delivered';
      const as = isOutcome ? own : own.where('status', '=', 'pending').where('tries', '=', before.tries);
      const kept = trx.selectFrom('callbacks').select('status').where('id', '=', callback_id);
      const row = (await as.returning('status').executeTakeFirst()) ?? (await kept.executeTakeFirst());
      if (row === undefined) return undefined;
      await trx
        .insertInto('callback_attempts')
        .values({ ...attempt, seq })
        .execute();
      return row.status;
    });
  }
}
