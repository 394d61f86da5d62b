import type { BoxClient } from '../../engine/clients/box.ts';
import type { Capture } from '../../engine/target.ts';
import type { TestTime } from '../../engine/test-time.ts';
import { type ContactWait, waitForContact } from '../first-contact.ts';
import type { JudgedIdentity, LoginAttempt } from './gateway/endpoint.ts';
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
  /** True if faults can be injected at its pages (PROTOCOL.md, clause FLT-10). */
  hasFaults?: boolean;
  /** True if it runs for the first time, and so has no journal. */
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
const WRONG_LOGINS_MAX = 3;

/** Returns why a check cannot run on this box; undefined if it can. */
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

/** Waits for a hello of the box, or for enough violations to judge. Throws MissingPeerError when nothing comes. */
export function waitForHello(gateway: ScriptedGateway, wait: ContactWait): Promise<void> {
  const { terminalCode } = gateway.identity;
  const isWrong = ({ username, problem }: LoginAttempt) => username === terminalCode && problem !== undefined;
  return waitForContact(
    {
      missing: `no hello of ${terminalCode}`,
      fix: 'check the address in the box, that both are in one network, and that no firewall is between them',
      isThere: () => gateway.session !== undefined || gateway.logins.filter(isWrong).length >= WRONG_LOGINS_MAX,
      hasFailed: () => gateway.log.violations.some(({ clause }) => clause !== 'TOP-2'),
      progress: () => progressOf(gateway),
    },
    wait,
  );
}

function progressOf({ session, transport, logins, log, mqtt, http }: ScriptedGateway): string {
  if (session !== undefined) return `the box is there, over ${transport}`;
  const last = logins.at(-1);
  const connections = mqtt.connectionCount + http.connectionCount;
  if (last === undefined)
    return connections === 0 ? 'nothing has connected' : `${connections} connections, but no login`;
  if (last.problem !== undefined) return `a login was refused: ${last.problem}`;
  return `${last.username} logged in, but has not said hello${log.lastViolation}`;
}
