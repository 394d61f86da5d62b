import { MissingPeerError } from '../../../lib/errors.ts';
import type { BoxClient } from '../../engine/clients/box.ts';
import type { Capture } from '../../engine/target.ts';
import type { TestTime } from '../../engine/test-time.ts';
import { waitUntilRight } from '../../engine/test-time.ts';
import type { JudgedIdentity } from './gateway/endpoint.ts';
import type { ScriptedGateway } from './gateway/scripted-gateway.ts';

/**
 * Needs of a check beside the connection of the box. `pages`: the box's own pages, which give the text on its screen.
 * `faults`: faults can be injected there. `first start`: the box was never used before. `slow`: the check takes longer
 * than most.
 */
export type BoxNeed = 'screen' | 'pages' | 'faults' | 'restart' | 'first start' | 'tls' | 'mqtt' | 'http' | 'slow';

/** Access to a box beside its messages. */
export interface BoxControls {
  /** Takes a picture of its screen; undefined if there is nothing to see. */
  see?: (() => Promise<Capture | undefined>) | undefined;
  /** Its own pages: keys, and the text on its screen. */
  pages?: BoxClient | undefined;
  /** Whether faults can be injected at its pages (PROTOCOL.md, clause FLT-10). */
  hasFaults?: boolean;
  /** Whether it runs for the first time, and so has no journal. */
  isFirstStart?: boolean;
  /** Kills the box, and starts it again. */
  restart?: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

/** The judged box and its gateway. */
export interface BoxSubject {
  readonly identity: JudgedIdentity;
  readonly time: TestTime;
  readonly gateway: ScriptedGateway;
  readonly controls: BoxControls;
}

/** Time within which a box reconnects: its longest backoff is half a minute. */
export const RETURN_MS = 45_000;
/** Time within which a better hello may follow a refused one. */
const SECOND_HELLO_MS = 15_000;
const WRONG_LOGINS_MAX = 3;

/** Why a check cannot run on this box; undefined if it can. */
export function boxLacks({ gateway, controls }: BoxSubject, need: BoxNeed, isSlow: boolean): string | undefined {
  if (need === 'mqtt' || need === 'http') {
    return gateway.transport === need ? undefined : `the box speaks ${gateway.transport ?? 'nothing'}, not ${need}`;
  }
  const { see, pages, hasFaults, isFirstStart, restart } = controls;
  const [isThere, why] = {
    screen: [see !== undefined, 'nobody sees the screen: give --box-page or --probe'],
    pages: [pages !== undefined, 'the pages of the box are not known: give --box-page, their origin'],
    faults: [hasFaults, 'no faults can be injected: give --box-page of a box with faults: true in its configuration'],
    'first start': [isFirstStart, 'nobody knows whether the box starts for the first time'],
    restart: [restart !== undefined, 'the box cannot be restarted: give --restart-command'],
    tls: [gateway.tls !== undefined, 'the box speaks without TLS: give --tls'],
    slow: [isSlow, 'takes long: give --slow'],
  }[need] as [boolean | undefined, string];
  return isThere === true ? undefined : why;
}

export interface HelloWait {
  time: TestTime;
  withinMs: number;
  signal: AbortSignal;
  /** Called with a summary of logins and messages so far, whenever it changes. */
  onProgress?: ((progress: string) => void) | undefined;
}

/** Waits for a hello of the box, or for enough violations to judge. Throws MissingPeerError when nothing comes. */
export async function waitForHello(gateway: ScriptedGateway, { time, withinMs, signal, onProgress }: HelloWait) {
  const { terminalCode } = gateway.identity;
  let firstViolationMs: number | undefined;
  let reported = '';
  const look = async () => {
    const progress = progressOf(gateway);
    if (progress !== reported) onProgress?.(progress);
    reported = progress;
    if (gateway.session !== undefined) return undefined;
    const nowMs = time.clock.monotonicMs();
    const wrong = gateway.logins.filter(({ username, problem }) => username === terminalCode && problem !== undefined);
    if (wrong.length >= WRONG_LOGINS_MAX) return undefined;
    if (gateway.violations.some(({ clause }) => clause !== 'TOP-2')) firstViolationMs ??= nowMs;
    return firstViolationMs !== undefined && nowMs - firstViolationMs > SECOND_HELLO_MS ? undefined : progress;
  };
  const problem = await waitUntilRight(time, withinMs, look, signal);
  if (problem === undefined) return;
  throw new MissingPeerError(
    `no hello of ${terminalCode} within ${withinMs / 1000} s: ${problem}`,
    'check the address in the box, that both are in one network, and that no firewall is between them',
  );
}

function progressOf({ session, transport, logins, violations, mqtt, http }: ScriptedGateway): string {
  if (session !== undefined) return `the box is there, over ${transport}`;
  const last = logins.at(-1);
  const connections = mqtt.connectionCount + http.connectionCount;
  if (last === undefined)
    return connections === 0 ? 'nothing has connected' : `${connections} connections, but no login`;
  if (last.problem !== undefined) return `a login was refused: ${last.problem}`;
  const violation = violations.at(-1);
  const against = violation === undefined ? '' : `; against ${violation.clause}: ${violation.what}`;
  return `${last.username} logged in, but has not said hello${against}`;
}
