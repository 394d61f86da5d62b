/** A run that was not seen for this time is gone. */
export const GONE_MS = 2_500;
/** A run that was not seen for this time is gone if it has no session at the server either: its process has ended. */
export const ENDED_MS = 1_500;
/** A box that its gateway has left comes to another one within this time (PROTOCOL.md, clause SHA-4). */
const COMING_MS = 5_000;
/** News are deleted after this time. A gateway that was away for longer was buried. */
const FORGET_NEWS_MS = 3_600_000;
/** Texts that were too long for a notification are deleted after this time. */
const FORGET_TEXTS_MS = 60_000;
/** "paycluste" in ASCII. This lock is held while the tables are made. */
export const SETUP_LOCK = '8097881672190555237';
const NEWS_LOCK = 7_024_118_266;
/** The SQLSTATE of a session whose run is gone. */
export const RUN_GONE = 'PB001';
/** All gateways hear this channel. */
export const CHANNEL = 'paybox_cluster';
/** Sent on the channel when there is news in the table. */
export const NEWS_ARRIVED = 'news';

/** Returns the channel that only this run hears. */
export function channelOf(run: string): string {
  return `paybox_${run.replaceAll('-', '')}`;
}

/** Returns the name of the database sessions of a run. */
export function applicationOf(run: string): string {
  return `paybox ${run}`;
}

/** Selects the open sessions of the run in `$1`, or in this column. */
export const sessionsOf = (run: string) =>
  `select pid from pg_stat_activity where application_name = '${applicationOf('')}' || ${run}`;

/** Holds for a row of `cluster.left_boxes` whose box is on its way to another gateway. */
export const IS_COMING = `left_at > clock_timestamp() - interval '${COMING_MS} ms'`;

/** Records that the boxes of `ended` were left by their gateway. */
export const RECORD_LEFT = `insert into cluster.left_boxes (terminal_code, left_at)
  select terminal_code, clock_timestamp() from ended on conflict (terminal_code) do update set left_at = excluded.left_at`;

/** Deletes the row of the run in `$1`, and with it all its leases. Its boxes are on their way to other gateways. */
export const REMOVE_RUN = `with ended as (delete from cluster.box_sessions where run = $1 returning terminal_code),
  recorded as (${RECORD_LEFT}) delete from cluster.gateways where run = $1`;

/** Makes the tables that gateways share beside the store. Running it again changes nothing. */
export const SETUP = `
  create schema if not exists cluster;
  create table if not exists cluster.settings (one int primary key check (one = 1), secret text not null, generation text not null default '');
  create table if not exists cluster.lanes (lane int primary key, name text not null unique, joined_at timestamptz not null);
  create table if not exists cluster.gateways (run text primary key,
    name text not null unique references cluster.lanes (name), seen_at timestamptz not null,
    gone boolean not null default false, leaving boolean not null default false,
    served boolean not null default false, file text not null, alike jsonb not null,
    ahead_ms float8, sessions int not null default 0);
  create table if not exists cluster.box_sessions (terminal_code text primary key,
    run text not null references cluster.gateways on delete cascade, session_id text not null, serial_number text not null,
    agent_version text not null, display text not null, transport text not null, since_ms float8 not null,
    kid text not null, hello_ms float8 not null);
  create index if not exists box_sessions_of_run on cluster.box_sessions (run);
  create unlogged table if not exists cluster.left_boxes (terminal_code text primary key, left_at timestamptz not null);
  create table if not exists cluster.box_streams (terminal_code text not null, session_id text not null,
    run text not null references cluster.gateways on delete cascade, primary key (terminal_code, session_id));
  create index if not exists box_streams_of_run on cluster.box_streams (run);
  create table if not exists cluster.leases (work text primary key, run text not null references cluster.gateways on delete cascade);
  create index if not exists leases_of_run on cluster.leases (run);
  create table if not exists cluster.news (seq bigint generated always as identity primary key, told_at timestamptz not null, text text not null);
  create unlogged table if not exists cluster.texts (id bigint generated always as identity primary key, told_at timestamptz not null, text text not null);
  create or replace function cluster.tell(told text) returns void language plpgsql as $$ begin
    -- In their order: whoever has read a number has read all before it.
    perform pg_advisory_xact_lock(${NEWS_LOCK});
    delete from cluster.news where told_at < clock_timestamp() - interval '${FORGET_NEWS_MS} ms';
    insert into cluster.news (told_at, text) values (clock_timestamp(), told);
    perform pg_notify('${CHANNEL}', '${NEWS_ARRIVED}');
  end $$;
  create or replace function cluster.keep(kept text) returns bigint language plpgsql as $$ declare made bigint; begin
    delete from cluster.texts where told_at < clock_timestamp() - interval '${FORGET_TEXTS_MS} ms';
    insert into cluster.texts (told_at, text) values (clock_timestamp(), kept) returning id into made;
    return made;
  end $$;
  create or replace function cluster.enter(entering text) returns void language plpgsql as $$ begin
    if not exists (select 1 from cluster.gateways where run = entering and not gone) then
      raise exception 'this run is gone' using errcode = '${RUN_GONE}';
    end if;
  end $$`;
