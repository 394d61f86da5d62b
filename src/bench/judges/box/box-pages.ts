import { z } from 'zod';
import { reasonOf } from '../../../lib/errors.ts';
import type { FaultName } from '../../../protocol/faults.ts';
import type { BoxClient } from '../../engine/clients/box.ts';
import type { Capture } from '../../engine/target.ts';
import type { TestTime } from '../../engine/test-time.ts';
import { type CheckRun, ifKnown, Mismatch, PreconditionFailed } from '../check.ts';
import { amountsIn } from './amounts-in.ts';
import type { BoxControls } from './subject.ts';

/** Longest time that a payment or another announcement takes on the screen of any box. */
export const ANNOUNCEMENT_MAX_MS = 30_000;
/** Interval of pictures of the screen. */
const LOOK_MS = 500;
/** Longest time until a box works again after a fault. */
const FAULT_OVER_MS = 40_000;
/** Time within which the text of a screen follows a report. */
const AMOUNT_MS = 5_000;
/** Time for what a box does after its answer. */
export const LINGER_MS = 500;

const saidAloud = z.looseObject({ said: z.int(), words: z.string().nullable() });

/** A QR must be gone after this time. A camera picture may be a moment old. */
const GONE_MS = 5_000;
/** The bench watches for this time that a QR stays. */
const STAYS_MS = 2_500;
const STAYS_AWAY_LOOK_MS = 2_000;
/** A box counts a sentence at its end, which takes less than this. */
const SENTENCE_MS = 10_000;
/** A box that says a payment twice begins again within this time. */
const SAYING_MS = 3_000;

/** The QR of an order. */
type SeenQr = { qrCode: string };

/** A box with its screen, its own pages, and the faults that can be injected there. */
export interface SeenBox {
  readonly identity: { readonly terminalCode: string };
  readonly time: TestTime;
  readonly controls: BoxControls;
}

/** Looks at the screen of a box, calls its pages and orders faults there, whatever the box speaks to its gateway. */
export class BoxPages {
  readonly #run: CheckRun<SeenBox>;
  readonly #faults: string[] = [];

  constructor(run: CheckRun<SeenBox>) {
    this.#run = run;
  }

  get #controls(): BoxControls {
    return this.#run.subject.controls;
  }

  get #time(): TestTime {
    return this.#run.subject.time;
  }

  get #nowMs(): number {
    return this.#time.clock.monotonicMs();
  }

  /** Calls the pages of the box. Throws PreconditionFailed when they do not answer. */
  async #askPages<T>(ask: (pages: BoxClient) => Promise<T>): Promise<T> {
    const { pages } = this.#controls;
    if (pages === undefined) throw new PreconditionFailed('needs the pages of the box');
    return this.#time
      .inRealTime(() => ask(pages))
      .catch((error: unknown) => {
        throw new PreconditionFailed(`the pages of the box do not answer: ${reasonOf(error)}`, error);
      });
  }

  status() {
    return this.#askPages((pages) => pages.status());
  }

  /** Presses the key that clears the screen. */
  pressDismiss(): Promise<void> {
    return this.#askPages((pages) => pages.press('dismiss'));
  }

  /**
   * Returns the number of payments that the box has announced aloud since its start. Throws PreconditionFailed for a
   * box that does not count them.
   */
  async announcements(): Promise<number> {
    const count = await this.#askPages((pages) => pages.announcements());
    if (count !== undefined) return count;
    throw new PreconditionFailed('the box does not count what it says aloud: its /metrics lack that');
  }

  /** Returns what the box has said aloud. Throws PreconditionFailed for a box whose status lacks that. */
  async saidAloud(): Promise<{ said: number; words: string | null }> {
    const { voice } = await this.status();
    const told = saidAloud.safeParse(voice);
    if (told.success) return told.data;
    throw new PreconditionFailed(
      'the box does not tell what it says aloud: its /status lacks voice.said and voice.words',
    );
  }

  /** Waits until the box has said aloud what it announced so far. Returns the number of payments that it has said. */
  async saidSoFar(): Promise<number> {
    const announced = await ifKnown(() => this.announcements());
    let last = -1;
    let sinceMs = this.#nowMs;
    const isOver = ({ said }: { said: number }) => {
      if (said !== last) sinceMs = this.#nowMs;
      last = said;
      return said === announced || this.#nowMs - sinceMs >= SENTENCE_MS;
    };
    return (await this.#poll(() => this.saidAloud(), isOver, 2 * ANNOUNCEMENT_MAX_MS)).said;
  }

  /** Throws Mismatch unless the box says one more payment aloud, with these words and only once. */
  async expectWords(words: string, before: number): Promise<void> {
    const look = () => this.saidAloud();
    await this.#poll(look, ({ said }) => said > before, ANNOUNCEMENT_MAX_MS);
    const now = await this.#poll(look, ({ said }) => said > before + 1, SAYING_MS);
    if (now.said !== before + 1) throw new Mismatch(`the box has said ${now.said - before} payments aloud, expected 1`);
    if (!(now.words ?? '').toLowerCase().includes(words)) {
      throw new Mismatch(`the box has said "${now.words}", expected ${words}`);
    }
  }

  /** Returns `announcements`; undefined for a box that does not count them. */
  async announcementsIfTold(): Promise<number | undefined> {
    return this.#controls.pages && ifKnown(() => this.announcements());
  }

  /** Returns true if the text is on the screen; false for a box without pages. */
  async hasTextIfTold(words: string): Promise<boolean> {
    return (await (this.#controls.pages && ifKnown(() => this.hasText(words)))) ?? false;
  }

  /** Throws Mismatch unless the box comes to this number of announcements, and stays there. */
  async expectAnnouncements(count: number): Promise<void> {
    const look = () => this.announcements();
    const reached = await this.#poll(look, (now) => now >= count, ANNOUNCEMENT_MAX_MS);
    const now = reached === count ? await this.#poll(look, (later) => later !== count, LINGER_MS) : reached;
    if (now !== count) throw new Mismatch(`the box has announced ${now} payments, expected ${count}`);
  }

  /** Throws Mismatch unless the screen names this amount in whole đồng, and not a longer or another number. */
  async expectAmount(amount: number, withinMs = AMOUNT_MS): Promise<void> {
    const text = () => this.#askPages((pages) => pages.text());
    const seen = await this.#poll(text, (now) => amountsIn(now).includes(amount), withinMs);
    this.#run.evidence.add('status', 'text on the screen', { detail: seen });
    const amounts = amountsIn(seen);
    if (amounts.includes(amount)) return;
    const instead = amounts.length === 0 ? 'no amount' : amounts.join(' and ');
    throw new Mismatch(`the screen says ${instead}, expected ${amount} đồng`);
  }

  /** Returns true if the text is on the screen. */
  async hasText(words: string): Promise<boolean> {
    const text = await this.#askPages((pages) => pages.text());
    this.#run.evidence.add('status', 'text on the screen', { detail: text });
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
    const beganMs = this.#nowMs;
    await this.#waitForText(words, false, ANNOUNCEMENT_MAX_MS);
    return this.#nowMs - beganMs;
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
    this.#run.step(`injects the fault ${fault}`);
    const { id } = await this.#askPages((pages) => pages.orderFault({ fault }));
    this.#faults.push(id);
  }

  /** Ends the injected faults, and waits until the box works again. */
  async endFaults(): Promise<void> {
    const ids = this.#faults.splice(0);
    if (ids.length === 0) return;
    for (const id of ids) await this.#askPages((pages) => pages.endFault(id));
    await this.#run.isSoon(FAULT_OVER_MS, async () => ((await this.status()).fault ?? null) === null);
  }

  /** Throws Mismatch unless the box is idle within this time, and nothing of the order is on its screen. */
  async expectIdle({ content, amount }: { content: string; amount: number }, withinMs: number): Promise<void> {
    const problem = async () => {
      const { state } = await this.status();
      const text = await this.#askPages((pages) => pages.text());
      if (text.includes(content) || amountsIn(text).includes(amount)) return `its screen still says ${content}`;
      return state === 'idle' ? undefined : `its state is ${state}`;
    };
    const left = await this.#poll(problem, (why) => why === undefined, withinMs);
    if (left !== undefined) throw new Mismatch(`the box is not idle within ${withinMs / 1000} s: ${left}`);
    const isQr = await ifKnown(async () => (await this.look())?.qr !== undefined);
    if (isQr === true) throw new Mismatch('a QR is on the screen of an idle box');
  }

  /** Takes a picture of the screen and decodes its QR. Throws PreconditionFailed when the probe fails. */
  async look(): Promise<Capture | undefined> {
    const seen = await this.#time
      .inRealTime(async () => this.#controls.see?.())
      .catch((error: unknown) => {
        throw new PreconditionFailed(`the screen cannot be seen: ${reasonOf(error)}`, error);
      });
    if (seen !== undefined) this.#run.evidence.addScreen(this.#run.subject.identity.terminalCode, seen.file, seen.qr);
    return seen;
  }

  /** Returns true if the QR of the order is on the screen now; false where nobody sees it. */
  async isQrSeen({ qrCode }: SeenQr): Promise<boolean> {
    return (await ifKnown(async () => (await this.look())?.qr === qrCode)) ?? false;
  }

  /** Throws Mismatch unless the QR of the order is on the screen within this time. */
  async expectQr({ qrCode }: SeenQr, withinMs = 0): Promise<void> {
    const seen = await this.waitForQr(withinMs, (qr) => qr === qrCode);
    if (seen === qrCode) return;
    throw new Mismatch(`the screen shows ${seen === undefined ? 'no QR' : `the QR ${seen}`}, expected ${qrCode}`);
  }

  /**
   * Returns true if the QR of the order can be read. Throws PreconditionFailed for another QR, which other checks
   * judge.
   */
  async isQrReadable({ qrCode }: SeenQr): Promise<boolean> {
    const seen = await this.waitForQr(ANNOUNCEMENT_MAX_MS, (qr) => qr !== undefined);
    if (seen !== undefined && seen !== qrCode) throw new PreconditionFailed('the screen shows another QR');
    return seen !== undefined;
  }

  /** Throws Mismatch when the QR of the order is still on the screen after this time. */
  async expectQrGone({ qrCode }: SeenQr, withinMs = GONE_MS): Promise<void> {
    const seen = await this.waitForQr(withinMs, (qr) => qr !== qrCode);
    if (seen === qrCode) throw new Mismatch('the QR is still on the screen');
  }

  /** Throws Mismatch with this message when the QR of the order is on the screen within this time. */
  async expectQrStaysAway(
    { qrCode }: SeenQr,
    forMs: number,
    message = 'the QR came back',
    lookMs = STAYS_AWAY_LOOK_MS,
  ): Promise<void> {
    const seen = await this.waitForQr(forMs, (qr) => qr === qrCode, lookMs);
    if (seen === qrCode) throw new Mismatch(message);
  }

  /** Throws Mismatch with this message when the QR of the order disappears within a short time. */
  async expectQrStays({ qrCode }: SeenQr, message: string): Promise<void> {
    const seen = await this.waitForQr(STAYS_MS, (qr) => qr !== qrCode);
    if (seen !== qrCode) throw new Mismatch(message);
  }

  waitForQr(withinMs: number, isRight: (qr: string | undefined) => boolean, lookMs?: number) {
    return this.#poll(async () => (await this.look())?.qr, isRight, withinMs, lookMs);
  }

  /** Calls `look` until the value is right or the time is over. Returns the last value. */
  async #poll<T>(look: () => Promise<T>, isRight: (value: T) => boolean, withinMs: number, lookMs = LOOK_MS) {
    const endMs = this.#nowMs + withinMs;
    const pause = this.#time.pollDelay({ pauseMs: lookMs });
    for (;;) {
      this.#run.signal.throwIfAborted();
      const value = await look();
      if (isRight(value) || this.#nowMs >= endMs) return value;
      await pause(lookMs);
    }
  }
}
