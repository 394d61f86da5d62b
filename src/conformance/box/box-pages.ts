import { z } from 'zod';
import type { BoxClient } from '../../bench/clients/box.ts';
import { waitUntilRight } from '../../bench/test-time.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { FaultName } from '../../protocol/faults.ts';
import { Mismatch, PreconditionFailed } from '../check.ts';
import type { Session } from './gateway/scripted-gateway.ts';
import { GatewayTranscript } from './gateway-transcript.ts';
import { RETURN_MS } from './subject.ts';

/** Longest time that a payment or another announcement takes on the screen of any box. */
export const ANNOUNCEMENT_MAX_MS = 30_000;
/** Interval of pictures of the screen. */
const LOOK_MS = 500;
/** Longest time until a box notices the end of a fault. */
const FAULT_OVER_MS = 40_000;
/** Time within which the text of a screen follows a report. */
const AMOUNT_MS = 5_000;
/** Time for what a box does after its answer. */
export const LINGER_MS = 500;

const saidAloud = z.looseObject({ said: z.int(), words: z.string().nullable() });

/** Time in which a box that says a payment twice has begun it again. */
const SAYING_MS = 3_000;

/** The sessions of a box, its own pages, and the faults that can be injected there. */
export class BoxPages extends GatewayTranscript {
  readonly #faults: string[] = [];

  override async tearDown(isFailed: boolean): Promise<void> {
    await this.endFaults();
    await super.tearDown(isFailed);
  }

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

  /** Calls the pages of the box. Throws PreconditionFailed when they do not answer. */
  protected async askPages<T>(ask: (pages: BoxClient) => Promise<T>): Promise<T> {
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
    return this.askPages((pages) => pages.press('dismiss'));
  }

  /**
   * Number of payments that the box has announced aloud since its start. Throws PreconditionFailed for a box that does
   * not count them.
   */
  async announcements(): Promise<number> {
    const count = await this.askPages((pages) => pages.announcements());
    if (count !== undefined) return count;
    throw new PreconditionFailed('the box does not count what it says aloud: its /metrics lack that');
  }

  /** Throws PreconditionFailed for a box that does not tell what it says aloud. */
  async saidAloud(): Promise<{ said: number; words: string | null }> {
    const { voice } = await this.askPages((pages) => pages.status());
    const told = saidAloud.safeParse(voice);
    if (told.success) return told.data;
    throw new PreconditionFailed(
      'the box does not tell what it says aloud: its /status lacks voice.said and voice.words',
    );
  }

  /** Throws Mismatch unless the box says one more payment aloud, with these words and only once. */
  async expectWords(words: string, before: number): Promise<void> {
    const look = () => this.saidAloud();
    await this.poll(look, ({ said }) => said > before, ANNOUNCEMENT_MAX_MS);
    const now = await this.poll(look, ({ said }) => said > before + 1, SAYING_MS);
    if (now.said !== before + 1) throw new Mismatch(`the box has said ${now.said - before} payments aloud, expected 1`);
    if (!(now.words ?? '').toLowerCase().includes(words)) {
      throw new Mismatch(`the box has said "${now.words}", expected ${words}`);
    }
  }

  /** As `announcements`; undefined for a box that does not tell. */
  async announcementsIfTold(): Promise<number | undefined> {
    return this.subject.controls.pages && ifTold(() => this.announcements());
  }

  /** Whether the text is on the screen; false for a box that does not tell. */
  async hasTextIfTold(words: string): Promise<boolean> {
    return (await (this.subject.controls.pages && ifTold(() => this.hasText(words)))) ?? false;
  }

  /** Throws Mismatch unless the box comes to this number of announcements, and stays there. */
  async expectAnnouncements(count: number): Promise<void> {
    const look = () => this.announcements();
    const reached = await this.poll(look, (now) => now >= count, ANNOUNCEMENT_MAX_MS);
    const now = reached === count ? await this.poll(look, (later) => later !== count, LINGER_MS) : reached;
    if (now !== count) throw new Mismatch(`the box has announced ${now} payments, expected ${count}`);
  }

  /** Throws Mismatch unless the screen names this amount in whole đồng, and not a longer or another number. */
  async expectAmount(amount: number): Promise<void> {
    const text = () => this.askPages((pages) => pages.text());
    const seen = await this.poll(text, (now) => amountsIn(now).includes(amount), AMOUNT_MS);
    this.run.evidence.add('status', 'text on the screen', { detail: seen });
    const amounts = amountsIn(seen);
    if (amounts.includes(amount)) return;
    const instead = amounts.length === 0 ? 'no amount' : amounts.join(' and ');
    throw new Mismatch(`the screen says ${instead}, expected ${amount} đồng`);
  }

  /** Whether the text is on the screen. */
  async hasText(words: string): Promise<boolean> {
    const text = await this.askPages((pages) => pages.text());
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
    return this.poll(
      () => this.hasText(words),
      (isThere) => isThere === isWanted,
      withinMs,
    );
  }

  /** Injects a fault into the box. It lasts until the check ends or the box restarts. */
  async injectFault(fault: FaultName): Promise<void> {
    this.run.step(`injects the fault ${fault}`);
    const { id } = await this.askPages((pages) => pages.orderFault({ fault }));
    this.#faults.push(id);
  }

  /** Ends the injected faults, and waits until the box has noticed that. */
  async endFaults(): Promise<void> {
    const ids = this.#faults.splice(0);
    if (ids.length === 0) return;
    const look = async () => {
      const { fault } = await this.askPages((pages) => pages.status());
      return (fault ?? null) === null ? undefined : 'it has a fault';
    };
    for (const id of ids) await this.askPages((pages) => pages.endFault(id));
    await waitUntilRight(this.time, FAULT_OVER_MS, look, this.run.signal);
  }

  /** Calls `look` until the value is right or the time is over. Returns the last value. */
  protected async poll<T>(look: () => Promise<T>, isRight: (value: T) => boolean, withinMs: number, lookMs = LOOK_MS) {
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

/** The answer; undefined where it cannot be had. */
export async function ifTold<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof PreconditionFailed) return undefined;
    throw error;
  }
}

/** The amounts in a text: numbers with a đồng sign, or all numbers where none has one. `500.000` is not `50.000`. */
export function amountsIn(text: string): number[] {
  const numbers = [
    ...text.matchAll(/(?<![\p{L}\d.,])(\d{1,3}(?:[.,\u00a0 ]\d{3})+|\d+)(?![\p{L}\d]|[.,]\d)(\s?(?:₫|đ|VND))?/giu),
  ];
  const priced = numbers.filter(([, , sign]) => sign !== undefined);
  return (priced.length > 0 ? priced : numbers).map(([, digits = '']) => Number(digits.replaceAll(/\D/g, '')));
}
