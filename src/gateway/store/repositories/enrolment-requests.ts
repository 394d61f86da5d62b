import { type Kysely, sql } from 'kysely';
import { ENROLMENT_LIFETIME_MS } from '../../../protocol/enrolment.ts';
import type { BoxSecretRow, EnrolmentRequestRow, NewEnrolmentRequest, Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { keepBoxSecret } from './credentials.ts';

/** An expired request is stored for some time. Otherwise nobody could tell it from a later one with the same code. */
export const REMEMBERED_MS = 2 * ENROLMENT_LIFETIME_MS;

/** The requests that are remembered: those of one box, of all boxes, and of one network among them. */
export interface RequestCounts {
  ofBox: number;
  ofBoxFromNetwork: number;
  ofNetwork: number;
  all: number;
  /** When the oldest request for the box was made, if possible of those from the network. Undefined without one. */
  oldestMs: number | undefined;
}

/** The change that an admin's answer makes to the requests of a box. */
export type EnrolmentChange =
  | { kind: 'none' | 'rejected' | 'wrong-code' }
  /** The requests with these ids have this state. All others are rejected. Only the first one gets another end. */
  | { kind: 'accepted'; ids: readonly [string, ...string[]]; state: string; untilMs: number; secret: BoxSecretRow };

const REJECTED = JSON.stringify({ state: 'rejected' });

/** Stores the requests of boxes to enrol, and what became of them, for all gateways (PROTOCOL.md, clause ENR-7). */
export class EnrolmentRequestStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  async find(id: string): Promise<EnrolmentRequestRow | undefined> {
    return this.#db.selectFrom('enrolment_requests').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Returns the requests that nobody has answered, made at these runs, by box and then oldest first. */
  pending(runs: readonly string[], nowMs: number): Promise<EnrolmentRequestRow[]> {
    const rows = this.#db.selectFrom('enrolment_requests').selectAll().where('state', 'is', null);
    const live = rows.where('until_ms', '>', nowMs).where('run', 'in', runs);
    return live.orderBy('terminal_code').orderBy('asked_at_ms').orderBy('id').execute();
  }

  /**
   * Stores a request, and settles with its id once it is durable. The same request that was stored before keeps its id.
   * Stores nothing if `waitMs` finds that there is no room, and returns the time that it says. `isLive` says which
   * requests have not expired.
   */
  add(
    request: NewEnrolmentRequest,
    isLive: (row: EnrolmentRequestRow) => boolean,
    waitMs: (counts: RequestCounts) => number,
  ): Promise<{ id: string; isNew: boolean } | { waitMs: number }> {
    const { terminal_code, asked_at_ms: nowMs, network } = request;
    return transact(this.#db, async (trx) => {
      // A time in the future is of a clock that was set back since.
      const old = trx.deleteFrom('enrolment_requests').where('asked_at_ms', '<=', nowMs - REMEMBERED_MS);
      await old.execute();
      await trx
        .deleteFrom('enrolment_requests')
        .where('asked_at_ms', '>', nowMs + REMEMBERED_MS)
        .execute();
      const alike = trx.selectFrom('enrolment_requests').selectAll().where('terminal_code', '=', terminal_code);
      const same = alike.where('public_key', '=', request.public_key).where('proof', '=', request.proof);
      const known = (await same.execute()).find(isLive);
      if (known !== undefined) return { id: known.id, isNew: false };
      const wait = waitMs(await countsOf(trx, terminal_code, network));
      if (wait > 0) return { waitMs: wait };
      const newest = alike.orderBy('asked_at_ms', 'desc').limit(1);
      const wrong_codes = (await newest.where('until_ms', '>', nowMs).executeTakeFirst())?.wrong_codes ?? 0;
      await trx
        .insertInto('enrolment_requests')
        .values({ ...request, wrong_codes, state: null })
        .execute();
      return { id: request.id, isNew: true };
    });
  }

  /**
   * Reads the remembered requests of a box, oldest first, and makes the change that `decide` returns, in one
   * transaction. `counts` are those for a network that has no request.
   */
  decide<T extends { change: EnrolmentChange }>(
    terminalCode: string,
    nowMs: number,
    decide: (requests: EnrolmentRequestRow[], counts: RequestCounts) => T,
  ): Promise<T> {
    return transact(this.#db, async (trx) => {
      const rows = trx.selectFrom('enrolment_requests').selectAll().where('terminal_code', '=', terminalCode);
      const remembered = rows
        .where('asked_at_ms', '>', nowMs - REMEMBERED_MS)
        .orderBy('asked_at_ms')
        .orderBy('id');
      const decided = decide(await remembered.execute(), await countsOf(trx, terminalCode, ''));
      const { change } = decided;
      const all = trx.updateTable('enrolment_requests').where('terminal_code', '=', terminalCode);
      if (change.kind === 'wrong-code') await all.set({ wrong_codes: sql`wrong_codes + 1` }).execute();
      if (change.kind === 'rejected' || change.kind === 'accepted') {
        await all.set({ state: REJECTED, wrong_codes: 0 }).execute();
      }
      if (change.kind === 'accepted') {
        const { ids, state, untilMs, secret } = change;
        await all.set({ state }).where('id', 'in', ids).execute();
        await all.set({ until_ms: untilMs }).where('id', '=', ids[0]).execute();
        await keepBoxSecret(trx, secret);
      }
      return decided;
    });
  }
}

async function countsOf(db: Kysely<Tables>, terminalCode: string, network: string): Promise<RequestCounts> {
  const own = sql`terminal_code = ${terminalCode}`;
  const theirs = sql`network = ${network}`;
  const count = (where: unknown) => sql`(select count(*) from enrolment_requests where ${where})`;
  const oldest = (where: unknown) => sql`(select min(asked_at_ms) from enrolment_requests where ${where})`;
  const { rows } = await sql<Omit<RequestCounts, 'oldestMs'> & { oldestMs: number | null }>`select
    ${count(own)} as "ofBox", ${count(sql`${own} and ${theirs}`)} as "ofBoxFromNetwork",
    ${count(theirs)} as "ofNetwork", ${count(sql`1 = 1`)} as "all",
    coalesce(${oldest(sql`${own} and ${theirs}`)}, ${oldest(own)}) as "oldestMs"`.execute(db);
  const { ofBox = 0, ofBoxFromNetwork = 0, ofNetwork = 0, all = 0, oldestMs } = rows[0] ?? {};
  return { ofBox, ofBoxFromNetwork, ofNetwork, all, oldestMs: oldestMs ?? undefined };
}
