import type { Capture } from '../../engine/target.ts';
import { type Check, type CheckRun, Mismatch, PreconditionFailed, type Prepared } from '../check.ts';
import { amountsIn } from './amounts-in.ts';
import { ANNOUNCEMENT_MAX_MS, ifTold } from './box-pages.ts';
import type { Session } from './gateway/scripted-gateway.ts';
import { type Body, GatewayTranscript } from './gateway-transcript.ts';
import { type BoxNeed, type BoxSubject, RETURN_MS } from './subject.ts';

/** When a QR has stayed for this time, no payment waits for the screen any more. */
const UNDISTURBED_MS = 4_000;

/** Everything that a check of a box works with: the messages, the screen, the box's own pages, and faults. */
export class CheckContext extends GatewayTranscript {
  /** Waits for the next session. Throws Mismatch when no hello comes in time. */
  async nextSession(after: Session | undefined, withinMs = RETURN_MS): Promise<Session> {
    await this.until('a new hello', withinMs, () => ![after, undefined].includes(this.gateway.session));
    const { session } = this.gateway;
    if (session === undefined) throw new Mismatch('no hello came');
    return session;
  }

  /** Breaks the connection, and waits until the box is back. */
  async reconnect(): Promise<Session> {
    const { session } = this.gateway;
    this.gateway.cut();
    return this.precondition('a box that comes back', () => this.nextSession(session));
  }

  async restart(): Promise<Session> {
    const { session } = this.gateway;
    this.run.step('restarts the box');
    await this.subject.controls.restart?.();
    return this.precondition('a box that comes back', () => this.nextSession(session, 2 * RETURN_MS));
  }

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
    const isQr = await ifTold(async () => (await this.look())?.qr !== undefined);
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
      const seen = await this.waitForQr(2 * ANNOUNCEMENT_MAX_MS, (qr) => {
        if (qr !== order.qrCode) sinceMs = this.nowMs;
        return this.nowMs - sinceMs >= UNDISTURBED_MS;
      });
      if (seen !== order.qrCode) throw new Mismatch('other screens cover it');
    });
    return order;
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
      picture ??= this.look();
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
}

/** Between gateway and box PROTOCOL.md is the only source: no clause there fills a gap of the service specification. */
const LEVEL = 'spec';
/** For answers, two reconnections and a slow box. */
const TIMEOUT_MS = 180_000;

export type BoxCheck = Check<BoxSubject, BoxNeed, CheckContext>;
type Judge = (t: CheckContext) => Promise<void>;

async function idleBox(run: CheckRun<BoxSubject>): Promise<Prepared<CheckContext>> {
  const context = new CheckContext(run);
  await context.setUp();
  return { context, tearDown: (isFailed) => context.tearDown(isFailed) };
}

/** A check of an idle box in a session. */
export function boxCheck(
  clause: string,
  title: string,
  ...[first, second]: [Judge] | [readonly BoxNeed[], Judge]
): BoxCheck {
  const [needs, judge] = typeof first === 'function' ? [[], first] : [first, second as Judge];
  return { clause, title, level: LEVEL, needs, timeoutMs: TIMEOUT_MS, setUp: idleBox, run: judge };
}

/** A check that passes if the box violated this clause in none of the earlier checks. */
export function noViolation(clause: string, title: string, ...needs: BoxNeed[]): BoxCheck {
  const setUp = async (run: CheckRun<BoxSubject>) => ({ context: new CheckContext(run) });
  const run = async ({ gateway }: CheckContext) => {
    const violations = gateway.violations.filter((it) => it.clause === clause).map(({ what }) => what);
    if (violations.length > 0) throw new Mismatch(violations.slice(0, 5).join('; '));
    if (gateway.sessions.length === 0) throw new PreconditionFailed('the box has not been in a session');
  };
  return { clause, title, level: LEVEL, needs, setUp, run };
}
