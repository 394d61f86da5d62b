import pg from 'pg';
import { CLOCK_SKEW_MS_MAX, type Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import { type Finding, failed, skipped, well } from './findings.ts';
import { skewOf } from './machine.ts';

const LIMITS = { connectionTimeoutMillis: 5_000, query_timeout: 5_000 };
/** The check asks the clock this often. The fastest answer has the smallest error. */
const CLOCK_QUESTIONS = 3;
const CHECKS = ['database disk', 'database standbys', 'database clock'];
const SETTINGS = ['fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names'] as const;
/** A user without the right to read statistics sees only that standbys exist. */
const STANDBYS = `select count(*)::int as connected,
    count(*) filter (where sync_state in ('sync', 'quorum'))::int as synchronous,
    coalesce(bool_or(state is null), false) as hidden,
    coalesce(string_agg(application_name, ', ' order by application_name), '') as names
  from pg_stat_replication`;

type Settings = Record<(typeof SETTINGS)[number], string>;

interface Standbys {
  connected: number;
  synchronous: number;
  hidden: boolean;
  names: string;
}

/**
 * Checks at a PostgreSQL server whether it can lose acknowledged payments, and how its clock differs from this
 * machine's.
 */
export async function databaseFindings(databaseUrl: string, clock: Clock): Promise<Finding[]> {
  const { host, pathname } = new URL(databaseUrl);
  const check = 'database';
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'paybox-doctor', ...LIMITS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string; is_standby: boolean }>(
      "select current_setting('server_version') as version, pg_is_in_recovery() as is_standby",
    );
    const found = `PostgreSQL ${rows[0]?.version} at ${host}${pathname}`;
    if (rows[0]?.is_standby === true) {
      const standby = new Error(`${found} is a standby, which takes no writes`);
      const fix = 'lead databaseUrl to the primary, or promote this server if the primary is gone for good';
      return [failed(check, standby, fix), ...CHECKS.map((it) => skipped(it, 'the server is a standby'))];
    }
    const settings = await settingsOf(client);
    const standbys = (await client.query<Standbys>(STANDBYS)).rows[0];
    return [
      well(check, `${found}, a primary`),
      diskFinding(settings),
      standbysFinding(settings, standbys),
      await databaseClockFinding(client, clock),
    ];
  } catch (error) {
    const what = new Error(`${host}${pathname}: ${reasonOf(error)}`);
    const fix = 'start PostgreSQL, or correct databaseUrl; its user must be allowed to connect';
    return [failed(check, what, fix), ...CHECKS.map((it) => skipped(it, 'the database was not asked'))];
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function settingsOf(client: pg.Client): Promise<Settings> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    'select name, setting from pg_settings where name = any($1)',
    [SETTINGS],
  );
  const settingOf = (name: string) => rows.find((it) => it.name === name)?.setting ?? '';
  return Object.fromEntries(SETTINGS.map((name) => [name, settingOf(name)])) as Settings;
}

function diskFinding(settings: Settings): Finding {
  const { fsync, full_page_writes, synchronous_commit } = settings;
  const check = 'database disk';
  const off = Object.entries({ fsync, full_page_writes }).flatMap(([name, value]) => (value === 'on' ? [] : [name]));
  if (off.length > 0) {
    const what = `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: a crash or power cut of the server may lose or damage acknowledged payments`;
    return failed(
      check,
      new Error(what),
      `set ${off.map((it) => `${it} = on`).join(' and ')} at the server, and reload it`,
    );
  }
  const others = synchronous_commit === 'on' ? '' : `; the gateway sets its own, in place of ${synchronous_commit}`;
  return well(check, `fsync and full_page_writes are on, synchronous_commit is ${synchronous_commit}${others}`);
}

function standbysFinding({ synchronous_standby_names: wanted }: Settings, standbys: Standbys | undefined): Finding {
  const check = 'database standbys';
  const { connected = 0, synchronous = 0, hidden = false, names = '' } = standbys ?? {};
  const of = `${connected} ${connected === 1 ? 'standby' : 'standbys'}`;
  if (wanted === '') {
    if (connected === 0) return well(check, 'none is connected: the server has nothing to fail over to');
    const found = `${of}${names === '' ? '' : ` (${names})`}, none of them synchronous: a failover loses the newest acknowledged payments`;
    const fix = "set synchronous_standby_names at the server, as 'ANY 1 (NAME, NAME)', and reload it";
    return { check, result: 'warning', found, fix };
  }
  if (hidden) return skipped(check, `synchronous_standby_names is ${wanted}; only pg_read_all_stats sees its standbys`);
  if (synchronous > 0) return well(check, `${of}, ${synchronous} of them synchronous (${wanted})`);
  const what = `synchronous_standby_names is ${wanted}, and no such standby is connected: every payment waits, and is refused`;
  return failed(
    check,
    new Error(what),
    'start the standby, or take its name out until it is back, and reload the server',
  );
}

/**
 * Compares the database's clock with this machine's. The database dates what gateways of a cluster do. A gateway
 * alone dates only its tokens by it, and everything else by its machine.
 */
async function databaseClockFinding(client: pg.Client, clock: Clock): Promise<Finding> {
  const check = 'database clock';
  let best = { aheadMs: 0, errorMs: Number.POSITIVE_INFINITY };
  for (let n = 0; n < CLOCK_QUESTIONS; n += 1) {
    const sentMs = clock.wallMs();
    const sql = 'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms';
    const { rows } = await client.query<{ now_ms: number }>(sql);
    const receivedMs = clock.wallMs();
    const errorMs = (receivedMs - sentMs) / 2;
    if (errorMs < best.errorMs) best = { aheadMs: sentMs + errorMs - (rows[0]?.now_ms ?? 0), errorMs };
  }
  const { aheadMs, errorMs } = best;
  if (Math.abs(aheadMs) <= CLOCK_SKEW_MS_MAX + errorMs) {
    return well(check, `within ${Math.ceil((Math.abs(aheadMs) + errorMs) / 1000)} s of the clock of this machine`);
  }
  return { check, result: 'warning', found: skewOf('this machine', aheadMs), fix: 'let NTP set both clocks' };
}
