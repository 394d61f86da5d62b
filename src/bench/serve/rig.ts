import type { z } from 'zod';
import { systemClock } from '../../lib/clock.ts';
import { checkConfig } from '../../lib/config-file.ts';
import { ConfigError, PayboxError } from '../../lib/errors.ts';
import type { BoxClient } from '../engine/clients/box.ts';
import { LISTED_ROWS } from '../engine/clients/gateway.ts';
import { pageOf } from '../engine/reports/page.ts';
import type { Result } from '../engine/reports/result.ts';
import { closeTarget, endFaults, reasonWithFix, recordFinalState } from '../engine/run/run.ts';
import { tryBaseline } from '../engine/steps/account.ts';
import { StepFailure } from '../engine/steps/context.ts';
import { runStep } from '../engine/steps/steps.ts';
import { reasonToSkip, type Target, type TargetKind } from '../engine/target.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { type Step, step as stepSchema } from '../scenarios/steps.ts';
import { usesGolden } from './orders.ts';
import { beginHistory, type RigHistory } from './rig-history.ts';
import { Refusal } from './route.ts';
import { type callbackList, LIMITS, type rigView, type stepAnswer } from './schemas.ts';

const RESET_FIX = 'open a rig of target process or emulated';
const STEP_FIX = '`paybox config schema scenario` has every step';

export interface RigOptions {
  scenario: Scenario;
  kind: TargetKind;
  target: Target;
  seed: number;
  idleMs: number;
  callbackUrl: string | undefined;
}

/** Runs a gateway and boxes that a caller drives step by step. All steps belong to one open-ended scenario. */
export class Rig {
  readonly id: string;
  readonly #order: RigOptions;
  #history: RigHistory;
  readonly #ending = new AbortController();
  readonly openedAtMs = systemClock.wallMs();
  readonly #beganMs = systemClock.monotonicMs();
  #usedMs = systemClock.monotonicMs();
  /** The number of requests under way. */
  #busy = 0;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  constructor(id: string, order: RigOptions) {
    this.id = id;
    this.#order = order;
    this.#history = beginHistory(order, this.#ending.signal);
  }

  /** Excludes everything before this call from transcript and verdicts. */
  async begin(): Promise<void> {
    await this.#history.messages.begin();
    await this.inRealTime(() => tryBaseline(this.#history.context));
  }

  /**
   * Resets the rig after all earlier steps. No order, payment, callback, fault, variable or failure is left, and boxes
   * and gateway have no stored state. Addresses, credentials and the seed stay. Throws Refusal for parts that ran
   * before the rig.
   */
  async reset(): Promise<void> {
    const { target } = this.#order;
    const { reset } = target;
    if (reset === undefined) {
      throw new Refusal(422, `${this.id} is at a gateway that ran before, which is not reset`, RESET_FIX);
    }
    await this.#afterEarlier(async () => {
      this.#ending.signal.throwIfAborted();
      this.#history.over.abort('the rig is reset');
      try {
        await reset();
      } catch (error) {
        throw new Refusal(503, reasonWithFix(error), 'end the rig, and open another');
      }
      this.#history = beginHistory(this.#order, this.#ending.signal);
      await this.begin();
    });
  }

  /** Runs `work` for a request. Meanwhile the rig does not count as idle. */
  async use<T>(work: () => T | Promise<T>): Promise<T> {
    this.#busy += 1;
    try {
      return await work();
    } finally {
      this.#busy -= 1;
      this.#usedMs = systemClock.monotonicMs();
    }
  }

  /** Returns the milliseconds until the rig ends without a further request. */
  get idleInMs(): number {
    const sinceMs = this.#busy > 0 ? 0 : systemClock.monotonicMs() - this.#usedMs;
    return this.#order.idleMs - sinceMs;
  }

  /** Returns the signal that aborts when the rig ends. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * Runs one step after all earlier ones. `signal` cancels it. Throws ConfigError for an invalid step, StepFailure when
   * it fails, Refusal when too many steps wait.
   */
  async step(body: unknown, signal: AbortSignal): Promise<z.output<typeof stepAnswer>> {
    const step = await this.#checked(body);
    return this.#afterEarlier(() => this.#run(step, signal));
  }

  async #afterEarlier<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= LIMITS.stepsWaiting) {
      throw new Refusal(
        429,
        `${this.#waiting} steps wait already at ${this.id}`,
        'send a step after the one before is answered',
      );
    }
    this.#waiting += 1;
    const mine = this.#last.then(work);
    this.#last = mine.then(
      () => undefined,
      // The caller of a step gets its failure. The next step runs anyway.
      () => undefined,
    );
    try {
      return await mine;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Returns the box with this number, counted from 1. Throws Refusal. */
  box(number: string): BoxClient {
    const { boxes } = this.#order.target;
    const box = /^\d{1,4}$/.test(number) ? boxes[Number(number) - 1] : undefined;
    if (box !== undefined) return box;
    throw new Refusal(404, `${this.id} has no box ${number}`, `it has boxes 1 to ${boxes.length}`);
  }

  /** Runs `look` in real time. Virtual time is not skipped meanwhile. */
  inRealTime<T>(look: () => Promise<T>): Promise<T> {
    return this.#order.target.time.inRealTime(look);
  }

  /** Returns the probe's picture of a box; undefined while there is none. Throws Refusal and MissingPeerError. */
  async picture(number: string): Promise<Uint8Array | undefined> {
    const seen = await this.#order.target.probe.capture(this.box(number));
    return seen?.file;
  }

  /** Returns the newest callbacks. Throws MissingPeerError. */
  async callbacks(): Promise<z.output<typeof callbackList>> {
    const { gateway, partnerServer } = this.#order.target;
    const { value: newest } = await gateway.callbacks(LISTED_ROWS).next();
    const received = partnerServer?.received
      .slice(-LIMITS.callbacks)
      .map(({ transactionId = null, body, answered }) => {
        return { transactionId, body, answered };
      });
    return { callbacks: newest ?? [], received: received ?? null };
  }

  /** Returns the transcript so far, with the current screens. */
  async result(): Promise<Result> {
    const { scenario, kind, seed, target } = this.#order;
    const { transcript, messages, failures } = this.#history;
    await target.time.inRealTime(() => recordFinalState(target, transcript));
    if (transcript.entries.length < LIMITS.entries) await messages.end();
    const [first] = failures;
    return {
      scenario,
      target: kind.name,
      seed,
      outcome: first === undefined ? 'passed' : 'failed',
      reason: first?.reason ?? '',
      where: first?.where,
      tookMs: systemClock.monotonicMs() - this.#beganMs,
      entries: transcript.entries,
      entriesOmitted: transcript.omitted,
      latencies: transcript.latencies,
    };
  }

  /** Returns the report so far as a page. */
  async report(): Promise<string> {
    return pageOf([await this.result()], { startedAtMs: this.openedAtMs });
  }

  view(): z.output<typeof rigView> {
    const { target, kind, seed, idleMs, callbackUrl } = this.#order;
    const { origin, baseUrl, partner, account } = target.gateway.access;
    const self = `/rigs/${this.id}`;
    return {
      id: this.id,
      target: kind.name,
      seed,
      gateway: { origin, baseUrl },
      partner: { username: partner.username, password: partner.password },
      account,
      boxes: target.boxes.map(({ terminalCode, serialNumber, url }, index) => {
        const box = `${self}/boxes/${index + 1}`;
        const links = { screen: `${box}/screen.png`, status: `${box}/status` };
        return { number: index + 1, terminalCode, serialNumber, url, ...links };
      }),
      callbackUrl: callbackUrl ?? target.partnerServer?.url ?? null,
      idleMs,
      steps: this.#history.steps,
      failures: this.#history.failures.length,
      links: { self, steps: `${self}/steps`, callbacks: `${self}/callbacks`, report: `${self}/report.html` },
    };
  }

  /**
   * Cancels the running step and ends the rig. Resolves when all its parts have ended. With `isHurried` the program
   * ends too, so parts that hang are soon killed or abandoned.
   */
  close(reason: string, isHurried = false): Promise<void> {
    this.#ending.abort(new Refusal(410, `${this.id} has ended: ${reason}`, 'open another'));
    this.#closed ??= this.#close(isHurried);
    return this.#closed;
  }

  async #close(isHurried: boolean): Promise<void> {
    await this.inRealTime(() => endFaults(this.#history.context, isHurried));
    await closeTarget(this.#order.target, isHurried);
  }

  async #checked(body: unknown): Promise<Step> {
    const { scenario, kind, target } = this.#order;
    const step = checkConfig(stepSchema, body, 'step', STEP_FIX);
    const needed = await reasonToSkip({ ...scenario, steps: [step] }, kind);
    if (needed !== undefined) throw new ConfigError(`step: ${needed}`, 'open a rig of another target');
    if ((step.box ?? 1) > target.boxes.length) {
      const fix = 'open one with more, as { "boxes": 2 }';
      throw new ConfigError(`step: box: there is no box ${step.box}: the rig has ${target.boxes.length}`, fix);
    }
    if (usesGolden([step]))
      throw new ConfigError('step: expect.golden: a step has no folder to take pictures from', GOLDEN_FIX);
    return step;
  }

  async #run(step: Step, gone: AbortSignal): Promise<z.output<typeof stepAnswer>> {
    const { context, transcript } = this.#history;
    this.#history.steps += 1;
    const number = this.#history.steps;
    const signal = AbortSignal.any([this.#ending.signal, gone]);
    const beganMs = systemClock.monotonicMs();
    try {
      const result = await runStep(step, { ...context, path: ['steps', number], signal });
      const kept = (result ?? null) as Record<string, unknown> | null;
      return { number, result: kept, tookMs: systemClock.monotonicMs() - beganMs };
    } catch (error) {
      this.#ending.signal.throwIfAborted();
      const where = `step ${number}`;
      if (gone.aborted) {
        transcript.add('problem', 'given up: the caller went away', { detail: { where } });
        throw error;
      }
      const mistake = mistakeIn(error);
      if (mistake !== undefined) throw mistake;
      this.#note(error, where);
      throw error;
    }
  }

  #note(error: unknown, where: string): void {
    const reason = error instanceof Error ? error.message : String(error);
    // When a rig fails repeatedly, the first reasons explain most.
    const { failures, transcript } = this.#history;
    if (failures.length < LIMITS.failures) failures.push({ reason, where });
    transcript.add('problem', reason, { detail: { where } });
  }
}

const GOLDEN_FIX =
  'put the scenario in a folder that the server was started with, as --scenarios DIR; or compare screen.png';

/** Returns a step's mistake with an unknown variable. It is the caller's mistake, not a failed verdict. */
function mistakeIn(error: unknown): ConfigError | undefined {
  const cause = error instanceof StepFailure ? error.cause : undefined;
  const isMistake = cause instanceof PayboxError && cause.code === 'VARIABLE';
  return isMistake ? new ConfigError(`step: ${cause.message}`, 'set it with { "set": { "name": 1 } }') : undefined;
}
