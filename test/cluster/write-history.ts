import type { PostgresServer } from '../support/postgres.ts';

/** Tables that every push and every payment writes, and the callbacks of it. */
const TABLES = ['orders', 'pushes', 'payments', 'notices', 'callbacks', 'callback_attempts'];

/** One write to the store by a run, or the end of a run: nobody may write as this run afterwards. */
export interface Write {
  run: string;
  /** `buried` for the end of the run. */
  what: string;
}

/** Has the database log every write and every burial, in their order. */
export async function logWrites(postgres: PostgresServer, databaseUrl: string): Promise<void> {
  const statements = [
    `create schema tested; grant usage on schema tested to public;
     create table tested.writes (id bigserial primary key, run text not null, what text not null)`,
    'grant all on all tables in schema tested to public; grant all on all sequences in schema tested to public',
    // The name of a session is "paybox RUN".
    `create function tested.log_write() returns trigger language plpgsql as $$ begin
       insert into tested.writes (run, what)
         values (substr(current_setting('application_name'), length('paybox ') + 1), tg_table_name);
       return null; end $$`,
    `create function tested.log_burial() returns trigger language plpgsql as $$ begin
       insert into tested.writes (run, what) values (old.run, 'buried'); return null; end $$`,
    'create trigger logged after delete on cluster.gateways for each row execute function tested.log_burial()',
    ...TABLES.map(
      (table) => `create trigger logged before insert or update or delete on public.${table}
        for each statement execute function tested.log_write()`,
    ),
  ];
  for (const statement of statements) await postgres.run(databaseUrl, statement);
}

/** The logged writes, in their order. */
export async function writesOf(postgres: PostgresServer, databaseUrl: string): Promise<Write[]> {
  const rows = await postgres.run(databaseUrl, 'select run, what from tested.writes order by id');
  return rows.map(({ run, what }) => ({ run: String(run), what: String(what) }));
}

/** Writes of runs that had been buried, and attempts at callbacks by a run after another one had taken them over. */
export function lateWrites(writes: readonly Write[]): string[] {
  const buried = new Set<string>();
  const senders = new Set<string>();
  let sender: string | undefined;
  const late: string[] = [];
  for (const { run, what } of writes) {
    if (what === 'buried') {
      buried.add(run);
      continue;
    }
    if (buried.has(run)) late.push(`run ${run} wrote to ${what} after it was buried`);
    // The lease of a queue ends with its run alone. All accounts of these tests belong to one partner.
    if (what !== 'callback_attempts' || run === sender) continue;
    if (senders.has(run)) late.push(`run ${run} recorded an attempt at a callback after ${sender} had`);
    senders.add(run);
    sender = run;
  }
  return late;
}
