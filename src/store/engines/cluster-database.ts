import pg from 'pg';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import { HostResolver } from '../../lib/resolver.ts';
import { refuseHalfRestored, SETUP_LOCK } from './cluster-restore.ts';
import { NamedSocket } from './named-socket.ts';
import { CLUSTER_SCHEMA, lockKeyOf, nameOf } from './postgres-session.ts';
import { applicationOf, REGISTRY_SHARD, schemaOf } from './shard-schema.ts';

const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 2_000;
/** A member that was not seen for so long is gone: others end its sessions, and take its shards. */
export const MEMBER_GONE_MS = 2_500;
/** Rows of members that are gone are kept so long. */
const FORGET_MEMBER_MS = 3_600_000;
const CHANNEL = 'paybox_cluster';
/** Whoever has it was not made by a cluster. */
const SINGLE_STORE = 'kysely_migration';

/** One process of a cluster. */
export interface Member {
  id: string;
  /** Where the others reach it. */
  url: string;
}

/** A member, as the others see it. */
export interface SeenMember extends Member {
  /** It hands its shards over, and takes none. */
  leaving: boolean;
}

/** A member's view of its cluster. */
export interface ClusterView {
  /** The members that were seen lately, by id. */
  members: SeenMember[];
  /** By shard: the id of the member that runs it. */
  holders: Map<number, string>;
}

/** A cluster as it was made; the number of its shards never changes. */
export interface ClusterSettings {
  shards: number;
  /** Known to members only. */
  secret: string;
  /** Another one for each restored backup; '' for a cluster that was never restored. */
  generation: string;
}

/** By what the shard of a box is found. */
export interface BoxPlace {
  terminalCode: string;
  account: string | undefined;
}

const SETUP = `
  create schema if not exists ${CLUSTER_SCHEMA};
  create table if not exists cluster.settings (one int primary key check (one = 1), shards int not null, secret text not null);
  alter table cluster.settings add column if not exists generation text not null default '';
  create unlogged table if not exists cluster.members (id text primary key, url text not null, seen_at timestamptz not null, leaving boolean not null);
  create unlogged table if not exists cluster.holders (shard int primary key, member text not null)`;

/** The tables of a cluster in its PostgreSQL database, over one connection that is opened again when it is lost. */
export class ClusterDatabase {
  readonly #databaseUrl: string;
  readonly #member: Member;
  readonly #heard: (text: string) => void;
  readonly #names = new HostResolver({ clock: systemClock });
  #client: pg.Client | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** `heard` is called with each text that a member tells, also with one's own. */
  constructor(databaseUrl: string, member: Member, heard: (text: string) => void) {
    this.#databaseUrl = databaseUrl;
    this.#member = member;
    this.#heard = heard;
  }

  /**
   * Makes the tables of the cluster if there are none. Throws ConfigError when the database has the store of a gateway on
   * its own, a cluster with another number of shards, or half a restore; else the error of the driver.
   */
  async setUp(wanted: Omit<ClusterSettings, 'generation'>): Promise<ClusterSettings> {
    await refuseHalfRestored((text, values) => this.#query(text, values), this.#databaseUrl);
    const single = await this.#query('select 1 from pg_tables where schemaname = $1 and tablename = $2', [
      'public',
      SINGLE_STORE,
    ]);
    if (single.rows.length > 0) {
      const what = `databaseUrl: ${nameOf(this.#databaseUrl)} has the store of a gateway that is in no cluster`;
      throw new ConfigError(what, 'give the cluster a database of its own');
    }
    await this.#query(`begin; select pg_advisory_xact_lock(${SETUP_LOCK}); ${SETUP}; commit`);
    await this.#query('insert into cluster.settings (one, shards, secret) values (1, $1, $2) on conflict do nothing', [
      wanted.shards,
      wanted.secret,
    ]);
    const { rows } = await this.#query<ClusterSettings>('select shards, secret, generation from cluster.settings');
    const settings = rows[0] ?? { ...wanted, generation: '' };
    if (settings.shards === wanted.shards) return settings;
    const what = `cluster.shards: expected ${settings.shards}, with which the cluster was made, not ${wanted.shards}`;
    throw new ConfigError(what, 'the number of shards cannot change');
  }

  /** Says that this member is there and runs these shards; returns what it sees. Rejects when the server does not answer. */
  async beat(shards: readonly number[], leaving = false): Promise<ClusterView> {
    const { id, url } = this.#member;
    await this.#query(
      `insert into cluster.members values ($1, $2, clock_timestamp(), $3)
         on conflict (id) do update set seen_at = excluded.seen_at, leaving = excluded.leaving`,
      [id, url, leaving],
    );
    await this.#query(
      `insert into cluster.holders select unnest($2::int[]), $1 on conflict (shard) do update
         set member = excluded.member where holders.member <> excluded.member`,
      [id, shards],
    );
    await this.#query('delete from cluster.holders where member = $1 and not shard = any($2::int[])', [id, shards]);
    await this.#query(
      `delete from cluster.members where seen_at < clock_timestamp() - interval '${FORGET_MEMBER_MS} ms'`,
    );
    const members = await this.#query<SeenMember>(
      `select id, url, leaving from cluster.members
         where seen_at > clock_timestamp() - interval '${MEMBER_GONE_MS} ms' order by id`,
    );
    const holders = await this.#query<{ shard: number; member: string }>('select shard, member from cluster.holders');
    return { members: members.rows, holders: new Map(holders.rows.map((it) => [it.shard, it.member])) };
  }

  /** Tells every member a text, at most 7,000 bytes. Rejects when the server does not answer. */
  async tell(text: string): Promise<void> {
    await this.#query('select pg_notify($1, $2)', [CHANNEL, text]);
  }

  /** Ends the sessions that hold a shard for somebody who is none of these members. */
  async endHolder(shard: number, members: readonly Member[]): Promise<void> {
    await this.#query(
      `select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid)
       where locktype = 'advisory' and granted and ((classid::bigint << 32) | objid::bigint) = $1::bigint
         and database = (select oid from pg_database where datname = current_database())
         and application_name <> all($2)`,
      [lockKeyOf(shard), members.map(({ id }) => applicationOf({ index: shard, member: id }))],
    );
  }

  /** The box with this terminalCode or, if that is empty, this serialNumber; with both empty the first that has an account. */
  async box(terminalCode: string, serialNumber: string): Promise<BoxPlace | undefined> {
    const by = terminalCode !== '' ? 'terminal_code = $1' : serialNumber !== '' ? 'serial_number = $1' : 'account > $1';
    const { rows } = await this.#query<{ terminal_code: string; account: string | null }>(
      `select terminal_code, account from ${schemaOf(REGISTRY_SHARD)}.boxes where ${by} order by terminal_code limit 1`,
      [terminalCode === '' ? serialNumber : terminalCode],
    );
    const row = rows[0];
    return row && { terminalCode: row.terminal_code, account: row.account ?? undefined };
  }

  /** Takes this member out of the cluster. */
  async leave(): Promise<void> {
    await this.#query('delete from cluster.members where id = $1', [this.#member.id]);
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
    this.#names.close();
  }

  /** One query after the other. The connection of one that fails is given up. */
  #query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<pg.QueryResult<Row>> {
    const asked = this.#last.then(async () => {
      const client = await this.#open();
      try {
        return await client.query<Row>(sql, values);
      } catch (error) {
        this.#lose(client);
        throw error;
      }
    });
    this.#last = asked.catch(() => undefined);
    return asked;
  }

  async #open(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const client = new pg.Client({
      connectionString: this.#databaseUrl,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAlive: true,
      stream: () => new NamedSocket(this.#names),
      application_name: 'paybox-member',
    });
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    client.on('notification', ({ payload = '' }) => this.#heard(payload));
    await client.connect();
    await client.query(`listen ${CHANNEL}`);
    this.#client = client;
    return client;
  }

  #lose(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    void client.end().catch(() => undefined);
  }
}
