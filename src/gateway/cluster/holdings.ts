import pg from 'pg';
import type { Clock } from '../../lib/clock.ts';
import type { HeldSession, SessionElsewhere } from '../common/place.ts';
import type { DatabaseSession } from './database-session.ts';
import type { LivingGateway } from './gateway-rows.ts';
import { Gathered } from './gather.ts';
import { IS_COMING, RECORD_LEFT } from './tables.ts';

/** The SQLSTATE of a row that refers to a run that is gone. */
const FOREIGN_KEY = '23503';

/** A gateway asks again after this time who does some work of a run that lives, which keeps it until it ends. */
const ASK_AGAIN_MS = 10_000;
/** The same for a door, which a gateway may give up. */
const ASK_AGAIN_FOR_DOOR_MS = 900;

/** The columns of a session, under the names of `HeldSession`. */
const SESSION = `terminal_code as "terminalCode", session_id as "sessionId", serial_number as "serialNumber",
  agent_version as "agentVersion", display, transport, since_ms as "sinceMs"`;

/** The run that had a box before its claim, if any. Undefined if a later session of the box has it. */
export type Claimed = { before: string | undefined } | undefined;

/** Reads and writes the leases of boxes, streams and work. Everything that a run has ends with its row. */
export class Holdings {
  readonly #run: string;
  readonly #database: DatabaseSession;
  readonly #superseded: () => void;
  readonly #claims: Gathered<HeldSession, Claimed>;
  readonly #lookups: Gathered<string, SessionElsewhere | undefined>;
  readonly #coming: Gathered<string, boolean>;
  readonly #works: Gathered<string, string | undefined>;
  /** Sessions whose end is not stored yet, by box. Without that, a box that is away would look connected. */
  readonly #unreleased = new Map<string, { sessionId: string; comesBack: boolean }>();

  /** Calls `superseded` when a lease is refused because this run is gone. */
  constructor(run: string, database: DatabaseSession, superseded: () => void) {
    this.#run = run;
    this.#database = database;
    this.#superseded = superseded;
    const same = (key: string) => key;
    this.#claims = new Gathered(
      ({ terminalCode }) => terminalCode,
      (some) => this.#claim(some),
    );
    this.#lookups = new Gathered(same, async (codes) => {
      const found = await this.elsewhere(codes);
      return codes.map((it) => found.get(it));
    });
    this.#coming = new Gathered(same, (codes) => this.#areComing(codes));
    this.#works = new Gathered(same, (some) => this.#take(some));
  }

  /** Takes a box for this session, from whoever has it. Settles once that is durable. */
  async claim(session: HeldSession): Promise<Claimed> {
    const { terminalCode, sessionId } = session;
    if (this.#unreleased.get(terminalCode)?.sessionId === sessionId) this.#unreleased.delete(terminalCode);
    const claimed = await this.#claims.ask(session);
    this.#unreleased.delete(terminalCode);
    return claimed;
  }

  /** Gives up a box if this session has it. `releaseRest` tries again what fails here. */
  async release(terminalCode: string, sessionId: string, comesBack: boolean): Promise<void> {
    const unreleased = { sessionId, comesBack };
    this.#unreleased.set(terminalCode, unreleased);
    const own = 'delete from cluster.box_sessions where terminal_code = $1 and run = $2 and session_id = $3';
    await this.#database.query(comesBack ? `with ended as (${own} returning terminal_code) ${RECORD_LEFT}` : own, [
      ...[terminalCode, this.#run, sessionId],
    ]);
    if (this.#unreleased.get(terminalCode) === unreleased) this.#unreleased.delete(terminalCode);
  }

  /** Gives up the boxes whose release was not stored. */
  async releaseRest(): Promise<void> {
    for (const [code, { sessionId, comesBack }] of this.#unreleased) await this.release(code, sessionId, comesBack);
  }

  /** Returns whether a box was left by its gateway in the last seconds, or is saying hello here. */
  isComing(terminalCode: string): Promise<boolean> {
    return this.#coming.ask(terminalCode);
  }

  /** Returns the session of a box that another run holds. */
  lookUp(terminalCode: string): Promise<SessionElsewhere | undefined> {
    return this.#lookups.ask(terminalCode);
  }

  /** Returns the sessions of these boxes that other runs hold. */
  async elsewhere(terminalCodes: readonly string[]): Promise<Map<string, SessionElsewhere>> {
    const { rows } = await this.#database.query<SessionElsewhere>(
      `select run, ${SESSION} from cluster.box_sessions where terminal_code = any($1) and run <> $2`,
      [terminalCodes, this.#run],
    );
    return new Map(rows.map((row) => [row.terminalCode, row]));
  }

  async onlineElsewhere(limit: number): Promise<string[]> {
    const { rows } = await this.#database.query<{ terminal_code: string }>(
      'select terminal_code from cluster.box_sessions where run <> $1 order by terminal_code limit $2',
      [this.#run, limit],
    );
    return rows.map((it) => it.terminal_code);
  }

  /** Returns the sessions that this run has according to the rows, by box. */
  async own(): Promise<Map<string, string>> {
    const { rows } = await this.#database.query<{ terminal_code: string; session_id: string }>(
      'select terminal_code, session_id from cluster.box_sessions where run = $1',
      [this.#run],
    );
    return new Map(rows.map((it) => [it.terminal_code, it.session_id]));
  }

  async openStream(terminalCode: string, sessionId: string): Promise<void> {
    await this.#leased(
      `insert into cluster.box_streams (terminal_code, session_id, run) values ($1, $2, $3)
         on conflict (terminal_code, session_id) do update set run = excluded.run`,
      [terminalCode, sessionId, this.#run],
    );
  }

  async endStream(terminalCode: string, sessionId: string): Promise<void> {
    await this.#database.query(
      'delete from cluster.box_streams where terminal_code = $1 and session_id = $2 and run = $3',
      [terminalCode, sessionId, this.#run],
    );
  }

  async streamElsewhere(terminalCode: string, sessionId: string): Promise<string | undefined> {
    const { rows } = await this.#database.query<{ run: string }>(
      'select run from cluster.box_streams where terminal_code = $1 and session_id = $2 and run <> $3',
      [terminalCode, sessionId, this.#run],
    );
    return rows[0]?.run;
  }

  /** Takes this work if nobody does it. Returns the run that does it. */
  takeWork(work: string): Promise<string | undefined> {
    return this.#works.ask(work);
  }

  async giveUpWork(work: string): Promise<void> {
    await this.#database.query('delete from cluster.leases where work = $1 and run = $2', [work, this.#run]);
  }

  async #claim(sessions: readonly HeldSession[]): Promise<Claimed[]> {
    const column = (of: (it: HeldSession) => string | number) => sessions.map(of);
    const { rows } = await this.#leased<{ before: string | null; taken: boolean }>(
      `with before as (select terminal_code, run from cluster.box_sessions where terminal_code = any($2) for update),
       claimed as (insert into cluster.box_sessions as held
         (run, terminal_code, session_id, serial_number, agent_version, display, transport, since_ms, kid, hello_ms)
         select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::float8[],
           $9::text[], $10::float8[])
         on conflict (terminal_code) do update set run = excluded.run, session_id = excluded.session_id,
           serial_number = excluded.serial_number, agent_version = excluded.agent_version, display = excluded.display,
           transport = excluded.transport, since_ms = excluded.since_ms, kid = excluded.kid, hello_ms = excluded.hello_ms
         where held.kid <> excluded.kid or held.hello_ms <= excluded.hello_ms
         returning terminal_code)
       select before.run as before, claimed.terminal_code is not null as taken
         from unnest($2::text[]) with ordinality as asked (terminal_code, place)
         left join before using (terminal_code) left join claimed using (terminal_code) order by place`,
      [
        this.#run,
        column((it) => it.terminalCode),
        column((it) => it.sessionId),
        column((it) => it.serialNumber),
        column((it) => it.agentVersion),
        column((it) => it.display),
        column((it) => it.transport),
        column((it) => it.sinceMs),
        column((it) => it.order?.kid ?? ''),
        column((it) => it.order?.helloMs ?? 0),
      ],
    );
    return rows.map(({ before, taken }) => (taken ? { before: before ?? undefined } : undefined));
  }

  async #areComing(terminalCodes: readonly string[]): Promise<boolean[]> {
    const { rows } = await this.#database.query<{ terminal_code: string }>(
      `select terminal_code from cluster.left_boxes where terminal_code = any($1) and ${IS_COMING}
       union select terminal_code from cluster.box_sessions where terminal_code = any($1) and run = $2`,
      [terminalCodes, this.#run],
    );
    const coming = new Set(rows.map((it) => it.terminal_code));
    return terminalCodes.map((it) => coming.has(it));
  }

  async #take(works: readonly string[]): Promise<(string | undefined)[]> {
    const { rows } = await this.#leased<{ work: string; run: string }>(
      `with taken as (insert into cluster.leases (work, run) select *, $2 from unnest($1::text[])
         on conflict do nothing returning work, run)
       select work, run from taken union select work, run from cluster.leases where work = any($1)`,
      [works, this.#run],
    );
    const runs = new Map(rows.map((it) => [it.work, it.run]));
    return works.map((it) => runs.get(it));
  }

  async #leased<Row extends pg.QueryResultRow>(sql: string, values: unknown[]): Promise<pg.QueryResult<Row>> {
    try {
      return await this.#database.query<Row>(sql, values);
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === FOREIGN_KEY) this.#superseded();
      throw error;
    }
  }
}

/** Takes work that one gateway does for all, and remembers who does it. */
export class Works {
  readonly #run: string;
  readonly #holdings: Pick<Holdings, 'takeWork' | 'giveUpWork'>;
  readonly #clock: Clock;
  readonly #gateways: () => readonly LivingGateway[];
  /** The run that does each work, as far as this one knows. */
  readonly #known = new Map<string, { run: string; askedMs: number }>();

  constructor(run: string, holdings: Holdings, clock: Clock, gateways: () => readonly LivingGateway[]) {
    this.#run = run;
    this.#holdings = holdings;
    this.#clock = clock;
    this.#gateways = gateways;
  }

  /** Returns whether this run does some work, which it takes if nobody does it. Never rejects. */
  async lease(work: string, askAgainMs = ASK_AGAIN_MS): Promise<boolean> {
    const known = this.#known.get(work);
    if (known?.run === this.#run) return true;
    const isFresh = known !== undefined && this.#clock.monotonicMs() - known.askedMs < askAgainMs;
    if (isFresh && this.#gateways().some(({ run }) => run === known.run)) return false;
    const holder = await this.#holdings.takeWork(work).catch(() => undefined);
    if (holder === undefined) this.#known.delete(work);
    else this.#known.set(work, { run: holder, askedMs: this.#clock.monotonicMs() });
    return holder === this.#run;
  }

  /**
   * Takes the doors of these lanes, and gives up those of other lanes, of which this run has `held` some. Returns the
   * lanes whose doors it has.
   */
  async doors(held: readonly number[], lanes: readonly number[]): Promise<number[]> {
    for (const lane of held.filter((it) => !lanes.includes(it))) {
      this.#known.delete(doorOf(lane));
      await this.#holdings.giveUpWork(doorOf(lane));
    }
    const doors: number[] = [];
    for (const lane of lanes) if (await this.lease(doorOf(lane), ASK_AGAIN_FOR_DOOR_MS)) doors.push(lane);
    return doors;
  }
}

function doorOf(lane: number): string {
  return `door/${lane}`;
}
