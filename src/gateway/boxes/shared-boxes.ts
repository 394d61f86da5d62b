import { lookRegularly } from '../common/shared-work.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Hub } from './hub.ts';

/** Sessions are compared with the rows at every fifth look. */
const LOOKS_PER_COMPARISON = 5;
/** How many boxes one query names. */
const BOXES_MAX = 500;
/** A notice that was marked as sent is looked for from this age on: until then its gateway sends it. */
const SENT_AFTER_MS = 1_000;
/** A box that has moved while a notice was stored is found within this time. */
const SENT_WITHIN_MS = 30_000;

/**
 * Finds in the rows what other gateways have changed: boxes that they have taken, and withdrawals and payments for the
 * boxes here. They say so by hints, too, but a hint may be lost. Also fails the pushes for which nobody waits any more.
 */
export class SharedBoxes {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #hub: Hub;
  readonly #over = new AbortController();
  #looks = 0;
  #looking: Promise<void> = Promise.resolve();

  constructor(world: World, stored: Stored, hub: Hub) {
    this.#world = world;
    this.#stored = stored;
    this.#hub = hub;
  }

  /** Looks every second, if the store is shared. */
  start(): void {
    this.#looking = lookRegularly(this.#world, 'boxes', this.#over.signal, () => this.#look());
  }

  /** Settles once no look reads the store any more. */
  async close(): Promise<void> {
    this.#over.abort();
    await this.#looking;
  }

  /** Ends the session of a box here if this one, at another gateway, has replaced it. */
  replaced(terminalCode: string, sessionId: string): void {
    void this.#hub.ends.lost(terminalCode, async (session) => {
      if (session.sessionId === sessionId) return undefined;
      // The hint may be late, and the box here again.
      return (await this.#world.place.elsewhere(terminalCode)) && 'SUPERSEDED';
    });
  }

  /** Returns whether this session is here and its agent may still be there. */
  hasHeard(terminalCode: string, sessionId: string): boolean {
    const session = this.#hub.session(terminalCode);
    return session?.sessionId === sessionId && session.isAlive;
  }

  /** Makes the next look compare the sessions, because hints may have been lost. */
  mayHaveMissed(): void {
    this.#looks = 0;
  }

  async #look(): Promise<void> {
    const isForAll = this.#looks % LOOKS_PER_COMPARISON === 0;
    this.#looks += 1;
    if (isForAll) await this.#endLost();
    await this.#deliver();
    await this.#hub.pushes.failStale();
  }

  async #endLost(): Promise<void> {
    const { place } = this.#world;
    // A session that begins meanwhile is not among these.
    const held = new Map(this.#hub.sessions);
    for (const code of await place.lost(held)) {
      void this.#hub.ends.lost(code, async (session) => {
        if (session !== held.get(code)) return undefined;
        return (await place.elsewhere(code)) === undefined ? 'SESSION_ENDED' : 'SUPERSEDED';
      });
    }
  }

  async #deliver(): Promise<void> {
    const { pushes } = this.#stored.store;
    const { sessions } = this.#hub;
    const codes = [...sessions.keys()];
    for (let at = 0; at < codes.length; at += BOXES_MAX) {
      const asked = codes.slice(at, at + BOXES_MAX);
      const nowMs = this.#world.clock.wallMs();
      const sent = { fromMs: nowMs - SENT_WITHIN_MS, toMs: nowMs - SENT_AFTER_MS };
      const waiting = [...(await pushes.toWithdrawAmong(asked)), ...(await pushes.unreportedAmong(asked, sent))];
      const unsent = waiting.filter((it) => sessions.get(it.terminal_code)?.isUnanswered(it.id) === false);
      this.#hub.deliver(new Set(unsent.map((it) => it.terminal_code)));
      const asking = { fromMs: nowMs - this.#world.config.confirmTimeoutMs, toMs: nowMs - SENT_AFTER_MS };
      for (const { push, order } of await pushes.unansweredAmong(asked, asking))
        this.#hub.pushes.showMissed(push, order);
    }
  }
}
