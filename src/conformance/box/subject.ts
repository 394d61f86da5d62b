import type { BoxClient } from '../../bench/clients/box.ts';
import type { Capture } from '../../bench/probes.ts';
import { waitUntilRight } from '../../bench/steps/waiting.ts';
import type { TestTime } from '../../bench/test-time.ts';
import { MissingPeerError } from '../../lib/errors.ts';
import type { JudgedIdentity } from './gateway/endpoint.ts';
import type { ScriptedGateway } from './gateway/scripted-gateway.ts';

/**
 * What a check may need of a box beyond its connection. `pages`: its own pages, which say in words what is on its screen.
 * `faults`: that faults can be ordered there. `first life`: nobody has used it before. `time`: it takes longer than most.
 */
export type BoxNeed = 'screen' | 'pages' | 'faults' | 'restart' | 'first life' | 'tls' | 'mqtt' | 'http' | 'time';

/** What can be done to a box, or seen of it, beside what it says. */
export interface BoxHands {
  /** Its screen; undefined while there is nothing to see. */
  see?: (() => Promise<Capture | undefined>) | undefined;
  /** Its own pages, where it has some: keys, and what the screen says in words. */
  pages?: BoxClient | undefined;
  /** Whether faults can be ordered there (PROTOCOL.md, clause FLT-10). */
  hasFaults?: boolean;
  /** Whether this is the first time that the box runs, so that it has no journal of an earlier life. */
  isFirstLife?: boolean;
  /** Ends the box without asking it, and starts it again. */
  restart?: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

/** A box that is judged, and the gateway that it speaks to. */
export interface BoxSubject {
  readonly identity: JudgedIdentity;
  readonly time: TestTime;
  readonly gateway: ScriptedGateway;
  readonly hands: BoxHands;
}

/** A box that lost its gateway dials again within this: the longest backoff of a box is half a minute. */
export const RETURN_MS = 45_000;
/** What a refused hello may be followed by a better one in. */
const SECOND_HELLO_MS = 15_000;
const WRONG_LOGINS_MAX = 3;

/** Why a check cannot be run on this box; undefined when it can. */
export function boxLacks({ gateway, hands }: BoxSubject, need: BoxNeed, slow: boolean): string | undefined {
  switch (need) {
    case 'screen':
      return hands.see === undefined ? 'nobody sees the screen: give --box-page or --probe' : undefined;
    case 'pages':
      return hands.pages === undefined
        ? 'nobody presses its keys and reads what it shows: give --box-page, the origin of its pages'
        : undefined;
    case 'faults':
      return hands.hasFaults === true
        ? undefined
        : 'no faults can be ordered of it: give --box-page of a box that takes them (faults: true in the configuration of ours)';
    case 'first life':
      return hands.isFirstLife === true ? undefined : 'nobody knows whether the box has forgotten what was before';
    case 'restart':
      return hands.restart === undefined ? 'it cannot be restarted: give --restart-command' : undefined;
    case 'tls':
      return gateway.tls === undefined ? 'it speaks without TLS: give --tls' : undefined;
    case 'time':
      return slow ? undefined : 'takes long: give --slow';
    default:
      return gateway.transport === need ? undefined : `the box speaks ${gateway.transport ?? 'nothing'}, not ${need}`;
  }
}

export interface Awaiting {
  time: TestTime;
  withinMs: number;
  signal: AbortSignal;
  /** Told what has come so far, whenever that changes. */
  onProgress?: ((told: string) => void) | undefined;
}

/**
 * Waits until the box has said hello, or so much that is wrong that the checks can say what. Throws MissingPeerError when
 * it does not come.
 */
export async function awaitHello(gateway: ScriptedGateway, { time, withinMs, signal, onProgress }: Awaiting) {
  let firstProblemMs: number | undefined;
  let told = '';
  const look = async () => {
    const progress = progressOf(gateway);
    if (progress !== told) onProgress?.(progress);
    told = progress;
    if (gateway.session !== undefined) return undefined;
    const nowMs = time.clock.monotonicMs();
    const wrong = gateway.logins.filter(({ username, problem }) => isOf(gateway, username) && problem !== undefined);
    if (wrong.length >= WRONG_LOGINS_MAX) return undefined;
    if (gateway.violations.some(({ clause }) => clause !== 'TOP-2')) firstProblemMs ??= nowMs;
    return firstProblemMs !== undefined && nowMs - firstProblemMs > SECOND_HELLO_MS ? undefined : progress;
  };
  const problem = await waitUntilRight(time, withinMs, look, signal);
  if (problem === undefined) return;
  const { terminalCode } = gateway.identity;
  throw new MissingPeerError(
    `no hello of ${terminalCode} within ${withinMs / 1000} s: ${problem}`,
    'check the address in the box, that both are in one network, and that no firewall is between them',
  );
}

function isOf({ identity }: ScriptedGateway, username: string): boolean {
  return username === identity.terminalCode;
}

/** What has come to the door. */
function progressOf(gateway: ScriptedGateway): string {
  const { logins, violations: objections, mqtt, http } = gateway;
  if (gateway.session !== undefined) return `the box is there, over ${gateway.transport}`;
  const last = logins.at(-1);
  const visits = mqtt.connectionCount + http.connectionCount;
  if (last === undefined) return visits === 0 ? 'nothing has connected' : `${visits} connections, but no login`;
  if (last.problem !== undefined) return `a login was refused: ${last.problem}`;
  const objection = objections.at(-1);
  const against = objection === undefined ? '' : `; against ${objection.clause}: ${objection.what}`;
  return `${last.username} logged in, but has not said hello${against}`;
}
