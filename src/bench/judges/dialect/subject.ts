import type { TestTime } from '../../engine/test-time.ts';
import type { SeenBox } from '../box/box-pages.ts';
import type { BoxControls } from '../box/subject.ts';
import { type ContactWait, waitForContact } from '../first-contact.ts';
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

/** Returns why a check cannot run on this box; undefined if it can. */
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
export function waitForEnrolment(service: ScriptedService, wait: ContactWait): Promise<void> {
  return waitForContact(
    {
      missing: `no enrolment of ${service.identity.macAddr}`,
      fix: 'check the address of the broker in the box, and restart the box: it has a new boxId in each run',
      isThere: () => service.isHeard,
      hasFailed: () => service.line !== undefined || service.log.violations.length > 0,
      progress: () => progressOf(service),
    },
    wait,
  );
}

function progressOf({ isHeard, line, lines, lastProblem, log, broker }: ScriptedService): string {
  if (isHeard) return 'the box has enrolled, and listens';
  const against = log.lastViolation;
  if (line !== undefined) return `the box has enrolled, but does not listen on the topic of its boxId${against}`;
  if (lastProblem !== '') return `${lastProblem}${against}`;
  if (lines.length > 0) return `a client has logged in, but has not enrolled${against}`;
  const { connectionCount } = broker;
  return connectionCount === 0 ? 'nothing has connected' : `${connectionCount} connections, but no login${against}`;
}
