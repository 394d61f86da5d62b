import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { vietnamDay } from '../../../lib/vietnam-time.ts';
import type { CreditRow, NewCreditRow, Tables } from '../schema/tables.ts';
import { accountsBehind } from './payment-requests.ts';

/** A reference as `spelled` returns it, in SQL. An index of a migration contains it, so it must never change. */
export const SPELLED_REFERENCE = sql<string>`upper(replace(replace(replace(replace(replace("reference",
  ' ', ''), '.', ''), '-', ''), '_', ''), '/', ''))`;

/** At most this many credits of one amount are compared. */
const COMPARED_MAX = 100;
const DAY_MS = 86_400_000;
/** Sources that report the same transfer may give it two different days if it was made around midnight. */
const MIDNIGHT_MS = 3_600_000;
/** A webhook without the bank's reference, and the same transfer in a list, have about the same time. */
const SAME_TIME_MS = 60_000;
const LISTED = 'list ';

/** How a credit was reported. Its row does not contain this. */
export interface Asked {
  /** Only for an entry of a list that says of each credit if a webhook has reported it too. */
  webhook?: 'told' | 'missed' | undefined;
  /** True if `bank_time_ms` is the source's time. */
  time_is_known: boolean;
}

/** Returns the id of an entry of a list whose numbers differ from those in the webhooks of the source. */
export function listedId(id: string): string {
  return `${LISTED}${id}`;
}

/** Returns a bank's reference without the signs that sources write differently: capitals, hyphens, points, blanks. */
export function spelled(reference: string): string {
  return reference.toUpperCase().replaceAll(/[ .\-_/]/g, '');
}

/**
 * Returns the stored credit that is the same money (PROTOCOL.md, clauses CRE-2 and CRE-9). `known` has accounts by the
 * names of their virtual accounts.
 */
export async function sameCredit(
  db: Kysely<Tables>,
  credit: NewCreditRow & Asked,
  known: ReadonlyMap<string, string>,
): Promise<CreditRow | undefined> {
  const { id, source, source_id, reference, amount } = credit;
  const rows = db.selectFrom('credits').selectAll();
  const found = [await rows.where('source', '=', source).where('source_id', '=', source_id).execute()];
  if (reference !== '') {
    const spelledAlike = within(rows, credit, DAY_MS + MIDNIGHT_MS)
      .where(SPELLED_REFERENCE, '=', spelled(reference))
      .where('amount', '=', amount)
      // This is a literal, because with a parameter SQLite does not use the index.
      .where('reference', '<>', sql.lit(''));
    found.push(await spelledAlike.execute());
    // The id contains the reference. So it is found even if the database converts capitals in another way than this
    // program.
    found.push(await rows.where('id', '=', id).execute());
  }
  if (reference === '' || isListed(credit)) {
    const sameTime = within(rows, credit, SAME_TIME_MS).where('amount', '=', amount).where('source', '=', source);
    found.push(await sameTime.execute());
  }
  const alike = found.flat();
  if (alike.length === 0) return undefined;
  const names = new Set([credit, ...alike].flatMap((it) => [it.bank_account, it.virtual_account]));
  const behind = await accountsBehind(db, [...names]);
  const mainOf = (name: string) => known.get(name) ?? behind.get(name);
  const same = alike.filter((it) => isSameMoney(it, credit, mainOf));
  // If a credit names only the main account, several stored ones may be the same. Then the one that was paid is chosen.
  return same.find((it) => it.source_id === source_id) ?? same.find((it) => it.payment_id !== null) ?? same[0];
}

/** Selects credits of about the same time, oldest first. Without a known time, credits of any time. */
function within<Row>(rows: SelectQueryBuilder<Tables, 'credits', Row>, credit: NewCreditRow & Asked, ms: number) {
  const listed = rows.orderBy('seq').limit(COMPARED_MAX);
  if (!credit.time_is_known) return listed;
  const { bank_time_ms: atMs } = credit;
  return listed.where('bank_time_ms', '>=', atMs - ms).where('bank_time_ms', '<=', atMs + ms);
}

/**
 * Returns whether a stored credit and a reported one are the same money. Within a source, its own ids decide. Where its
 * list has other ids, and between two sources, reference, account, amount and day decide.
 */
export function isSameMoney(stored: NewCreditRow, told: NewCreditRow & Asked, mainOf: MainOf): boolean {
  const isOneSource = stored.source === told.source;
  if (isOneSource && isListed(stored) === isListed(told)) {
    // A source without its own ids uses the bank's reference. Another bank may use the same reference.
    const isByBank = told.source_id === told.reference;
    return stored.source_id === told.source_id && (!isByBank || isSameAccount(stored, told, mainOf));
  }
  if (stored.amount !== told.amount || !isSameAccount(stored, told, mainOf)) return false;
  if (stored.reference !== '' && told.reference !== '') {
    return isSameReference(stored.reference, told.reference) && isSameDay(stored, told);
  }
  const isApartMs = Math.abs(stored.bank_time_ms - told.bank_time_ms);
  return isOneSource && told.webhook !== 'missed' && told.time_is_known && isApartMs <= SAME_TIME_MS;
}

function isListed({ source_id }: NewCreditRow): boolean {
  return source_id.startsWith(LISTED);
}

/** Returns whether two references are the same. Sources may write other signs or none, but in the same places. */
export function isSameReference(a: string, b: string): boolean {
  if (spelled(a) !== spelled(b)) return false;
  const [signsA, signsB] = [signsIn(a), signsIn(b)];
  return signsA.every((it) => signsB.includes(it)) || signsB.every((it) => signsA.includes(it));
}

/** Returns the place of each sign in a reference: the number of letters and digits before it. */
function signsIn(reference: string): number[] {
  const parts = reference.split(/[ .\-_/]+/);
  return parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join('').length);
}

function isSameDay(a: NewCreditRow, told: NewCreditRow & Asked): boolean {
  if (!told.time_is_known || vietnamDay(a.bank_time_ms) === vietnamDay(told.bank_time_ms)) return true;
  return Math.abs(a.bank_time_ms - told.bank_time_ms) <= MIDNIGHT_MS;
}

type MainOf = (name: string) => string | undefined;
type CreditNames = { bank_account: string; virtual_account: string };

/**
 * Returns whether two credits of one reference and amount are to one account: they share a name, or one is to a virtual
 * account of the other's account. Two different virtual accounts have different money.
 */
export function isSameAccount(a: CreditNames, b: CreditNames, mainOf: MainOf): boolean {
  const [virtualA, virtualB] = [virtualOf(a, mainOf), virtualOf(b, mainOf)];
  if (virtualA !== '' && virtualB !== '' && virtualA !== virtualB) return false;
  const names = namesOf(a, mainOf);
  return [...namesOf(b, mainOf)].some((it) => names.has(it));
}

/** Returns the virtual account of a credit. '' if it names none. */
function virtualOf({ bank_account, virtual_account }: CreditNames, mainOf: MainOf): string {
  if (virtual_account !== '' && virtual_account !== bank_account) return virtual_account;
  return mainOf(bank_account) === undefined ? '' : bank_account;
}

function namesOf({ bank_account, virtual_account }: CreditNames, mainOf: MainOf): ReadonlySet<string> {
  const told = [bank_account, virtual_account].filter((it) => it !== '');
  return new Set(told.flatMap((it) => [it, mainOf(it) ?? it]));
}
