import { type Check, type CheckRun, type Level, Mismatch, PreconditionFailed } from '../check.ts';
import { Trial } from './check-context.ts';
import type { BoxNeed, BoxSubject } from './subject.ts';

export interface BoxCheckOptions {
  needs?: readonly BoxNeed[];
  /** Milliseconds of everybody's time that it may take. */
  timeoutMs?: number;
}

/** PROTOCOL.md is all there is between gateway and box: none of its clauses about that is one choice of several. */
const LEVEL: Level = 'spec';

/** Answers, two reconnections and what a slow box needs beside. */
const TIMEOUT_MS = 180_000;

/** A check of a box that is in a session, and idle. */
export function boxCheck(
  clause: string,
  title: string,
  judge: (trial: Trial) => Promise<void>,
  { needs = [], timeoutMs = TIMEOUT_MS }: BoxCheckOptions = {},
): Check<BoxSubject, BoxNeed> {
  const run = async (checkRun: CheckRun<BoxSubject>) => {
    const trial = new Trial(checkRun);
    await trial.begin();
    try {
      await judge(trial);
    } catch (error) {
      await trial.end(true);
      throw error;
    }
    await trial.end(false);
  };
  return { clause, title, level: LEVEL, needs, timeoutMs, run };
}

/** A check of what the box did in all that was judged so far. */
export function watched(clause: string, title: string, needs: readonly BoxNeed[] = []): Check<BoxSubject, BoxNeed> {
  const run = async ({ subject: { gateway } }: CheckRun<BoxSubject>) => {
    const against = gateway.violations.filter((it) => it.clause === clause).map(({ what }) => what);
    if (against.length > 0) throw new Mismatch(against.slice(0, 5).join('; '));
    if (gateway.sessions.length === 0) throw new PreconditionFailed('the box has not been in a session');
  };
  return { clause, title, level: LEVEL, needs, run };
}
