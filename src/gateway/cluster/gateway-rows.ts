import type { Clock } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import { type DatabaseClock, NOW_MS_SQL } from '../store/engines/database-clock.ts';
import { refuseEarlierCluster } from '../store/engines/earlier-cluster.ts';
import { nameOf } from '../store/engines/postgres-session.ts';
import type { DatabaseSession } from './database-session.ts';
import { ENDED_MS, GONE_MS, REMOVE_RUN, SETUP, SETUP_LOCK, sessionsOf } from './tables.ts';

/** The presence of a gateway at a broker can name this many lanes. Lane 0 is nobody's. */
const LANE_MAX = 1_023;
/** A gateway waits this long for an earlier run of its name to be gone. */
const NAME_LOOK_MS = 250;
const NAME_LOOKS_MAX = 24;
/** The server has this long to end the sessions of a run that is buried. Otherwise the next beat tries again. */
const BURY_LOOK_MS = 50;
const BURY_LOOKS_MAX = 40;

/** Holds for the row of a run whose process has ended, as the server ended its sessions and it began no other. */
const HAS_ENDED = `(seen_at < clock_timestamp() - interval '${ENDED_MS} ms' and not exists (${sessionsOf('run')}))`;

/** A gateway as it describes itself to the others. */
export interface GatewayRow {
  run: string;
  name: string;
  /** Digests of the settings that all gateways should share. */
  file: string;
  /** The settings that must be equal at all gateways. A gateway with another value does not join. */
  alike: Readonly<Record<string, string>>;
}

/** A gateway as the others see it. */
export interface LivingGateway extends Omit<GatewayRow, 'file'> {
  /** Null if it is as that of whoever asks: what is equal need not be sent at each beat. */
  file: string | null;
  lane: number;
  /** True if it ends soon: no box has its home there any more. */
  leaving: boolean;
  /** True if it is at the broker, so that boxes can have their homes in its lane. */
  served: boolean;
  /** How far its clock is ahead of the database's. Null before it knows. */
  aheadMs: number | null;
  /** The number of box sessions that it holds. */
  sessions: number;
}

/** The gateways of a database at one moment. */
export interface View {
  gateways: readonly LivingGateway[];
  /** The gateways that were not seen for too long. */
  gone: readonly LivingGateway[];
  /** The lanes of all names that have ever joined, in order. */
  lanes: readonly number[];
}

/** The settings that the gateways of a database share for good. */
export interface ClusterSettings {
  /** Wraps the secrets of the registry. */
  secret: string;
  /** Differs for each restored backup. '' for a database that was never restored. */
  generation: string;
}

interface ReadRow extends LivingGateway {
  gone: boolean;
  silentMs: number;
  hasEnded: boolean;
  seenAt: string;
}

/** Reads and writes the rows that say which gateways live. */
export class GatewayRows {
  readonly #database: DatabaseSession;
  readonly #databaseUrl: string;
  readonly #clock: Clock;
  /** When each run was last seen: by the database, and at which moment of the monotonic clock here that has changed. */
  #lastSeen = new Map<string, { seenAt: string; changedMs: number; hasChanged: boolean }>();

  constructor(database: DatabaseSession, databaseUrl: string, clock: Clock) {
    this.#database = database;
    this.#databaseUrl = databaseUrl;
    this.#clock = clock;
  }

  /** Makes the tables where they are missing. Throws ConfigError for a database of an earlier version's cluster. */
  async setUp(secret: string): Promise<ClusterSettings> {
    await refuseEarlierCluster((text) => this.#database.query(text), nameOf(this.#databaseUrl));
    // Without parameters, all statements of one query run in one transaction.
    await this.#database.query(`select pg_advisory_xact_lock(${SETUP_LOCK}); ${SETUP}`);
    await this.#database.query('insert into cluster.settings (one, secret) values (1, $1) on conflict do nothing', [
      secret,
    ]);
    const kept = await this.#database.query<ClusterSettings>('select secret, generation from cluster.settings');
    return kept.rows[0] ?? { secret, generation: '' };
  }

  /**
   * Inserts the row of this run. An earlier run of this name is waited for, and buried once it is gone. Throws
   * ConfigError if it lives. Returns the lane of the name.
   */
  async enter({ run, name, file, alike }: GatewayRow): Promise<number> {
    const lane = await this.#laneOf(name);
    for (let look = 0; look < NAME_LOOKS_MAX; look += 1) {
      const entered = await this.#database.query(
        `insert into cluster.gateways (run, name, seen_at, file, alike) values ($1, $2, clock_timestamp(), $3, $4)
           on conflict (name) do nothing`,
        [run, name, file, alike],
      );
      if (entered.rowCount === 1) return lane;
      const earlier = (await this.view(file)).gone.find((it) => it.name === name);
      if (earlier === undefined) await this.#clock.sleep(NAME_LOOK_MS);
      else await this.bury(earlier.run);
    }
    const what = `cluster.name: a gateway of the name ${name} runs at ${nameOf(this.#databaseUrl)}`;
    throw new ConfigError(what, 'give each gateway of a database a name of its own');
  }

  /** Returns the lane of this name. It is the same at each start, so that a broker's rights and boxes fit. */
  async #laneOf(name: string): Promise<number> {
    const made = await this.#database.query<{ lane: number }>(
      `insert into cluster.lanes (lane, name, joined_at)
         select min(free), $1, clock_timestamp() from generate_series(1, ${LANE_MAX}) as free
         where free not in (select lane from cluster.lanes) having min(free) is not null
         on conflict (name) do update set joined_at = excluded.joined_at returning lane`,
      [name],
    );
    const lane = made.rows[0]?.lane;
    if (lane !== undefined) return lane;
    const what = `cluster.name: ${LANE_MAX} names have joined at ${nameOf(this.#databaseUrl)}`;
    throw new ConfigError(what, 'delete the rows of names that are no more from cluster.lanes');
  }

  /** Says that this run lives. Returns false if it is gone. Rejects without an answer. */
  async beSeen(
    run: string,
    { sessions, served }: { sessions: number; served: boolean },
    time: DatabaseClock,
  ): Promise<boolean> {
    const seen = await time.measure(() =>
      this.#database.query<{ now_ms: number }>(
        `update cluster.gateways set seen_at = clock_timestamp(), ahead_ms = $2, sessions = $3, served = $4
           where run = $1 and not gone returning ${NOW_MS_SQL} as now_ms`,
        [run, time.aheadMs, sessions, served],
      ),
    );
    return seen !== undefined;
  }

  /** Counts from now on how long each run is silent: at another server, or after a sleep, all of them look gone. */
  forgetSilence(): void {
    this.#lastSeen.clear();
  }

  /**
   * Returns which gateways live. One is gone after `GONE_MS` of silence by the clock of the database and by the one here,
   * because the first may be set. One that spoke, and has no session any more, is gone after `ENDED_MS`. After a loss of
   * the database nobody has spoken yet.
   */
  async view(ownFile: string): Promise<View> {
    const { rows } = await this.#database.query<ReadRow>(
      `select run, name, lane, gone, leaving, served, nullif(file, $1) as file, alike, ahead_ms as "aheadMs", sessions,
         seen_at::text as "seenAt", ${HAS_ENDED} as "hasEnded", (extract(epoch from clock_timestamp() - seen_at) * 1000)::float8 as "silentMs"
         from cluster.gateways join cluster.lanes using (name) order by name`,
      [ownFile],
    );
    const lanes = await this.#database.query<{ lane: number }>('select lane from cluster.lanes order by lane');
    this.#note(rows);
    return {
      gateways: rows.filter((it) => !this.#isGone(it)),
      gone: rows.filter((it) => this.#isGone(it)),
      lanes: lanes.rows.map(({ lane }) => lane),
    };
  }

  #note(rows: readonly ReadRow[]): void {
    const nowMs = this.#clock.monotonicMs();
    const noted = rows.map(({ run, seenAt }) => {
      const last = this.#lastSeen.get(run);
      const hasChanged = last !== undefined;
      return [run, last?.seenAt === seenAt ? last : { seenAt, changedMs: nowMs, hasChanged }] as const;
    });
    this.#lastSeen = new Map(noted);
  }

  #isGone({ run, gone, silentMs, hasEnded }: ReadRow): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { changedMs, hasChanged } = this.#lastSeen.get(run) ?? { changedMs: nowMs, hasChanged: false };
    const silentMaxMs = hasEnded && hasChanged ? ENDED_MS : GONE_MS;
    return gone || (silentMs > silentMaxMs && nowMs - changedMs > silentMaxMs);
  }

  /**
   * Ends a run that was not seen for too long: first its right to begin sessions, then its sessions, then its leases.
   * Any number of gateways may do this at once. Returns whether it is done.
   */
  async bury(run: string): Promise<boolean> {
    const marked = await this.#database.query(
      `update cluster.gateways set gone = true
         where run = $1 and (gone or ${HAS_ENDED} or seen_at < clock_timestamp() - interval '${GONE_MS} ms')`,
      [run],
    );
    if (marked.rowCount === 0) return false;
    for (let look = 0; look < BURY_LOOKS_MAX; look += 1) {
      const open = await this.#database.query(
        `select pg_terminate_backend(pid) from (${sessionsOf('$1::text')}) as open`,
        [run],
      );
      if (open.rows.length === 0) {
        await this.#database.query(REMOVE_RUN, [run]);
        return true;
      }
      await this.#clock.sleep(BURY_LOOK_MS);
    }
    return false;
  }

  /** Tells the others that this run ends soon. */
  async beginToLeave(run: string): Promise<void> {
    await this.#database.query('update cluster.gateways set leaving = true where run = $1', [run]);
  }

  /** Removes this run and all its leases. Its other sessions must have ended. */
  async leave(run: string): Promise<void> {
    await this.#database.query(REMOVE_RUN, [run]);
  }
}
