import { MissingPeerError } from '../../../lib/errors.ts';
import { type TestTime, waitUntilRight } from '../../engine/test-time.ts';
import type { SeenBox } from '../box/box-pages.ts';
import type { BoxControls, HelloWait } from '../box/subject.ts';
import type { DialectIdentity, ScriptedService } from './scripted-service.ts';

/** Needs of a check. `words`: the text on the screen; `sound`: what is said aloud; `slow`: it takes minutes. */
export type DialectNeed = 'screen' | 'words' | 'sound' | 'restart' | 'slow';

/** Asks somebody who is at the box; undefined if he cannot tell. */
export type AskPerson = (question: string, signal: AbortSignal) => Promise<boolean | undefined>;

/** The judged box and its service. */
export interface DialectSubject extends SeenBox {
  readonly identity: DialectIdentity;
  readonly time: TestTime;
  readonly service: ScriptedService;
  readonly controls: BoxControls & { ask?: AskPerson | undefined };
}

/** Time within which a better enrolment may follow a wrong one. */
const SECOND_ENROLMENT_MS = 15_000;

/** Why a check cannot run on this box; undefined if it can. */
export function dialectLacks({ controls }: DialectSubject, need: DialectNeed, isSlow: boolean): string | undefined {
  const { see, pages, ask, restart } = controls;
  const person = 'or answer the questions of the bench at a terminal';
  const [isThere, why] = {
    screen: [see ?? ask, `nobody sees the screen: give --box-page or --probe, ${person}`],
    words: [pages ?? ask, `nobody reads the screen: give --box-page, ${person}`],
    sound: [pages ?? ask, `nobody hears the box: give --box-page, ${person}`],
    restart: [restart, 'the box cannot be restarted: give --restart-command'],
    slow: [isSlow || undefined, 'takes long: give --slow'],
  }[need];
  return isThere === undefined ? String(why) : undefined;
}

/**
 * Waits until the box has enrolled and listens, or for enough violations to judge. Throws MissingPeerError when nothing
 * comes.
 */
export async function waitForEnrolment(service: ScriptedService, { time, withinMs, signal, onProgress }: HelloWait) {
  let firstMs: number | undefined;
  let reported = '';
  const look = async () => {
    const progress = progressOf(service);
    if (progress !== reported) onProgress?.(progress);
    reported = progress;
    if (service.isHeard) return undefined;
    const nowMs = time.clock.monotonicMs();
    if (service.line !== undefined || service.violations.length > 0) firstMs ??= nowMs;
    return firstMs !== undefined && nowMs - firstMs > SECOND_ENROLMENT_MS ? undefined : progress;
  };
  const problem = await waitUntilRight(time, withinMs, look, signal);
  if (problem === undefined) return;
  throw new MissingPeerError(
    `no enrolment of ${service.identity.macAddr} within ${withinMs / 1000} s: ${problem}`,
    'check the address of the broker in the box, and restart the box: it has a new boxId in each run',
  );
}

function progressOf({ isHeard, line, lines, lastProblem, violations, broker }: ScriptedService): string {
  if (isHeard) return 'the box has enrolled, and listens';
  const violation = violations.at(-1);
  const against = violation === undefined ? '' : `; against ${violation.clause}: ${violation.what}`;
  if (line !== undefined) return `the box has enrolled, but does not listen on the topic of its boxId${against}`;
  if (lastProblem !== '') return `${lastProblem}${against}`;
  if (lines.length > 0) return `a client has logged in, but has not enrolled${against}`;
  const { connectionCount } = broker;
  return connectionCount === 0 ? 'nothing has connected' : `${connectionCount} connections, but no login${against}`;
}
