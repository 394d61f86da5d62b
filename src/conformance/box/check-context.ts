import type { Capture } from '../../bench/target.ts';
import { reasonOf } from '../../lib/errors.ts';
import { type Check, type CheckRun, Mismatch, PreconditionFailed } from '../check.ts';
import { ANNOUNCEMENT_MAX_MS, amountsIn, BoxPages, ifTold } from './box-pages.ts';
import type { Body } from './gateway-transcript.ts';
import type { BoxNeed, BoxSubject } from './subject.ts';

/** A QR must be gone after this time. A camera picture may be a moment old. */
const GONE_MS = 5_000;
/** Time for which a QR that must stay is watched. */
const STAYS_MS = 2_500;
/** When a QR has stayed for this time, no payment waits for the screen any more. */
const UNDISTURBED_MS = 4_000;
const STAYS_AWAY_LOOK_MS = 2_000;
/** Everything that a check of a box works with: the messages, the screen, the box's own pages, and faults. */
export class CheckContext extends BoxPages {
  /** Throws Mismatch unless the box is idle within this time, and nothing of the order is on its screen. */
  async expectIdle({ content, amount }: Pick<Body<'show'>, 'content' | 'amount'>, withinMs: number): Promise<void> {
    const problem = async () => {
      const { state } = await this.askPages((pages) => pages.status());
      const text = await this.askPages((pages) => pages.text());
      if (text.includes(content) || amountsIn(text).includes(amount)) return `its screen still says ${content}`;
      return state === 'idle' ? undefined : `its state is ${state}`;
    };
    const left = await this.poll(problem, (why) => why === undefined, withinMs);
    if (left !== undefined) throw new Mismatch(`the box is not idle within ${withinMs / 1000} s: ${left}`);
    const isQr = await ifTold(async () => (await this.#look())?.qr !== undefined);
    if (isQr === true) throw new Mismatch('a QR is on the screen of an idle box');
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

  /**
   * Pushes an order, and looks at the screen at the moment when the box reports it as shown. Throws Mismatch when its QR
   * is not there by then.
   */
  async expectQrAtShown(order = this.order()): Promise<void> {
    const { gateway } = this;
    let picture: Promise<Capture | undefined> | undefined;
    gateway.onMessage = (message) => {
      if (message.type !== 'shown' || message.pushId !== order.pushId) return;
      picture ??= this.#look();
      picture.catch(() => undefined);
    };
    try {
      await this.pushShown(order);
    } finally {
      gateway.onMessage = undefined;
    }
    const qr = (await picture)?.qr;
    if (qr === order.qrCode) return;
    throw new Mismatch(`when shown came in, the screen had ${qr === undefined ? 'no QR' : `the QR ${qr}`}`);
  }

  /** Whether the QR of the order is on the screen now; false where nobody sees it. */
  async isQrSeen({ qrCode }: Body<'show'>): Promise<boolean> {
    return (await ifTold(async () => (await this.#look())?.qr === qrCode)) ?? false;
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
    return this.poll(async () => (await this.#look())?.qr, isRight, withinMs, lookMs);
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
