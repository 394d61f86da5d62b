import { CLOCK_SKEW_MS_MAX, type Clock } from '../../../lib/clock.ts';
import type { Logger } from '../../../lib/log.ts';

/** An answer that took longer is ignored, because half of the time is the possible error. */
const ROUND_TRIP_MS_MAX = 1_000;
/** The calendar time of the database, in milliseconds since 1970. */
export const NOW_MS_SQL = '(extract(epoch from clock_timestamp()) * 1000)::float8';
const FIX =
  'set the clock of this machine, or of the database, by NTP; gateways of a cluster date by the database, a gateway alone only its tokens';

/** How far the clock of this machine is ahead, as `/healthz` shows it. */
export interface ClockState {
  /** Negative when the clock is behind. */
  aheadMs: number;
  problem?: string;
}

/**
 * Reads the calendar of a PostgreSQL database. All gateways of a cluster go by it, because the clock of one machine may
 * be wrong, or jump. Between two answers the monotonic clock continues it. Before the first answer, and with SQLite, it
 * is the calendar of the machine.
 */
export class DatabaseClock {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The database's calendar at a moment of the monotonic clock. */
  #known: { wallMs: number; atMs: number } | undefined;
  #isSkewed = false;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Asks the database by `ask`, whose answer must have a row with `NOW_MS_SQL` as `now_ms`. Rejects as `ask` does. Logs
   * when the clocks begin to differ, and when they agree again.
   */
  async measure<Row extends { now_ms: number }>(ask: () => Promise<{ rows: Row[] }>): Promise<Row | undefined> {
    const sentMs = this.#clock.monotonicMs();
    const [row] = (await ask()).rows;
    const receivedMs = this.#clock.monotonicMs();
    const isSlow = this.#known !== undefined && receivedMs - sentMs > ROUND_TRIP_MS_MAX;
    if (row !== undefined && !isSlow) {
      this.#known = { wallMs: row.now_ms, atMs: (sentMs + receivedMs) / 2 };
      this.#tell();
    }
    return row;
  }

  /** Returns how far the clock of this machine is ahead of the database's now. Undefined before the first answer. */
  get aheadMs(): number | undefined {
    if (this.#known === undefined) return undefined;
    const passedMs = this.#clock.monotonicMs() - this.#known.atMs;
    return Math.round(this.#clock.wallMs() - this.#known.wallMs - passedMs);
  }

  /** Returns the database's calendar time, with the offset that a sandbox may have given `clock`. */
  dating(clock: Pick<Clock, 'wallMs'>): Pick<Clock, 'wallMs'> {
    return { wallMs: () => clock.wallMs() - (this.aheadMs ?? 0) };
  }

  /** Undefined before the first answer, and always with SQLite. */
  get state(): ClockState | undefined {
    const { aheadMs } = this;
    if (aheadMs === undefined) return undefined;
    if (Math.abs(aheadMs) <= CLOCK_SKEW_MS_MAX) return { aheadMs };
    const seconds = Math.round(Math.abs(aheadMs) / 1000);
    const problem = `the clock of this machine is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the database`;
    return { aheadMs, problem };
  }

  #tell(): void {
    const { aheadMs, problem } = this.state ?? {};
    if (problem !== undefined && !this.#isSkewed)
      this.#log.warn('clock-skewed', { aheadMs, reason: problem, fix: FIX });
    if (problem === undefined && this.#isSkewed) this.#log.info('clock-recovered', { aheadMs });
    this.#isSkewed = problem !== undefined;
  }
}
