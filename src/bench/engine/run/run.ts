import { systemClock, untilAborted, withDeadline } from '../../../lib/clock.ts';
import { MissingPeerError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import { seededRandom } from '../../../lib/random.ts';
import { durationMs } from '../../scenarios/durations.ts';
import type { Scenario } from '../../scenarios/scenario.ts';
import { Scope } from '../../scenarios/scope.ts';
import type { BoxClient } from '../clients/box.ts';
import { LISTED_ROWS } from '../clients/gateway.ts';
import type { Result } from '../reports/result.ts';
import { Transcript } from '../reports/transcript.ts';
import { tryBaseline } from '../steps/account.ts';
import { type StepContext, StepFailure } from '../steps/context.ts';
import { endInjected, expectHappened } from '../steps/faults.ts';
import { runSteps } from '../steps/steps.ts';
import { reasonToSkip, type Target, type TargetKind } from '../target.ts';
import { TrafficRecorder } from './traffic-recorder.ts';

export interface RunOptions {
  seed: number;
  updateGoldens: boolean;
  /** Ends the run and everything that it started. */
  signal: AbortSignal;
  onStep(title: string): void;
  /** Records the screen at each change of a box for a report. Without it only steps look at the screen. */
  film?: boolean;
}

const TAG_LETTERS = 4;
const CLOSE_TIMEOUT_MS = 15_000;
/** The time to end the faults of a cancelled run, at a gateway or box that may hang. */
const END_FAULTS_MS = 300;
/** The time for the parts of a target to end in order when the program ends. */
const CLOSE_SOON_MS = 1_200;
/** The time to kill the parts that have not ended in order. */
const KILL_MS = 200;
const NO_EVIDENCE: Pick<Result, 'entries' | 'entriesOmitted' | 'latencies' | 'where'> = {
  entries: [],
  entriesOmitted: 0,
  latencies: new Map(),
  where: undefined,
};

/**
 * Returns the result of a scenario that was ended before its verdict, with the reason. Without it a report would look
 * complete.
 */
export function resultWithoutVerdict(scenario: Scenario, target: string, seed: number, why: unknown): Result {
  const reason = `${reasonOf(why)}, before its verdict`;
  return { scenario, target, seed, ...NO_EVIDENCE, outcome: 'missing', reason, tookMs: 0 };
}

/** Opens a target of this kind, runs one scenario and closes the target. Throws only when the signal aborts. */
export async function runScenario(scenario: Scenario, kind: TargetKind, options: RunOptions): Promise<Result> {
  const beganMs = systemClock.monotonicMs();
  const about = { scenario, target: kind.name, seed: options.seed };
  const took = () => systemClock.monotonicMs() - beganMs;
  let target: Target;
  try {
    const hindered = await untilAborted(options.signal, reasonToSkip(scenario, kind));
    if (hindered !== undefined) return { ...about, ...NO_EVIDENCE, outcome: 'skipped', reason: hindered, tookMs: 0 };
    target = await kind.open({ boxes: scenario.boxes, enrolled: scenario.enrolled, signal: options.signal });
  } catch (error) {
    options.signal.throwIfAborted();
    return { ...about, ...NO_EVIDENCE, outcome: 'missing', reason: reasonWithFix(error), tookMs: took() };
  }
  const transcript = new Transcript(target.time.clock);
  const watching = new AbortController();
  const messages = new TrafficRecorder(target, transcript);
  try {
    await untilAborted(options.signal, messages.begin());
    recordChanges(target, transcript, watching.signal, options.film);
    const verdict = await judged(scenario, messages.target(), transcript, options);
    await untilAborted(options.signal, messages.end());
    return {
      ...about,
      ...verdict,
      tookMs: took(),
      entries: transcript.entries,
      entriesOmitted: transcript.omitted,
      latencies: transcript.latencies,
    };
  } finally {
    watching.abort();
    await closeTarget(target, options.signal.aborted);
  }
}

/** Closes a target. `isHurried`: the program ends too, so parts that hang are killed or abandoned soon. */
export async function closeTarget(target: Target, isHurried: boolean): Promise<void> {
  const closed = target.close(isHurried ? CLOSE_SOON_MS : undefined).then(() => target.time.close());
  await withDeadline(systemClock, isHurried ? CLOSE_SOON_MS + KILL_MS : CLOSE_TIMEOUT_MS, closed);
}

/** Ends the faults that a run has ordered at an external target. `isHurried`: as for `closeTarget`. */
export async function endFaults(context: StepContext, isHurried: boolean): Promise<void> {
  await withDeadline(systemClock, isHurried ? END_FAULTS_MS : CLOSE_TIMEOUT_MS, endInjected(context));
}

async function judged(
  scenario: Scenario,
  target: Target,
  transcript: Transcript,
  options: RunOptions,
): Promise<Pick<Result, 'outcome' | 'reason' | 'where' | 'failure'>> {
  const limit = new AbortController();
  const signal = AbortSignal.any([options.signal, limit.signal]);
  const context = contextOf(scenario, target, transcript, { ...options, signal });
  const over = new AbortController();
  try {
    await target.time.inRealTime(() => untilAborted(options.signal, tryBaseline(context)));
    void endAtLimit(scenario, context, limit, over.signal);
    await untilAborted(options.signal, runSteps(scenario.steps, context));
    limit.signal.throwIfAborted();
    await target.time.inRealTime(() => untilAborted(options.signal, expectHappened(context)));
    return { outcome: 'passed', reason: '', where: undefined };
  } catch (error) {
    options.signal.throwIfAborted();
    const reason = reasonOf(error);
    const failed = error instanceof StepFailure ? error : undefined;
    const where = failed?.where ?? scenario.file;
    transcript.add('problem', reason, { where, detail: { where } });
    return { outcome: 'failed', reason, where, failure: failed?.detail };
  } finally {
    over.abort();
    await target.time.inRealTime(async () => {
      await endFaults(context, options.signal.aborted);
      // A cancelled run has no verdict, so it needs no final state.
      if (!options.signal.aborted) await untilAborted(options.signal, recordFinalState(target, transcript));
    });
  }
}

/** Ends the steps once the scenario's time is over. The failure names the step that began last. */
async function endAtLimit(
  { limit }: Scenario,
  context: StepContext,
  controller: AbortController,
  over: AbortSignal,
): Promise<void> {
  const limitMs = limit === undefined ? undefined : durationMs(limit);
  if (limitMs === undefined) return;
  // The sleep rejects when the scenario is over before its time.
  await context.target.time.clock.sleep(limitMs, over).catch(() => undefined);
  if (over.aborted) return;
  const reason = `limit: it takes longer than ${limit}; this step was begun last`;
  controller.abort(new StepFailure(reason, context.state.latest ?? context));
}

/** Returns the context for the first step of a scenario. */
export function contextOf(
  scenario: Scenario,
  target: Target,
  transcript: Transcript,
  { seed, updateGoldens, signal, onStep }: RunOptions,
): StepContext {
  const random = seededRandom(seed);
  const scope = new Scope(builtIns(target, seed, random.uuid()));
  for (const [name, value] of Object.entries(scenario.variables)) scope.set(name, scope.fill(value, random));
  const own = { state: {}, source: scenario.source, box: 0, path: ['steps'] };
  return { scenario, target, transcript, random, scope, updateGoldens, signal, onStep, ...own };
}

/** Returns the variables of every scenario. `unique` separates the orders of two runs at one gateway. */
function builtIns(target: Target, seed: number, uuid: string): Record<string, unknown> {
  const [first] = target.boxes;
  return {
    seed,
    unique: uuid.replaceAll('-', '').slice(0, TAG_LETTERS).toUpperCase(),
    account: target.gateway.account,
    boxes: target.boxes.map(({ terminalCode, serialNumber }) => ({ terminalCode, serialNumber })),
    box: { terminalCode: first?.terminalCode, serialNumber: first?.serialNumber },
  };
}

/** The bench records the status changes and final screens of this many boxes. */
const WATCHED_MAX = 16;

/** Records callbacks and the boxes' status events until the signal aborts. */
export function recordChanges(target: Target, transcript: Transcript, signal: AbortSignal, film = false): void {
  target.partnerServer?.onReceived((callback) =>
    transcript.add('callback', `answered ${callback.answered}`, { detail: callback }),
  );
  for (const box of target.boxes.slice(0, WATCHED_MAX)) {
    const look = film ? filmOf(target, transcript, box) : () => undefined;
    const told = (status: unknown) => look(transcript.addStatus(box.terminalCode, status));
    // A box that is off sends no status, which is no failure of the scenario.
    box.watch(told, signal).catch(() => undefined);
  }
}

/** Records the screens and the gateway's callback list. */
export async function recordFinalState(target: Target, transcript: Transcript): Promise<void> {
  for (const box of target.boxes.slice(0, WATCHED_MAX)) {
    try {
      const seen = await target.probe.capture(box);
      if (seen !== undefined) transcript.addScreen(box.terminalCode, seen.file, seen.qr);
    } catch (error) {
      transcript.add('status', `${box.terminalCode}: no picture`, { detail: reasonOf(error) });
    }
  }
  for (const [terminalCode, panel] of target.panels ?? []) {
    const detail = panel.violations();
    if (detail.length > 0)
      transcript.add('problem', `${terminalCode}: ${panel.name} received data that it garbles`, { detail });
  }
  try {
    const { value: newest } = await target.gateway.callbacks(LISTED_ROWS).next();
    transcript.add('callback', 'the newest callbacks of the gateway', { detail: newest });
  } catch (error) {
    transcript.add('callback', 'the gateway does not list callbacks', { detail: reasonOf(error) });
  }
}

/** Returns why a target did not open, with the fix. */
export function reasonWithFix(error: unknown): string {
  const fix = error instanceof PayboxError && error.fix !== '' ? `; ${error.fix}` : '';
  return `${error instanceof MissingPeerError ? '' : 'the target did not start: '}${reasonOf(error)}${fix}`;
}

/**
 * The event of a change may come before the screen is drawn, and the next event after it. Later changes are only
 * clocks.
 */
const LOOKS_AFTER_CHANGE = 2;

/**
 * Returns a function that records a box's screen after each change of its status. The caller calls it for each status
 * event. Time is not skipped while it looks.
 */
function filmOf(target: Target, transcript: Transcript, box: BoxClient): (isChange: boolean) => void {
  let left = 0;
  let isLooking = false;
  let isAsked = false;
  const look = async () => {
    isLooking = true;
    while (isAsked) {
      isAsked = false;
      // A box that is off shows nothing, which is no failure of the scenario.
      const seen = await target.time.inRealTime(() => target.probe.capture(box)).catch(() => undefined);
      if (seen !== undefined) transcript.addScreen(box.terminalCode, seen.file, seen.qr);
    }
    isLooking = false;
  };
  return (isChange) => {
    if (isChange) left = LOOKS_AFTER_CHANGE;
    if (left === 0 || transcript.hasAllPictures) return;
    left -= 1;
    isAsked = true;
    if (!isLooking) void look();
  };
}
