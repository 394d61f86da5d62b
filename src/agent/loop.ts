import type { Payment } from '../box/entry.ts';
import { reduce } from '../box/reduce.ts';
import type { At, BoxEvent, BoxState, Send, Step } from '../box/state.ts';
import type { Clock } from '../lib/clock.ts';
import { reasonOf } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { BoundedQueue } from '../lib/queue.ts';
import type { Journal } from './contract.ts';

export interface LoopDeps {
  clock: Clock;
  log: Logger;
  journal: Journal;
  /** Shows a state; must return at once. */
  show(state: BoxState): void;
  /** Sends to the gateway; must return at once. */
  send(sends: readonly Send[]): void;
  /** Says payments aloud; must return at once. */
  announce(payments: readonly Payment[]): void;
}

/** Events that wait while the disk is slow. One more is refused: the gateway repeats what matters. */
const INBOX_MAX = 2_000;

/** An entry that takes longer means a disk that hangs. */
const STALLED_MS = 5_000;

/** The agent's one loop: event → reduce → disk → screen → gateway → voice, in this order. */
export class Loop {
  readonly #deps: LoopDeps;
  readonly #inbox = new BoundedQueue<BoxEvent>(INBOX_MAX, 'reject');
  #state: BoxState;
  #wakeCancel = new AbortController();
  #wakeAtMs: number | undefined;
  #busySinceMs: number | undefined;

  constructor(start: BoxState, deps: LoopDeps) {
    this.#state = start;
    this.#deps = deps;
  }

  get state(): BoxState {
    return this.#state;
  }

  /** Why the loop does not turn, if one event has been in work for too long. */
  stalled(): string | undefined {
    if (this.#busySinceMs === undefined) return undefined;
    const busyMs = this.#deps.clock.monotonicMs() - this.#busySinceMs;
    return busyMs < STALLED_MS ? undefined : `the disk has not taken an entry for ${Math.round(busyMs)} ms`;
  }

  dispatch(event: BoxEvent): void {
    if (!this.#inbox.offer(event)) this.#deps.log.warn('inbox-full', { event: event.type, limit: INBOX_MAX });
  }

  /** Runs until `stop`; what was taken before that is finished. */
  async run(): Promise<void> {
    this.#deps.show(this.#state);
    this.dispatch({ type: 'tick' });
    for await (const event of this.#inbox) await this.#handle(event);
    this.#wakeCancel.abort();
  }

  stop(): void {
    this.#inbox.close();
  }

  async #handle(event: BoxEvent): Promise<void> {
    const { clock, show, send, announce } = this.#deps;
    this.#busySinceMs = clock.monotonicMs();
    const step = await this.#record(event, { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
    this.#state = step.state;
    show(step.state);
    send(step.sends);
    announce(step.announcements);
    this.#wakeAt(step.wakeAtMs);
    this.#busySinceMs = undefined;
  }

  /** On disk before it is shown or reported (house rule 2). */
  async #record(event: BoxEvent, at: At): Promise<Step> {
    const step = reduce(this.#state, event, at);
    if (step.writes.length === 0) return step;
    try {
      await this.#deps.journal.append(step.writes);
      if (step.state.faults.storage !== undefined) this.dispatch({ type: 'recorded' });
      return step;
    } catch (error) {
      const reason = reasonOf(error);
      this.#deps.log.error('journal-failed', { event: event.type, reason });
      return reduce(this.#state, { type: 'unrecorded', cause: event, reason }, at);
    }
  }

  #wakeAt(wakeAtMs: number | undefined): void {
    if (wakeAtMs === this.#wakeAtMs) return;
    this.#wakeAtMs = wakeAtMs;
    this.#wakeCancel.abort();
    if (wakeAtMs === undefined) return;
    const cancel = new AbortController();
    this.#wakeCancel = cancel;
    void this.#deps.clock.sleep(wakeAtMs - this.#deps.clock.monotonicMs(), cancel.signal).then(() => {
      if (cancel.signal.aborted) return;
      this.#wakeAtMs = undefined;
      this.dispatch({ type: 'tick' });
    });
  }
}
