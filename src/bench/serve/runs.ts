import type { z } from 'zod';
import { systemClock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Outcome, Result } from '../engine/reports/result.ts';
import { resultWithoutVerdict, runScenario } from '../engine/run/run.ts';
import type { TargetKind } from '../engine/target.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import type { StreamEvent, Subscribe } from './route.ts';
import { Refusal } from './route.ts';
import { LIMITS, type runView } from './schemas.ts';

export type RunView = z.output<typeof runView>;

export interface RunOptions {
  scenarios: readonly Scenario[];
  kind: TargetKind;
  seed: number;
}

/** Judges scenarios one after another and keeps their results. */
export class Run {
  readonly id: string;
  readonly createdAtMs = systemClock.wallMs();
  readonly results: Result[] = [];
  readonly #order: RunOptions;
  readonly #abort = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  readonly #events: StreamEvent[] = [];
  readonly #listeners = new Set<(event: StreamEvent | undefined) => void>();
  #state: RunView['state'] = 'queued';
  #step: string | null = null;
  #beganMs: number | undefined;
  #tookMs: number | null = null;
  #told = 0;
  /** The reason why the bench itself failed. */
  #broken = '';

  constructor(id: string, order: RunOptions) {
    this.id = id;
    this.#order = order;
  }

  /** Returns a promise that resolves when the run has ended with all its parts. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  get isOver(): boolean {
    return this.#state !== 'queued' && this.#state !== 'running';
  }

  get lastEventId(): number {
    return this.#told;
  }

  /** Returns the total size of its pictures. */
  get pictureBytes(): number {
    const entries = this.results.flatMap((result) => result.entries);
    return entries.reduce((sum, { picture }) => sum + (picture?.length ?? 0), 0);
  }

  /** Judges all scenarios until aborted. Never throws. */
  async execute(): Promise<void> {
    if (this.isOver) return;
    this.#state = 'running';
    this.#beganMs = systemClock.monotonicMs();
    try {
      for (const [index, scenario] of this.#order.scenarios.entries()) await this.#judge(scenario, index + 1);
      this.#end(verdictOf(this.results));
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#broken = `the bench itself failed: ${reasonOf(error)}`;
      this.#end(this.#abort.signal.aborted ? 'aborted' : 'failed');
    }
  }

  /** Ends the run; resolves when all its parts have ended. Does nothing when it is over. */
  async abort(reason: string): Promise<void> {
    if (this.isOver) return;
    this.#abort.abort(new Error(reason));
    if (this.#state === 'queued') this.#end('aborted');
    await this.over;
  }

  /** Returns the results. Scenarios that did not run because the run ended have one too. */
  get allResults(): Result[] {
    const { scenarios, kind, seed } = this.#order;
    const why = this.#broken === '' ? this.#abort.signal.reason : this.#broken;
    const left = this.isOver ? scenarios.slice(this.results.length) : [];
    return [...this.results, ...left.map((it) => resultWithoutVerdict(it, kind.name, seed, why))];
  }

  /** Follows the events from the start, or after the event with this number. */
  follow(afterId: number): Subscribe {
    return (listener) => {
      for (const event of this.#events) if (event.id > afterId) listener(event);
      if (this.isOver) listener(undefined);
      else this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    };
  }

  view(): RunView {
    const { scenarios, kind, seed } = this.#order;
    const self = `/runs/${this.id}`;
    const problem = this.results.find(({ outcome }) => outcome !== 'passed');
    const sinceMs = this.#beganMs === undefined ? null : systemClock.monotonicMs() - this.#beganMs;
    return {
      id: this.id,
      state: this.#state,
      target: kind.name,
      seed,
      createdAt: new Date(this.createdAtMs).toISOString(),
      tookMs: this.#tookMs ?? sinceMs,
      step: this.#step,
      reason: this.#broken || (problem?.reason ?? ''),
      where: problem?.where ?? null,
      scenarios: scenarios.map(({ name, file }, index) => {
        const { outcome, reason = '', where = null, tookMs = null } = this.results[index] ?? {};
        return { name, file, state: outcome ?? this.#stateWithout(index), reason, where, tookMs };
      }),
      links: {
        self,
        events: `${self}/events`,
        junit: `${self}/junit.xml`,
        tap: `${self}/report.tap`,
        report: `${self}/report.html`,
      },
    };
  }

  async #judge(scenario: Scenario, number: number): Promise<void> {
    const { kind, seed, scenarios } = this.#order;
    const { signal } = this.#abort;
    signal.throwIfAborted();
    this.#tell('begin', { number, of: scenarios.length, name: scenario.name, file: scenario.file });
    const onStep = (title: string) => {
      this.#step = title;
      this.#tell('step', { number, title });
    };
    const result = await runScenario(scenario, kind, { seed, updateGoldens: false, signal, onStep });
    this.results.push(result);
    this.#step = null;
    const { outcome, reason, where = null, tookMs } = result;
    this.#tell('result', { number, outcome, name: scenario.name, reason, where, tookMs });
  }

  /** Returns the state of a scenario without a result. */
  #stateWithout(index: number): RunView['state'] {
    if (this.isOver) return 'aborted';
    return this.#state === 'running' && index === this.results.length ? 'running' : 'queued';
  }

  #tell(event: string, data: object): void {
    this.#told += 1;
    const told = { id: this.#told, event, data };
    this.#events.push(told);
    if (this.#events.length > LIMITS.events) this.#events.shift();
    for (const listener of this.#listeners) listener(told);
  }

  #end(state: RunView['state']): void {
    this.#state = state;
    this.#step = null;
    this.#tookMs = this.#beganMs === undefined ? null : systemClock.monotonicMs() - this.#beganMs;
    this.#tell('end', { state });
    for (const listener of this.#listeners) listener(undefined);
    this.#listeners.clear();
    this.#over.resolve();
  }
}

function verdictOf(results: readonly Result[]): Outcome {
  const outcomes = results.map(({ outcome }) => outcome);
  const worst = (['failed', 'missing', 'passed'] as const).find((outcome) => outcomes.includes(outcome));
  return worst ?? 'skipped';
}

/** Holds the runs of a server. One runs at a time, in order of arrival. */
export class Runs {
  readonly #runs = new Map<string, Run>();
  #count = 0;
  #busy = false;
  #closed = false;

  /** Returns the id of the next run. */
  nextId(): string {
    this.#count += 1;
    return `run-${this.#count}`;
  }

  all(): readonly Run[] {
    return [...this.#runs.values()];
  }

  /** Checks the queue. Throws Refusal when it is full or the server ends. */
  assertRoom(): void {
    if (this.#closed) throw new Refusal(503, 'the server ends', 'start it again');
    const waiting = this.all().filter((run) => run.view().state === 'queued').length;
    if (waiting < LIMITS.runsQueued) return;
    throw new Refusal(429, `${waiting} runs wait already`, 'wait for one to end, or DELETE one', {
      'retry-after': '5',
    });
  }

  add(id: string, order: RunOptions): Run {
    this.assertRoom();
    const run = new Run(id, order);
    this.#runs.set(id, run);
    void this.#work();
    return run;
  }

  /** Returns a run. Throws Refusal for an unknown one. */
  get(id: string): Run {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new Refusal(
      404,
      `there is no run ${id}`,
      `GET /runs has those of this server; the newest ${LIMITS.runsKept} are kept`,
    );
  }

  /** Aborts all runs; resolves when all their parts have ended. */
  async close(reason: string): Promise<void> {
    this.#closed = true;
    await Promise.all(this.all().map((run) => run.abort(reason)));
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      await next.execute();
      this.#forget();
    }
    this.#busy = false;
  }

  #next(): Run | undefined {
    return this.all().find((run) => run.view().state === 'queued');
  }

  /** Deletes the oldest finished runs beyond the limits. */
  #forget(): void {
    let [count, bytes] = [0, 0];
    for (const run of this.all()
      .filter(({ isOver }) => isOver)
      .reverse()) {
      count += 1;
      bytes += run.pictureBytes;
      const isNewest = count === 1;
      if (!isNewest && (count > LIMITS.runsKept || bytes > LIMITS.pictureBytesKept)) this.#runs.delete(run.id);
    }
  }
}
