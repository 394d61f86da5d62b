import { MissingPeerError, reasonOf } from '../../lib/errors.ts';
import type { Expectation } from '../vocabulary/expect.ts';
import { durationMs } from '../vocabulary/variables.ts';
import { announcementProblem, settlementProblem } from './account.ts';
import { boxProblem } from './box-looks.ts';
import { boxOf, type StepContext, StepFailure } from './context.ts';
import { faultProblem } from './faults.ts';
import { callbackProblem, reportProblem } from './gateway-looks.ts';
import { goldenProblem } from './golden.ts';
import { waitUntilRight, watchWhileRight } from './waiting.ts';

const WITHIN_MS = 5_000;

/** `expect`: all of it, at one moment, within a time. Throws StepFailure. */
export async function expect(args: Expectation, context: StepContext): Promise<undefined> {
  const { target, path, signal, transcript } = context;
  const {
    within,
    for: stays,
    golden,
    tolerance,
    report,
    callback,
    announced,
    settled,
    fault,
    unreachable,
    ...shown
  } = args;
  const withinMs = durationOf(within) ?? WITHIN_MS;
  const look = async () => {
    try {
      return (
        (unreachable && (await reachableProblem(context))) ??
        (report && (await reportProblem(report, context))) ??
        (callback && (await callbackProblem(callback, context))) ??
        (fault && (await faultProblem(fault, context))) ??
        (announced === undefined ? undefined : await announcementProblem(announced, context)) ??
        (settled && (await settlementProblem(context))) ??
        (await boxProblem(shown, context)) ??
        (golden === undefined ? undefined : await goldenProblem({ golden, tolerance }, context))
      );
    } catch (error) {
      // What is off or not there yet is looked at again; the reason is the verdict's when time is up.
      return reasonOf(error);
    }
  };
  const until = () => waitUntilRight(target.time, withinMs, look, signal);
  const problem = await transcript.timed(`until ${nameOf(args)}`, until, target.time.clock);
  if (problem !== undefined) throw new StepFailure(`${problem}, ${within ?? '5s'} long`, path);
  const forMs = durationOf(stays);
  if (forMs === undefined) return undefined;
  const later = await watchWhileRight(target.time, forMs, look, signal);
  if (later !== undefined) throw new StepFailure(`it did not stay so for ${stays}: ${later}`, path);
  return undefined;
}

/** What is waited for, in a word or two. */
function nameOf({ state, screen, callback, report, settled, unreachable }: Expectation): string {
  if (state !== undefined) return `the box is ${state}`;
  if (screen !== undefined) return `the screen is ${screen}`;
  if (callback !== undefined) return `the callback is ${callback.status ?? 'delivered'}`;
  if (report !== undefined) return 'the box has reported';
  if (settled) return 'all is settled';
  return unreachable ? 'the box is off' : 'the rest';
}

function durationOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : durationMs(text);
}

/** How the box is not off: one that answers, whatever it answers, is on. */
async function reachableProblem(context: StepContext): Promise<string | undefined> {
  const box = boxOf(context);
  try {
    const { state } = await box.status();
    return `${box.terminalCode}: expected it to be off, it is ${state}`;
  } catch (error) {
    if (error instanceof MissingPeerError) return undefined;
    return `${box.terminalCode}: expected it to be off, ${reasonOf(error)}`;
  }
}
