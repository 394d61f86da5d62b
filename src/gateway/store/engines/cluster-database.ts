import { systemClock } from '../../../lib/clock.ts';
import { ConfigError } from '../../../lib/errors.ts';
import { HostResolver } from '../../../lib/resolver.ts';
import type { BoxName } from '../../../protocol/fields.ts';
import { type AdminTokenRow, KEY_ID } from '../schema/tables.ts';
import { refuseHalfRestored, SETUP_LOCK } from './cluster-restore.ts';
import { ClusterSession } from './cluster-session.ts';
import { type DatabaseClock, NOW_MS_SQL } from './database-clock.ts';
import { CLUSTER_SCHEMA, lockKeyOf, nameOf } from './postgres-session.ts';
import { applicationOf, REGISTRY_SHARD, schemaOf } from './shard-schema.ts';

/** A member that was not seen for this time is gone. Other members end its sessions, and take its shards. */
export const MEMBER_GONE_MS = 2_500;
/** The rows of members that are gone are deleted after this time. */
const FORGET_MEMBER_MS = 3_600_000;
const CHANNEL = 'paybox_cluster';
/** Sent on the channel when there is news in the table. */
const NEWS = 'news';
const NEWS_LOCK = 7_024_118_266;
/** News are deleted after this time. A member that was away for longer has restarted, or has lost its shards. */
const FORGET_NEWS_MS = 3_600_000;
/** A database with this table was not created by a cluster. */
const SINGLE_STORE = 'kysely_migration';

/** One process of a cluster. */
export interface Member {
  id: string;
  /** The address at which the other members reach it. */
  url: string;
  /** A digest of the settings that all members should share. */
  file: string;
  /** The settings that must be equal at all members. A member with another value does not join. */
  alike: Readonly<Record<string, string>>;
}

/** A member as the others see it. */
export interface SeenMember extends Member {
  /** True if it hands over its shards, and takes none. */
  leaving: boolean;
  /** How far its clock is ahead of the database's. Null before it knows. */
  aheadMs?: number | null;
}

/** A member's view of its cluster. */
export interface ClusterView {
  /** The members that were seen lately, by id. */
  members: SeenMember[];
  /** The id of the member that runs a shard, by shard. */
  holders: Map<number, string>;
  /** True if a crash of the server has emptied the tables of members, and the others have not beaten again yet. */
  isEmptied?: boolean;
}

/** The settings of a cluster since its first start. The number of its shards never changes. */
export interface ClusterSettings {
  shards: number;
  /** A secret that only the members know. */
  secret: string;
  /** Differs for each restored backup. '' for a cluster that was never restored. */
  generation: string;
}

type ClusterToken = Pick<AdminTokenRow, 'id' | 'name' | 'role' | 'boxes' | 'last_used_at_ms'>;

/** The facts that decide which shard a box belongs to. */
export interface BoxPlace {
  terminalCode: string;
  account: string | undefined;
}

const SETUP = `
  create schema if not exists ${CLUSTER_SCHEMA};
  create table if not exists cluster.settings (one int primary key check (one = 1), shards int not null, secret text not null);
  alter table cluster.settings add column if not exists generation text not null default '';
  create unlogged table if not exists cluster.members (id text primary key, url text not null, seen_at timestamptz not null, leaving boolean not null, file text not null);
  alter table cluster.members add column if not exists alike jsonb not null default '{}';
  alter table cluster.members add column if not exists ahead_ms float8;
  create unlogged table if not exists cluster.holders (shard int primary key, member text not null);
  create table if not exists cluster.news (seq int generated always as identity primary key, told_at timestamptz not null, text text not null);
  create or replace function cluster.tell(told text) returns void language plpgsql as $$ begin
    -- In their order: whoever has read a number has read all before it.
    perform pg_advisory_xact_lock(${NEWS_LOCK});
    delete from cluster.news where told_at < clock_timestamp() - interval '${FORGET_NEWS_MS} ms';
    insert into cluster.news (told_at, text) values (clock_timestamp(), told);
    perform pg_notify('${CHANNEL}', '${NEWS}');
  end $$`;

/** Reads and writes the tables of a cluster in its PostgreSQL database. */
export class ClusterDatabase {
  readonly #databaseUrl: string;
  readonly #member: Member;
  readonly #names = new HostResolver({ clock: systemClock });
  readonly #heard: (text: string) => void;
  /** Compared with the database at each beat. */
  readonly #time: DatabaseClock;
  /** The newest text that was read. Undefined before the first beat. */
  #heardSeq: number | undefined;
  #reading: Promise<unknown> = Promise.resolve();
  #hasBeaten = false;
  readonly #own: ClusterSession;
  /** A connection for lookups. Strangers cause them, and must not delay a beat. */
  readonly #lookups: ClusterSession;
  /** A connection for taking over shards. Many are taken over at once, while beats continue. */
  readonly #takeovers: ClusterSession;

  /** Calls `heard` with each text that a member sends. That includes the texts of this member. */
  constructor(databaseUrl: string, member: Member, time: DatabaseClock, heard: (text: string) => void) {
    this.#databaseUrl = databaseUrl;
    this.#member = member;
    this.#heard = heard;
    this.#time = time;
    const to = { databaseUrl, names: this.#names };
    this.#own = new ClusterSession({
      ...to,
      application: 'paybox-member',
      greeting: `listen ${CHANNEL}`,
      onNotification: (text) => (text === NEWS ? void this.#readNews().catch(() => undefined) : heard(text)),
    });
    this.#lookups = new ClusterSession({ ...to, application: 'paybox-lookups' });
    this.#takeovers = new ClusterSession({ ...to, application: 'paybox-takeover' });
  }

  /**
   * Creates the tables of the cluster if they are missing. Throws ConfigError when the database contains the store of a
   * gateway alone, a cluster with another number of shards, or an unfinished restore. Throws the error of the driver
   * otherwise.
   */
  async setUp(wanted: Omit<ClusterSettings, 'generation'>): Promise<ClusterSettings> {
    await refuseHalfRestored((text, values) => this.#own.query(text, values), this.#databaseUrl);
    const single = await this.#own.query('select 1 from pg_tables where schemaname = $1 and tablename = $2', [
      'public',
      SINGLE_STORE,
    ]);
    if (single.rows.length > 0) {
      const what = `databaseUrl: ${nameOf(this.#databaseUrl)} has the store of a gateway that is in no cluster`;
      throw new ConfigError(what, 'give the cluster a database of its own');
    }
    // Without parameters, all statements of one query run in one transaction.
    await this.#own.query(`select pg_advisory_xact_lock(${SETUP_LOCK}); ${SETUP}`);
    await this.#own.query(
      'insert into cluster.settings (one, shards, secret) values (1, $1, $2) on conflict do nothing',
      [wanted.shards, wanted.secret],
    );
    const { rows } = await this.#own.query<ClusterSettings>('select shards, secret, generation from cluster.settings');
    const settings = rows[0] ?? { ...wanted, generation: '' };
    if (settings.shards === wanted.shards) return settings;
    const what = `cluster.shards: expected ${settings.shards}, with which the cluster was made, not ${wanted.shards}`;
    throw new ConfigError(what, 'the number of shards cannot change');
  }

  /** Returns the id of the key that encrypts the secrets of the registry. Undefined while there are no secrets. */
  async registryKeyId(): Promise<string | undefined> {
    const settings = `${schemaOf(REGISTRY_SHARD)}.settings`;
    const made = await this.#own.query<{ is_made: boolean }>('select to_regclass($1) is not null as is_made', [
      settings,
    ]);
    if (made.rows[0]?.is_made !== true) return undefined;
    const kept = await this.#own.query<{ value: string }>(`select value from ${settings} where name = $1`, [KEY_ID]);
    return kept.rows[0]?.value;
  }

  /** Reports that this member runs these shards. Returns its view of the cluster. Rejects without an answer. */
  async beat(shards: readonly number[], leaving = false): Promise<ClusterView> {
    const { id, url, file, alike } = this.#member;
    const said = await this.#time.measure(() =>
      this.#own.query<{ is_new: boolean; now_ms: number }>(
        `insert into cluster.members (id, url, seen_at, leaving, file, alike, ahead_ms)
           values ($1, $2, clock_timestamp(), $3, $4, $5, $6) on conflict (id) do update
           set seen_at = excluded.seen_at, leaving = excluded.leaving, ahead_ms = excluded.ahead_ms
           returning xmax = 0 as is_new, ${NOW_MS_SQL} as now_ms`,
        [id, url, leaving, file, alike, this.#time.aheadMs],
      ),
    );
    const isEmptied = this.#hasBeaten && said?.is_new === true;
    this.#hasBeaten = true;
    await this.#own.query(
      `insert into cluster.holders select unnest($2::int[]), $1 on conflict (shard) do update
         set member = excluded.member where holders.member <> excluded.member`,
      [id, shards],
    );
    await this.#own.query('delete from cluster.holders where member = $1 and not shard = any($2::int[])', [id, shards]);
    await this.#own.query(
      `delete from cluster.members where seen_at < clock_timestamp() - interval '${FORGET_MEMBER_MS} ms'`,
    );
    const members = await this.#own.query<SeenMember>(
      `select id, url, leaving, file, alike, ahead_ms as "aheadMs" from cluster.members
         where seen_at > clock_timestamp() - interval '${MEMBER_GONE_MS} ms' order by id`,
    );
    const holders = await this.#own.query<{ shard: number; member: string }>(
      'select shard, member from cluster.holders',
    );
    await this.#readNews();
    return { members: members.rows, holders: new Map(holders.rows.map((it) => [it.shard, it.member])), isEmptied };
  }

  /**
   * Sends a text of at most 7,000 bytes to every member. A member that has lost its connection reads it once it is
   * connected again. Rejects when the server does not answer.
   */
  async tell(text: string): Promise<void> {
    await this.#own.query('select cluster.tell($1)', [text]);
  }

  /** Does the same as `tell`, but a member that is not connected now never receives the text. */
  async tellOnce(text: string): Promise<void> {
    await this.#own.query('select pg_notify($1, $2)', [CHANNEL, text]);
  }

  /** Reads the texts since the last time. A member that has just joined reads no older ones. */
  #readNews(): Promise<void> {
    const reading = this.#reading.then(async () => {
      const { rows } = await this.#own.query<{ seq: number; text: string | null }>(
        this.#heardSeq === undefined
          ? 'select coalesce(max(seq), 0)::int as seq, null as text from cluster.news'
          : 'select seq, text from cluster.news where seq > $1 order by seq',
        this.#heardSeq === undefined ? [] : [this.#heardSeq],
      );
      for (const { seq, text } of rows) {
        this.#heardSeq = seq;
        if (text !== null) this.#heard(text);
      }
    });
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  /** Ends the sessions that hold a shard for a member that is not in this list. */
  async endHolder(shard: number, members: readonly { id: string }[]): Promise<void> {
    await this.#takeovers.query(
      `select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid)
       where locktype = 'advisory' and granted and ((classid::bigint << 32) | objid::bigint) = $1::bigint
         and database = (select oid from pg_database where datname = current_database())
         and application_name <> all($2)`,
      [lockKeyOf(shard), members.map(({ id }) => applicationOf({ index: shard, member: id }))],
    );
  }

  /**
   * Returns the boxes with these terminalCodes. Where that is empty, the box with the serialNumber. With both empty,
   * the first box that has an account. The order is that of the names, with undefined for a name without a box.
   */
  async boxes(names: readonly BoxName[]): Promise<(BoxPlace | undefined)[]> {
    const codes = names.map((it) => it.terminalCode);
    const serials = names.map((it) => (it.terminalCode === '' ? it.serialNumber : ''));
    const anyone = names.some((_, i) => codes[i] === '' && serials[i] === '');
    const table = `${schemaOf(REGISTRY_SHARD)}.boxes`;
    const { rows } = await this.#lookups.query<{
      terminal_code: string;
      serial_number: string;
      account: string | null;
    }>(
      `select terminal_code, serial_number, account from ${table}
         where terminal_code = any($1) or serial_number = any($2)
         or ($3 and terminal_code = (select min(terminal_code) from ${table} where account is not null))
         order by terminal_code`,
      [codes, serials, anyone],
    );
    const byCode = new Map(rows.map((row) => [row.terminal_code, row]));
    const bySerial = new Map(rows.toReversed().map((row) => [row.serial_number, row]));
    const first = rows.find(({ account }) => account !== null);
    return names.map(({ terminalCode, serialNumber }) => {
      const row =
        terminalCode !== '' ? byCode.get(terminalCode) : serialNumber !== '' ? bySerial.get(serialNumber) : first;
      return row && { terminalCode: row.terminal_code, account: row.account ?? undefined };
    });
  }

  /** Finds the token with this digest, if it is not revoked. */
  async adminToken(digest: string): Promise<ClusterToken | undefined> {
    const { rows } = await this.#lookups.query<ClusterToken>(
      `select id, name, role, boxes, last_used_at_ms::float8 from ${schemaOf(REGISTRY_SHARD)}.admin_tokens
         where digest = $1 and revoked_at_ms is null`,
      [digest],
    );
    return rows[0];
  }

  /** Removes this member from the cluster. */
  async leave(): Promise<void> {
    await this.#own.query('delete from cluster.members where id = $1', [this.#member.id]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#own, this.#lookups, this.#takeovers].map((it) => it.close()));
    this.#names.close();
  }
}
