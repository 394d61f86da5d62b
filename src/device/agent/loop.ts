import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { BoundedQueue } from '../../lib/queue.ts';
import type { Entry, Payment } from '../box/entry.ts';
import { reduce } from '../box/reduce.ts';
import type { At, BoxEvent, BoxState, Send, Step } from '../box/state.ts';
import type { Journal } from './contract.ts';

/*
 * The only place where the box decides.
 *
 * Theory. Everything that happens is an event in one inbox. The loop processes one event at a time: `reduce` says what
 * follows, the disk records it, then the screen, the gateway and the voice get it. Nobody else changes the state, so no
 * two parts of the box can disagree. Failures come back as events of their own.
 *
 * Invariants. Facts are on the disk before anybody sees, hears or receives them. A failed write is decided again as
 * `unrecorded`, and its entries wait in memory, in order, until the disk works. Hearers return at once, so a slow
 * display or a dead line never holds the loop. Every queue has a limit, and a full one refuses what others repeat.
 *
 * Tried and failed. A report that the loop stands still needs the loop, so the service manager's watchdog asks by
 * `ping`. A stuck key filled the inbox, so keys are refused first. Waits of a fraction of a millisecond ended too early
 * again and again, so the loop waits for whole milliseconds.
 */

/** The time, log and disk of the loop. */
export interface LoopBase {
  clock: Clock;
  log: Logger;
  journal: Journal;
}

/** Does what the loop has decided. Every method must return at once. */
export interface LoopHearer {
  /** Shows a state. */
  show?(state: BoxState): void;
  /** Sends messages to the gateway. */
  send?(sends: readonly Send[]): void;
  /** Announces payments, and repeats those that a person has asked for. */
  announce?(payments: readonly Payment[], repeats: readonly Payment[]): void;
}

/**
 * This many events wait while the disk is slow. The loop refuses further ones, because the gateway repeats what
 * matters.
 */
const INBOX_MAX = 2_000;
/** Keys are refused when this many events wait, so that a stuck key cannot crowd out results of the display. */
const INBOX_WITH_KEYS_MAX = 100;

/** How often a failed disk is tested. */
const PROBE_MS = 5_000;

/** Retry interval of `ping` while the inbox is full. */
const TURN_RETRY_MS = 500;

/**
 * This many entries may wait for the disk. Beyond it the loop drops the oldest entry that is not a payment, and a
 * payment only if nothing else is left. A report sent twice does less harm than a payment announced twice.
 */
export const BACKLOG_MAX = 2_000;

type Inbound = BoxEvent | { type: 'probe' } | { type: 'turn'; taken: () => void };

/** Runs the agent's one loop: event → reduce → disk → screen → gateway → voice, in this order. */
export class Loop {
  readonly #base: LoopBase;
  readonly #hearers: LoopHearer[];
  readonly #inbox = new BoundedQueue<Inbound>(INBOX_MAX, 'reject');
  readonly #ended = new AbortController();
  #state: BoxState;
  #wakeCancel = new AbortController();
  #wakeAtMs: number | undefined;
  /** Entries that could not be written. They are the first to be written once the disk works again. */
  #backlog: Entry[] = [];
  #probeIsDue = false;

  constructor(start: BoxState, base: LoopBase, ...hearers: LoopHearer[]) {
    this.#state = start;
    this.#base = base;
    this.#hearers = hearers;
  }

  /** Adds a part that carries out the loop's decisions. Call it before the loop runs. */
  hear(hearer: LoopHearer): void {
    this.#hearers.push(hearer);
  }

  get state(): BoxState {
    return this.#state;
  }

  /** Returns how many entries wait in memory until the disk works again. */
  get unwritten(): number {
    return this.#backlog.length;
  }

  dispatch(event: BoxEvent): void {
    const { size } = this.#inbox;
    const isOneKeyTooMany = event.type === 'key' && size >= INBOX_WITH_KEYS_MAX;
    if (!isOneKeyTooMany && this.#inbox.offer(event)) return;
    this.#base.log.warn('inbox-overflowed', { event: event.type, waiting: size });
  }

  /** Settles once no event waits. Senders that can wait for it leave room in the inbox for those that cannot. */
  drained(): Promise<void> {
    return this.#inbox.drained();
  }

  /**
   * Settles once the loop has processed an event for this call, after all events before it; never while the loop is
   * stuck.
   */
  async ping(): Promise<void> {
    const turn = Promise.withResolvers<void>();
    while (!this.#inbox.offer({ type: 'turn', taken: turn.resolve })) {
      await this.#base.clock.sleep(TURN_RETRY_MS, this.#ended.signal);
      if (this.#ended.signal.aborted) return;
    }
    await turn.promise;
  }

  /** Runs until `stop`, and finishes the events that came before it. */
  async run(): Promise<void> {
    const { journal } = this.#base;
    for (const hearer of this.#hearers) hearer.show?.(this.#state);
    const { reason } = journal.status();
    if (reason !== null) this.dispatch({ type: 'unrecorded', cause: { type: 'tick' }, reason });
    this.dispatch({ type: 'tick' });
    for await (const event of this.#inbox) await this.#handle(event);
    this.#wakeCancel.abort();
    this.#ended.abort();
    if (this.#backlog.length > 0) await this.#probe();
    if (this.#backlog.length > 0) this.#base.log.error('journal-entries-lost', { count: this.#backlog.length });
  }

  stop(): void {
    this.#inbox.close();
  }

  async #handle(event: Inbound): Promise<void> {
    if (event.type === 'turn') {
      event.taken();
      return;
    }
    // A disk that works again comes first, because the event may repeat one of its entries.
    const entries = this.#base.journal.reopen();
    if (entries.length > 0) {
      const { complete } = this.#base.journal.status();
      await this.#turn({ type: 'journal-read', entries, intact: complete });
    }
    if (event.type === 'probe') await this.#probe();
    else await this.#turn(event);
    if (this.#state.faults.storage !== undefined) this.#probeLater();
  }

  async #turn(event: BoxEvent): Promise<void> {
    const { clock, log } = this.#base;
    const step = await this.#record(event, { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
    this.#state = step.state;
    for (const hearer of this.#hearers) hearer.show?.(step.state);
    for (const hearer of this.#hearers) hearer.send?.(step.sends);
    for (const hearer of this.#hearers) hearer.announce?.(step.announcements, step.repeats);
    logUnspoken(log, step);
    this.#wakeAt(step.wakeAtMs);
  }

  /** Writes to the disk before the box shows or reports anything (house rule 2). */
  async #record(event: BoxEvent, at: At): Promise<Step> {
    const step = reduce(this.#state, event, at);
    if (step.writes.length === 0) return step;
    try {
      await this.#write(step.writes);
      if (step.state.faults.storage !== undefined) this.dispatch({ type: 'recorded' });
      return step;
    } catch (error) {
      const reason = reasonOf(error);
      this.#base.log.error('journal-failed', { event: event.type, reason });
      const unrecorded = reduce(this.#state, { type: 'unrecorded', cause: event, reason }, at);
      for (const entry of unrecorded.writes) this.#keep(entry);
      return unrecorded;
    }
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    await this.#base.journal.append([...this.#backlog, ...entries]);
    this.#backlog = [];
  }

  #keep(entry: Entry): void {
    this.#backlog.push(entry);
    if (this.#backlog.length <= BACKLOG_MAX) return;
    const other = this.#backlog.findIndex(({ kind }) => kind !== 'payment');
    this.#backlog.splice(Math.max(0, other), 1);
  }

  /** Tests the disk. Emits an event only when the result has changed. */
  async #probe(): Promise<void> {
    const { storage } = this.#state.faults;
    try {
      await this.#write([]);
      if (storage !== undefined) await this.#turn({ type: 'recorded' });
    } catch (error) {
      const reason = reasonOf(error);
      if (reason !== storage) await this.#turn({ type: 'unrecorded', cause: { type: 'tick' }, reason });
    }
  }

  #probeLater(): void {
    if (this.#probeIsDue) return;
    this.#probeIsDue = true;
    void this.#base.clock.sleep(PROBE_MS, this.#ended.signal).then(() => {
      this.#probeIsDue = false;
      if (!this.#ended.signal.aborted && !this.#inbox.offer({ type: 'probe' })) this.#probeLater();
    });
  }

  #wakeAt(wakeAtMs: number | undefined): void {
    if (wakeAtMs === this.#wakeAtMs) return;
    this.#wakeAtMs = wakeAtMs;
    this.#wakeCancel.abort('another time');
    if (wakeAtMs === undefined) return;
    const cancel = new AbortController();
    this.#wakeCancel = cancel;
    // The wait is in whole milliseconds. A shorter one would end too early, again and again.
    const waitMs = Math.ceil(wakeAtMs - this.#base.clock.monotonicMs());
    void this.#base.clock.sleep(waitMs, cancel.signal).then(() => {
      if (cancel.signal.aborted) return;
      this.#wakeAtMs = undefined;
      this.dispatch({ type: 'tick' });
    });
  }
}

/** Logs for an admin why the box did not announce a payment on the screen (PROTOCOL.md, clause AGT-11). */
function logUnspoken(log: Logger, { writes, announcements }: Step): void {
  for (const entry of writes) {
    if (entry.kind !== 'payment' || entry.payment.late || announcements.includes(entry.payment)) continue;
    const { transactionId, amount } = entry.payment;
    const reason = 'paid before the first welcome since the journal began: it may have been announced before';
    log.warn('announcement-not-spoken', { transactionId, amount, reason });
  }
}
