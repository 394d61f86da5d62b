import type { Clock } from '../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { DatabaseClock } from '../store/engines/database-clock.ts';
import { differingKeys } from './differences.ts';
import type { GatewayRow, GatewayRows, View } from './gateway-rows.ts';
import { GONE_MS, RUN_GONE } from './tables.ts';

/** A run says in this interval that it lives. */
export const BEAT_MS = 500;
/** A run that cannot say so for this time sends its boxes away, so that they find another gateway. */
const UNSEEN_MS = 5_000;

interface BeatsDeps {
  clock: Clock;
  log: Logger;
  time: DatabaseClock;
  own: GatewayRow;
  rows: GatewayRows;
  /** Returns the number of box sessions that this run holds, and whether it serves its lane. */
  state(): { sessions: number; served: boolean };
  /** Called after each beat with the gateways that live. */
  seen(view: View): Promise<void>;
  /** Called when the database has not answered for `UNSEEN_MS`. The others have buried this run, or soon will. */
  unseen(): void;
  /** Called once this run is gone. */
  superseded(): void;
}

/** Says again and again that this run lives, reads which others do, and buries those that are gone. */
export class Beats {
  readonly #deps: BeatsDeps;
  readonly #over = new AbortController();
  /** Ends the wait for the next beat. */
  #wait = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #told: readonly string[] = [];
  readonly #burying = new Set<string>();
  #seenAtMs = Number.NEGATIVE_INFINITY;
  /** The newest view. Undefined while the database does not answer. */
  view: View | undefined;

  constructor(deps: BeatsDeps) {
    this.#deps = deps;
  }

  /** Makes the first beat, and continues. Rejects when the database does not answer the first one. */
  async begin(): Promise<void> {
    await this.#beat();
    this.#running = this.#run();
  }

  async end(): Promise<void> {
    this.#over.abort();
    this.hurry();
    await this.#running;
  }

  /** Makes the next beat follow at once. */
  hurry(): void {
    this.#wait.abort();
  }

  /** Returns whether this run was seen so lately that nobody buries it. One that was frozen knows this before it asks. */
  get isSeen(): boolean {
    return this.#deps.clock.monotonicMs() - this.#seenAtMs <= GONE_MS;
  }

  async #run(): Promise<void> {
    const { clock, log, unseen, rows } = this.#deps;
    let isUnseen = false;
    while (!this.#over.signal.aborted) {
      await clock.sleep(BEAT_MS, this.#wait.signal);
      if (this.#over.signal.aborted) return;
      this.#wait = new AbortController();
      // After the database was lost, or this process has slept, all others look gone until they were seen again.
      if (!this.isSeen) rows.forgetSilence();
      try {
        await this.#beat();
        isUnseen = false;
      } catch (error) {
        if (systemCodeOf(error) === RUN_GONE) return this.#deps.superseded();
        if (this.view !== undefined) log.warn('cluster-database-lost', { reason: reasonOf(error) });
        this.view = undefined;
        rows.forgetSilence();
        const unseenMs = clock.monotonicMs() - this.#seenAtMs;
        if (unseenMs > UNSEEN_MS && !isUnseen) unseen();
        isUnseen = unseenMs > UNSEEN_MS;
      }
    }
  }

  async #beat(): Promise<void> {
    const { own, rows, time, state, seen, superseded, clock } = this.#deps;
    const askedMs = clock.monotonicMs();
    if (!(await rows.beSeen(own.run, state(), time))) return superseded();
    this.#seenAtMs = askedMs;
    const view = await rows.view(own.file);
    this.view = view;
    this.#tellDifferences(view);
    await seen(view);
    for (const { run } of view.gone) void this.#bury(run);
  }

  /** Buries a run beside the beats: the server may need a while to end its sessions. */
  async #bury(run: string): Promise<void> {
    if (this.#burying.has(run)) return;
    const { rows, log } = this.#deps;
    this.#burying.add(run);
    try {
      if (await rows.bury(run)) {
        log.info('gateway-buried', { run });
        // Its doors are free now.
        this.hurry();
      }
    } catch (error) {
      log.warn('gateway-not-buried', { run, reason: reasonOf(error) });
    }
    this.#burying.delete(run);
  }

  /**
   * Logs each difference between gateways once, and never a value. An admin has to correct it. The file of the gateway
   * that started last is in force.
   */
  #tellDifferences(view: View): void {
    const { own, log } = this.#deps;
    const told = view.gateways.flatMap(({ name, file }) =>
      file === null ? [] : `the file of gateway ${name} differs: ${differingKeys(own.file, file).join(', ')}`,
    );
    for (const reason of told) if (!this.#told.includes(reason)) log.warn('gateways-mismatched', { reason });
    this.#told = told;
  }
}
