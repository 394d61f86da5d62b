import type { PostgresServer } from '../support/postgres.ts';

/** Tables that every push and every payment writes. */
const TABLES = ['orders', 'pushes', 'payments'];

/** One write to a shard, by the server process of the session that made it. */
export interface Write {
  shard: number;
  backend: string;
}

/** Has the database log every write to the shards, in their order. */
export async function logWrites(postgres: PostgresServer, databaseUrl: string, shards: number): Promise<void> {
  const triggers = Array.from({ length: shards }, (_, shard) =>
    TABLES.map(
      (table) => `create trigger logged before insert or update or delete on shard_${shard}.${table}
        for each statement execute function cluster.log_write(${shard})`,
    ),
  );
  const statements = [
    'create table cluster.writes (id bigserial primary key, shard int not null, backend text not null)',
    'grant all on all tables in schema cluster to public; grant all on all sequences in schema cluster to public',
    `create function cluster.log_write() returns trigger language plpgsql as $$ begin
       insert into cluster.writes (shard, backend)
       values (tg_argv[0]::int, pg_backend_pid() || ' ' || pg_postmaster_start_time());
       return null; end $$`,
    ...triggers.flat(),
  ];
  for (const statement of statements) await postgres.run(databaseUrl, statement);
}

/** The logged writes, in their order. */
export async function writesOf(postgres: PostgresServer, databaseUrl: string): Promise<Write[]> {
  const rows = await postgres.run(databaseUrl, 'select shard, backend from cluster.writes order by id');
  return rows.map(({ shard, backend }) => ({ shard: Number(shard), backend: String(backend) }));
}

/** Shards that a session has written to again after another one had: two members held them at once. */
export function rivalWrites(writes: readonly Write[]): string[] {
  const last = new Map<number, string>();
  const over = new Set<string>();
  const rivals: string[] = [];
  for (const { shard, backend } of writes) {
    const before = last.get(shard);
    if (before === backend) continue;
    if (before !== undefined) over.add(`${shard} ${before}`);
    if (over.has(`${shard} ${backend}`)) rivals.push(`session ${backend} wrote to shard ${shard} after ${before} had`);
    last.set(shard, backend);
  }
  return rivals;
}
