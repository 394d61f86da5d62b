import type { BoxClient } from '../../bench/clients/box.ts';
import type { Capture } from '../../bench/probes.ts';
import { waitUntilRight } from '../../bench/steps/waiting.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { FaultName } from '../../protocol/faults.ts';
import { Mismatch, PreconditionFailed } from '../check.ts';
import { type Body, Hearing } from './gateway-transcript.ts';

/** The longest that a notice, as of a payment, may have the screen of a box that is judged. */
export const NOTICE_MAX_MS = 30_000;
/** A QR that has to go is gone within this: a picture of a camera may be of a moment before. */
const GONE_MS = 5_000;
/** A QR that has to stay is looked at for so long. */
const STAYS_MS = 2_500;
/** No payment waits for the screen any more when it has stayed for so long. */
const ALONE_MS = 4_000;
/** Between two looks at the screen. */
const LOOK_MS = 500;
const AWAY_LOOK_MS = 2_000;

/** A box whose fault is over knows that within this. */
const HEALED_MS = 40_000;
/** What a key does is done within this. */
export const KEY_MS = 5_000;

/** One check as it goes, with what can be seen of the box, and done to it. */
export class Trial extends Hearing {
  readonly #faults: string[] = [];

  override async end(isFailed: boolean): Promise<void> {
    await this.healed();
    await super.end(isFailed);
  }

  get #pages(): BoxClient {
    const { pages } = this.subject.hands;
    if (pages === undefined) throw new PreconditionFailed('needs the pages of the box');
    return pages;
  }

  /** Asks the box itself. Throws Unmet when it does not answer. */
  async #asked<T>(ask: (pages: BoxClient) => Promise<T>): Promise<T> {
    const pages = this.#pages;
    return this.time
      .inRealTime(() => ask(pages))
      .catch((error: unknown) => {
        throw new PreconditionFailed(`the pages of the box do not answer: ${reasonOf(error)}`, error);
      });
  }

  /** Presses the key that takes away what is on the screen. */
  dismiss(): Promise<void> {
    return this.#asked((pages) => pages.press('dismiss'));
  }

  /** How many payments the box has said aloud since it started. Throws Unmet for one that does not count them. */
  async announcements(): Promise<number> {
    const count = await this.#asked((pages) => pages.announcements());
    if (count === undefined)
      throw new PreconditionFailed('the box does not count what it says aloud: its /metrics lack that');
    return count;
  }

  /** Whether the screen says it, by its words. */
  async says(words: string): Promise<boolean> {
    const text = await this.#asked((pages) => pages.text());
    this.run.evidence.add('status', 'the screen says', { detail: text });
    return text.includes(words);
  }

  /** Throws Mismatch unless the screen says it in time. */
  async expectSaid(words: string, withinMs = NOTICE_MAX_MS): Promise<void> {
    if (!(await this.#saidUntil(words, true, withinMs))) throw new Mismatch(`the screen does not say ${words}`);
  }

  /** Throws Mismatch when the screen still says it after that time. */
  async expectUnsaid(words: string, withinMs = NOTICE_MAX_MS): Promise<void> {
    if (await this.#saidUntil(words, false, withinMs)) throw new Mismatch(`the screen still says ${words}`);
  }

  /** For how long the screen says it from when it does first, in milliseconds; 0 when it never does. */
  async saidForMs(words: string, withinMs = NOTICE_MAX_MS): Promise<number> {
    if (!(await this.#saidUntil(words, true, withinMs))) return 0;
    const beganMs = this.nowMs;
    await this.#saidUntil(words, false, NOTICE_MAX_MS);
    return this.nowMs - beganMs;
  }

  async #saidUntil(words: string, isSaid: boolean, withinMs: number): Promise<boolean> {
    const endMs = this.nowMs + withinMs;
    for (;;) {
      this.run.signal.throwIfAborted();
      const said = await this.says(words);
      if (said === isSaid || this.nowMs >= endMs) return said;
      await this.time.wait(LOOK_MS);
    }
  }

  /** Orders a fault of the box, until the check or the box ends. */
  async fault(fault: FaultName): Promise<void> {
    this.run.step(`orders the fault ${fault}`);
    const { id } = await this.#asked((pages) => pages.orderFault({ fault }));
    this.#faults.push(id);
  }

  /** Ends the faults that were ordered, and waits until the box has noticed. */
  async healed(): Promise<void> {
    const ids = this.#faults.splice(0);
    if (ids.length === 0) return;
    const look = async () => {
      const { fault } = await this.#asked((pages) => pages.status());
      return (fault ?? null) === null ? undefined : 'it has a fault';
    };
    for (const id of ids) await this.#asked((pages) => pages.endFault(id));
    await waitUntilRight(this.time, HEALED_MS, look, this.run.signal);
  }

  /** An order whose QR can be seen. Throws Unmet when it cannot: another check judges that. */
  async onScreen(order = this.order()): Promise<Body<'show'>> {
    await this.shown(order);
    await this.given('a QR that can be seen', () => this.qrIsThere(order, NOTICE_MAX_MS));
    return order;
  }

  /** The same, once payments of before, which come over a new QR, have had their time (PROTOCOL.md, clause AGT-12). */
  async alone(): Promise<Body<'show'>> {
    const order = await this.onScreen();
    let sinceMs = this.nowMs;
    await this.given('a QR that stays on the screen', async () => {
      const seen = await this.#seenUntil(2 * NOTICE_MAX_MS, (qr) => {
        if (qr !== order.qrCode) sinceMs = this.nowMs;
        return this.nowMs - sinceMs >= ALONE_MS;
      });
      if (seen !== order.qrCode) throw new Mismatch('other screens come over it');
    });
    return order;
  }

  /** What is on the screen. Throws Unmet when whoever looks cannot. */
  async see(): Promise<Capture | undefined> {
    const seen = await this.time
      .inRealTime(async () => this.subject.hands.see?.())
      .catch((error: unknown) => {
        throw new PreconditionFailed(`the screen cannot be seen: ${reasonOf(error)}`, error);
      });
    if (seen !== undefined) this.run.evidence.addScreen(this.subject.identity.terminalCode, seen.file, seen.qr);
    return seen;
  }

  /** Throws Mismatch unless the QR of the order is on the screen in time; at once unless told otherwise. */
  async qrIsThere({ qrCode }: Body<'show'>, withinMs = 0): Promise<void> {
    const seen = await this.#seenUntil(withinMs, (qr) => qr === qrCode);
    if (seen === qrCode) return;
    throw new Mismatch(`the screen shows ${seen === undefined ? 'no QR' : `the QR ${seen}`}, expected ${qrCode}`);
  }

  /** Whether there is a QR at all; that it is the right one is asked elsewhere. */
  async isReadable(order: Body<'show'>): Promise<boolean> {
    const seen = await this.#seenUntil(NOTICE_MAX_MS, (qr) => qr !== undefined);
    if (seen !== undefined && seen !== order.qrCode) throw new PreconditionFailed('the screen shows another QR');
    return seen !== undefined;
  }

  /** Throws Mismatch when the QR of the order is still there after a while. */
  async qrIsGone({ qrCode }: Body<'show'>, withinMs = GONE_MS): Promise<void> {
    const seen = await this.#seenUntil(withinMs, (qr) => qr !== qrCode);
    if (seen === qrCode) throw new Mismatch('the QR is still on the screen');
  }

  /** Throws Mismatch when the QR of the order is there at any time of a while. */
  async qrStaysAway({ qrCode }: Body<'show'>, forMs: number): Promise<void> {
    const seen = await this.#seenUntil(forMs, (qr) => qr === qrCode, AWAY_LOOK_MS);
    if (seen === qrCode) throw new Mismatch('the QR came back');
  }

  /** Throws Mismatch when the QR of the order is away at any time of a while. */
  async qrStays({ qrCode }: Body<'show'>, otherwise: string): Promise<void> {
    const seen = await this.#seenUntil(STAYS_MS, (qr) => qr !== qrCode);
    if (seen !== qrCode) throw new Mismatch(otherwise);
  }

  /** Looks until the QR on the screen is right, for so long at most; the last one that was seen. */
  async #seenUntil(
    withinMs: number,
    isRight: (qr: string | undefined) => boolean,
    lookMs = LOOK_MS,
  ): Promise<string | undefined> {
    const endMs = this.nowMs + withinMs;
    for (;;) {
      this.run.signal.throwIfAborted();
      const qr = (await this.see())?.qr;
      if (isRight(qr) || this.nowMs >= endMs) return qr;
      await this.time.wait(lookMs);
    }
  }
}
