import type { BoxClient } from '../../bench/clients/box.ts';
import type { Capture } from '../../bench/target.ts';
import { waitUntilRight } from '../../bench/test-time.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { FaultName } from '../../protocol/faults.ts';
import { type Check, type CheckRun, Mismatch, PreconditionFailed } from '../check.ts';
import { type Body, GatewayTranscript } from './gateway-transcript.ts';
import type { BoxNeed, BoxSubject } from './subject.ts';

/** Longest time that a payment or another announcement takes on the screen of any box. */
export const ANNOUNCEMENT_MAX_MS = 30_000;
/** A QR must be gone after this time. A camera picture may be a moment old. */
const GONE_MS = 5_000;
/** Time for which a QR that must stay is watched. */
const STAYS_MS = 2_500;
/** When a QR has stayed for this time, no payment waits for the screen any more. */
const UNDISTURBED_MS = 4_000;
/** Interval of pictures of the screen. */
const LOOK_MS = 500;
const STAYS_AWAY_LOOK_MS = 2_000;
/** Longest time until a box notices the end of a fault. */
const FAULT_OVER_MS = 40_000;

/** Everything that a check of a box works with: the messages, the screen, the box's own pages, and faults. */
export class CheckContext extends GatewayTranscript {
  readonly #faults: string[] = [];

  override async tearDown(isFailed: boolean): Promise<void> {
    await this.endFaults();
    await super.tearDown(isFailed);
  }

  /** Calls the pages of the box. Throws PreconditionFailed when they do not answer. */
  async #askPages<T>(ask: (pages: BoxClient) => Promise<T>): Promise<T> {
    const { pages } = this.subject.controls;
    if (pages === undefined) throw new PreconditionFailed('needs the pages of the box');
    return this.time
      .inRealTime(() => ask(pages))
      .catch((error: unknown) => {
        throw new PreconditionFailed(`the pages of the box do not answer: ${reasonOf(error)}`, error);
      });
  }

  /** Presses the key that clears the screen. */
  pressDismiss(): Promise<void> {
    return this.#askPages((pages) => pages.press('dismiss'));
  }

  /**
   * Number of payments that the box has announced aloud since its start. Throws PreconditionFailed for a box that does
   * not count them.
   */
  async announcements(): Promise<number> {
    const count = await this.#askPages((pages) => pages.announcements());
    if (count !== undefined) return count;
    throw new PreconditionFailed('the box does not count what it says aloud: its /metrics lack that');
  }

  /** Whether the text is on the screen. */
  async hasText(words: string): Promise<boolean> {
    const text = await this.#askPages((pages) => pages.text());
    this.run.evidence.add('status', 'text on the screen', { detail: text });
    return text.includes(words);
  }

  async expectText(words: string, withinMs = ANNOUNCEMENT_MAX_MS): Promise<void> {
    if (!(await this.#waitForText(words, true, withinMs))) throw new Mismatch(`the screen does not say ${words}`);
  }

  /** Throws Mismatch when the text is still on the screen after this time. */
  async expectTextGone(words: string, withinMs = ANNOUNCEMENT_MAX_MS): Promise<void> {
    if (await this.#waitForText(words, false, withinMs)) throw new Mismatch(`the screen still says ${words}`);
  }

  /**
   * Waits for the text, then for its end. Returns how long it was on the screen, in milliseconds; 0 if it never came.
   */
  async textDurationMs(words: string, withinMs = ANNOUNCEMENT_MAX_MS): Promise<number> {
    if (!(await this.#waitForText(words, true, withinMs))) return 0;
    const beganMs = this.nowMs;
    await this.#waitForText(words, false, ANNOUNCEMENT_MAX_MS);
    return this.nowMs - beganMs;
  }

  async #waitForText(words: string, isWanted: boolean, withinMs: number): Promise<boolean> {
    return this.#poll(
      () => this.hasText(words),
      (isThere) => isThere === isWanted,
      withinMs,
    );
  }

  /** Injects a fault into the box. It lasts until the check ends or the box restarts. */
  async injectFault(fault: FaultName): Promise<void> {
    this.run.step(`injects the fault ${fault}`);
    const { id } = await this.#askPages((pages) => pages.orderFault({ fault }));
    this.#faults.push(id);
  }

  /** Ends the injected faults, and waits until the box has noticed that. */
  async endFaults(): Promise<void> {
    const ids = this.#faults.splice(0);
    if (ids.length === 0) return;
    const look = async () => {
      const { fault } = await this.#askPages((pages) => pages.status());
      return (fault ?? null) === null ? undefined : 'it has a fault';
    };
    for (const id of ids) await this.#askPages((pages) => pages.endFault(id));
    await waitUntilRight(this.time, FAULT_OVER_MS, look, this.run.signal);
  }

  /** Pushes an order and sees its QR on the screen. Throws PreconditionFailed otherwise: another check judges that. */
  async qrShown(order = this.order()): Promise<Body<'show'>> {
    await this.pushShown(order);
    await this.precondition('a QR that can be seen', () => this.expectQr(order, ANNOUNCEMENT_MAX_MS));
    return order;
  }

  /** As `qrShown`, and waits until no earlier payment can cover the QR any more (PROTOCOL.md, clause AGT-12). */
  async qrUndisturbed(): Promise<Body<'show'>> {
    const order = await this.qrShown();
    let sinceMs = this.nowMs;
    await this.precondition('a QR that stays on the screen', async () => {
      const seen = await this.#waitForQr(2 * ANNOUNCEMENT_MAX_MS, (qr) => {
        if (qr !== order.qrCode) sinceMs = this.nowMs;
        return this.nowMs - sinceMs >= UNDISTURBED_MS;
      });
      if (seen !== order.qrCode) throw new Mismatch('other screens cover it');
    });
    return order;
  }

  /** Takes a picture of the screen and decodes its QR. Throws PreconditionFailed when the probe fails. */
  async #look(): Promise<Capture | undefined> {
    const seen = await this.time
      .inRealTime(async () => this.subject.controls.see?.())
      .catch((error: unknown) => {
        throw new PreconditionFailed(`the screen cannot be seen: ${reasonOf(error)}`, error);
      });
    if (seen !== undefined) this.run.evidence.addScreen(this.subject.identity.terminalCode, seen.file, seen.qr);
    return seen;
  }

  /** Throws Mismatch unless the QR of the order is on the screen within this time. */
  async expectQr({ qrCode }: Body<'show'>, withinMs = 0): Promise<void> {
    const seen = await this.#waitForQr(withinMs, (qr) => qr === qrCode);
    if (seen === qrCode) return;
    throw new Mismatch(`the screen shows ${seen === undefined ? 'no QR' : `the QR ${seen}`}, expected ${qrCode}`);
  }

  /** Whether the QR of the order can be read. Throws PreconditionFailed for another QR, which other checks judge. */
  async isQrReadable({ qrCode }: Body<'show'>): Promise<boolean> {
    const seen = await this.#waitForQr(ANNOUNCEMENT_MAX_MS, (qr) => qr !== undefined);
    if (seen !== undefined && seen !== qrCode) throw new PreconditionFailed('the screen shows another QR');
    return seen !== undefined;
  }

  /** Throws Mismatch when the QR of the order is still on the screen after this time. */
  async expectQrGone({ qrCode }: Body<'show'>, withinMs = GONE_MS): Promise<void> {
    const seen = await this.#waitForQr(withinMs, (qr) => qr !== qrCode);
    if (seen === qrCode) throw new Mismatch('the QR is still on the screen');
  }

  /** Throws Mismatch when the QR of the order comes back within this time. */
  async expectQrStaysAway({ qrCode }: Body<'show'>, forMs: number): Promise<void> {
    const seen = await this.#waitForQr(forMs, (qr) => qr === qrCode, STAYS_AWAY_LOOK_MS);
    if (seen === qrCode) throw new Mismatch('the QR came back');
  }

  /** Throws Mismatch with this message when the QR of the order disappears within a short time. */
  async expectQrStays({ qrCode }: Body<'show'>, message: string): Promise<void> {
    const seen = await this.#waitForQr(STAYS_MS, (qr) => qr !== qrCode);
    if (seen !== qrCode) throw new Mismatch(message);
  }

  #waitForQr(withinMs: number, isRight: (qr: string | undefined) => boolean, lookMs?: number) {
    return this.#poll(async () => (await this.#look())?.qr, isRight, withinMs, lookMs);
  }

  /** Calls `look` until the value is right or the time is over. Returns the last value. */
  async #poll<T>(look: () => Promise<T>, isRight: (value: T) => boolean, withinMs: number, lookMs = LOOK_MS) {
    const endMs = this.nowMs + withinMs;
    const pause = this.time.pollDelay({ pauseMs: lookMs });
    for (;;) {
      this.run.signal.throwIfAborted();
      const value = await look();
      if (isRight(value) || this.nowMs >= endMs) return value;
      await pause(lookMs);
    }
  }
}

/** Between gateway and box PROTOCOL.md is the only source: no clause there fills a gap of the service specification. */
const LEVEL = 'spec';
/** For answers, two reconnections and a slow box. */
const TIMEOUT_MS = 180_000;

export type BoxCheck = Check<BoxSubject, BoxNeed>;
type Judge = (t: CheckContext) => Promise<void>;

/** A check of an idle box in a session. */
export function boxCheck(
  clause: string,
  title: string,
  ...[first, second]: [Judge] | [readonly BoxNeed[], Judge]
): BoxCheck {
  const [needs, judge] = typeof first === 'function' ? [[], first] : [first, second as Judge];
  const run = async (checkRun: CheckRun<BoxSubject>) => {
    const t = new CheckContext(checkRun);
    await t.setUp();
    try {
      await judge(t);
    } catch (error) {
      await t.tearDown(true);
      throw error;
    }
    await t.tearDown(false);
  };
  return { clause, title, level: LEVEL, needs, timeoutMs: TIMEOUT_MS, run };
}

/** A check that passes if the box violated this clause in none of the earlier checks. */
export function noViolation(clause: string, title: string, ...needs: BoxNeed[]): BoxCheck {
  const run = async ({ subject: { gateway } }: CheckRun<BoxSubject>) => {
    const violations = gateway.violations.filter((it) => it.clause === clause).map(({ what }) => what);
    if (violations.length > 0) throw new Mismatch(violations.slice(0, 5).join('; '));
    if (gateway.sessions.length === 0) throw new PreconditionFailed('the box has not been in a session');
  };
  return { clause, title, level: LEVEL, needs, run };
}
