import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { CODES } from '../../protocol/codes.ts';
import type { UpMessage } from '../../protocol/messages.ts';
import type { BoxConnection } from './connection.ts';
import { type Session, sendTo } from './session.ts';

/** An agent whose session is not in use is told so again after this, not for each of its messages. */
const AGAIN_MS = 5_000;
/** Sessions that are remembered as told; of more, the one that was told first is forgotten. */
const TOLD_MAX = 1_000;

interface Deps {
  clock: Clock;
  random: Random;
  log: Logger;
}

/**
 * Answers agents that speak in a session that is not in use (PROTOCOL.md, clauses MSG-8 and MSG-12). Only what a box
 * has sealed comes here, so that nobody else can have it told anything.
 */
export class StaleSessions {
  readonly #deps: Deps;
  /** When each was told last, by box and session, the one that was told first before the others. */
  readonly #toldMs = new Map<string, number>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Tells who said this what became of its session, while another one is `inUse`, or none. */
  answer(terminalCode: string, line: BoxConnection, { type, sessionId }: UpMessage, inUse: Session | undefined): void {
    const { log, clock } = this.#deps;
    log.warn('message-refused', { box: terminalCode, type, reason: 'not of the session in use' });
    const [key, nowMs] = [`${terminalCode} ${sessionId}`, clock.monotonicMs()];
    if (nowMs - (this.#toldMs.get(key) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return;
    this.#toldMs.delete(key);
    this.#toldMs.set(key, nowMs);
    const [first] = this.#toldMs.keys();
    if (this.#toldMs.size > TOLD_MAX && first !== undefined) this.#toldMs.delete(first);
    const isSuperseded = inUse !== undefined && inUse.sessionId !== sessionId;
    this.refuse({ connection: line, sessionId }, isSuperseded ? 'SUPERSEDED' : 'SESSION_ENDED');
  }

  refuse(agent: Pick<Session, 'connection' | 'sessionId'>, code: 'SUPERSEDED' | 'SESSION_ENDED'): void {
    const cure = code === 'SUPERSEDED' ? ': end that one, and this one comes back by itself' : '';
    sendTo(agent, { type: 'refused', code, reason: `${CODES[code]}${cure}` }, this.#deps);
  }
}
