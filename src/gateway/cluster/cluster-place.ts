import { sql } from 'kysely';
import type { Clock } from '../../lib/clock.ts';
import { PayboxError } from '../../lib/errors.ts';
import type {
  Ask,
  GatewaySeen,
  Hearing,
  HeldSession,
  Hint,
  News,
  Place,
  Questions,
  SessionElsewhere,
} from '../common/place.ts';
import type { GatewayDeps } from '../common/world.ts';
import type { DatabaseClock } from '../store/engines/database-clock.ts';
import type { StoreSharing } from '../store/engines/store-sharing.ts';
import type { HeldInTransaction } from '../store/transact.ts';
import { Beats } from './beats.ts';
import { BrokerLine } from './broker-line.ts';
import type { DatabaseSession } from './database-session.ts';
import { differingKeys } from './differences.ts';
import type { GatewayRow, GatewayRows, LivingGateway, View } from './gateway-rows.ts';
import { type Claimed, Holdings, Works } from './holdings.ts';
import { KnownHolders } from './known-holders.ts';
import { ClusterLanes } from './lanes.ts';
import { SharedBudgets } from './login-budgets.ts';
import { Newsstand } from './newsstand.ts';
import { applicationOf, GONE_MS, NEWS_ARRIVED } from './tables.ts';
import { Voice } from './voice.ts';

interface PlaceParts {
  own: GatewayRow;
  lane: number;
  generation: string;
  vaultKey: Buffer;
  time: DatabaseClock;
  rows: GatewayRows;
  sessions: Record<'beats' | 'leases' | 'voice', DatabaseSession>;
}

/** Holds the place of a gateway that shares its database with others. README.md in this folder has the theory. */
export class ClusterPlace implements Place {
  readonly run: string;
  readonly lanes: ClusterLanes;
  readonly sharing: StoreSharing;
  readonly vaultKey: Buffer;
  readonly time: DatabaseClock;
  readonly budgets: SharedBudgets;
  readonly #parts: PlaceParts;
  readonly #deps: GatewayDeps;
  readonly #superseded = Promise.withResolvers<PayboxError>();
  readonly #beats: Beats;
  readonly #voice: Voice;
  readonly #news: Newsstand;
  readonly #holdings: Holdings;
  readonly #holders: KnownHolders;
  readonly #works: Works;
  #hearing: Hearing | undefined;
  #sessions = 0;
  #isGone = false;
  /** True if there were other gateways when the database last answered. */
  #hadOthers = false;
  #shown = '';

  constructor(parts: PlaceParts, deps: GatewayDeps) {
    const { own, lane, generation, sessions, rows, time } = parts;
    const { clock, log, random } = deps;
    const { run, name } = own;
    this.#parts = parts;
    this.#deps = deps;
    this.run = run;
    this.lanes = new ClusterLanes(lane, clock);
    this.sharing = { name, run, application: applicationOf(run), generation };
    this.vaultKey = parts.vaultKey;
    this.time = time;
    const superseded = () => this.#supersede();
    const line = new BrokerLine(this.lanes, this.vaultKey, random, () => this.gateways());
    this.#voice = new Voice(run, { database: sessions.voice, line }, { clock, random, log });
    this.#news = new Newsstand(run, sessions.beats, log);
    this.#holdings = new Holdings(run, sessions.leases, superseded);
    this.#works = new Works(run, this.#holdings, clock, () => this.gateways());
    this.#holders = new KnownHolders(clock);
    this.budgets = new SharedBudgets({
      clock,
      run,
      gateways: () => this.gateways().length,
      tell: (told) => this.#voice.wrongLogin(told),
    });
    this.#beats = new Beats({
      clock,
      log,
      time,
      own,
      rows,
      state: () => ({ sessions: this.#sessions, served: this.lanes.isServed }),
      seen: (view) => this.#see(view),
      unseen: () => this.#hearing?.unseen(),
      superseded,
    });
  }

  get superseded(): Promise<PayboxError> {
    return this.#superseded.promise;
  }

  problem(): string | undefined {
    if (this.#isGone) return 'other gateways have taken over the work of this one';
    // Without others there is nobody who could bury a slow gateway.
    if (this.#beats.isSeen || !this.#hadOthers) return undefined;
    return `the database does not answer, or this gateway was frozen: it was not seen for ${GONE_MS} ms`;
  }

  /** Makes the first beat, and begins to listen. */
  async enter(): Promise<void> {
    await this.#beats.begin();
    await this.#parts.sessions.voice.query('select 1');
  }

  dated(machine: Clock): Clock {
    return {
      wallMs: () => this.time.dating(machine).wallMs(),
      monotonicMs: () => machine.monotonicMs(),
      sleep: (ms, signal) => machine.sleep(ms, signal),
    };
  }

  steady(dated: Clock): () => number {
    return () => dated.wallMs();
  }

  begin(hearing: Hearing): void {
    this.#hearing = hearing;
    const { log } = this.#deps;
    this.#news.begin((news) => {
      hearing
        .news(news)
        .catch((error: unknown) => log.warn('news-failed', { about: news.about, reason: String(error) }));
    });
    this.#voice.begin({
      hint: (hint) => {
        if (hint.about === 'session' || hint.about === 'left') this.#holders.forget(hint.box);
        hearing.hint(hint);
      },
      answer: (kind, question) => hearing.answer(kind, question as Questions[Ask]['question']),
      wrongLogin: (told) => this.budgets.heard(told),
    });
  }

  /** Takes a notification of the database. */
  heard(payload: string): void {
    if (payload === NEWS_ARRIVED) void this.#news.read().catch(() => undefined);
    else void this.#voice.heard(payload);
  }

  /** Opens the session of notifications again at once: what others say meanwhile is lost. */
  deaf(): void {
    void this.#voice.keepHearing();
  }

  /** Reads the news, and has the rows read, because notifications may have been lost. */
  mayHaveMissed(): void {
    void this.#news.read().catch(() => undefined);
    this.#hearing?.mayHaveMissed();
  }

  async claim(session: HeldSession): Promise<Claimed> {
    const claimed = await this.#holdings.claim(session);
    const { terminalCode: box, sessionId } = session;
    if (claimed?.before !== undefined && claimed.before !== this.run) this.hint({ about: 'session', box, sessionId });
    return claimed;
  }

  heldBy(terminalCode: string, sessionId: string): HeldInTransaction {
    return async (trx) => {
      const { rows } = await sql`select 1 from cluster.box_sessions
        where terminal_code = ${terminalCode} and run = ${this.run} and session_id = ${sessionId} for share`.execute(
        trx,
      );
      return rows.length > 0;
    };
  }

  release(terminalCode: string, sessionId: string, comesBack = false): void {
    // A row that stays is given up at the next look, or corrected by the next claim.
    void this.#holdings.release(terminalCode, sessionId, comesBack).catch(() => undefined);
    this.hint({ about: 'left', box: terminalCode });
  }

  isComing(terminalCode: string): Promise<boolean> {
    return this.#holdings.isComing(terminalCode);
  }

  async holder(terminalCode: string): Promise<string | undefined> {
    const known = this.#holders.of(terminalCode);
    if (known !== undefined && this.gateways().some(({ run }) => run === known)) return known;
    return (await this.elsewhere(terminalCode))?.run;
  }

  async elsewhere(terminalCode: string): Promise<SessionElsewhere | undefined> {
    const found = await this.#holdings.lookUp(terminalCode);
    this.#holders.read(terminalCode, found?.run);
    return found;
  }

  allElsewhere(terminalCodes: readonly string[]): Promise<ReadonlyMap<string, SessionElsewhere>> {
    return this.#holdings.elsewhere(terminalCodes);
  }

  onlineElsewhere(limit: number): Promise<string[]> {
    return this.#holdings.onlineElsewhere(limit);
  }

  async lost(sessions: ReadonlyMap<string, { sessionId: string }>): Promise<string[]> {
    this.#sessions = sessions.size;
    await this.#holdings.releaseRest();
    const own = await this.#holdings.own();
    return [...sessions].flatMap(([code, { sessionId }]) => (own.get(code) === sessionId ? [] : [code]));
  }

  streamOpened(terminalCode: string, sessionId: string): Promise<void> {
    return this.#holdings.openStream(terminalCode, sessionId);
  }

  streamEnded(terminalCode: string, sessionId: string): void {
    void this.#holdings.endStream(terminalCode, sessionId).catch(() => undefined);
  }

  streamElsewhere(terminalCode: string, sessionId: string): Promise<string | undefined> {
    return this.#holdings.streamElsewhere(terminalCode, sessionId);
  }

  lease(work: string): Promise<boolean> {
    return this.#works.lease(work);
  }

  tell(news: News): Promise<boolean> {
    return this.#news.tell(news);
  }

  hint(hint: Hint): void {
    if (this.others().length > 0) this.#voice.hint(hint);
  }

  ask<K extends Ask>(...asked: Parameters<typeof Voice.prototype.ask<K>>) {
    return this.#voice.ask<K>(...asked);
  }

  others(): readonly string[] {
    return this.gateways().flatMap(({ run }) => (run === this.run ? [] : [run]));
  }

  seen(): readonly GatewaySeen[] {
    return this.gateways().map(({ run, name, lane, leaving, aheadMs, sessions, file }) => {
      const differs = file === null ? [] : differingKeys(this.#parts.own.file, file);
      return { run, name, lane, leaving, aheadMs, sessions, differs };
    });
  }

  /** Returns the gateways that live, as the database has last said. */
  gateways(): readonly LivingGateway[] {
    return this.#beats.view?.gateways ?? [];
  }

  /** Sends boxes to other homes from now on. */
  async beginToLeave(): Promise<void> {
    await this.#parts.rows.beginToLeave(this.run).catch(() => undefined);
    this.#beats.hurry();
  }

  async close(): Promise<void> {
    this.#voice.close();
    await this.#beats.end();
    this.#news.close();
  }

  async #see(view: View): Promise<void> {
    this.#hadOthers = this.others().length > 0;
    const shown = JSON.stringify(this.gateways().map(({ run, leaving }) => [run, leaving]));
    // The console draws the gateways beside the boxes.
    if (shown !== this.#shown) this.#hearing?.hint({ about: 'lists', topics: ['boxes'] });
    this.#shown = shown;
    void this.#voice.keepHearing();
    await this.#news.read();
    await this.#news.flush();
    this.lanes.see(view, await this.#works.doors(this.lanes.doors(), this.lanes.toOpen(view)));
  }

  #supersede(): void {
    this.#isGone = true;
    const what = 'other gateways have taken over the work of this one, because it did not answer';
    const fix = 'it has written nothing since; it begins again by itself';
    this.#superseded.resolve(new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, { severity: 'fatal', fix }));
  }
}
