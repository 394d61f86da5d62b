import { isWithin } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import { chime, SPEECH_FORMAT } from './chime.ts';
import type { Announcement, Phrase, Repetition, Speaker, SpeakerIo } from './contract.ts';
import { reasonAndFix } from './fault.ts';
import { SPEAKER_DRIVERS, type VoiceOptions } from './registry.ts';
import { concat, type Pcm, silence, withVolume } from './wav.ts';
import { announcementText, numberWords, REPETITION_TRIED, repetitionText, timeWords, vocabulary } from './words.ts';

export interface VoiceIo extends SpeakerIo {
  /** Returns the calendar time, in milliseconds since 1970; undefined while the box has received none. */
  toldMs(): number | undefined;
}

export interface VoiceStatus {
  driver: string;
  ok: boolean;
  /** The problem and the advice; null if there is none. */
  reason: string | null;
  /** The number of announcements that wait, without the current one. */
  queued: number;
  /** The number of payments announced since the start, without repetitions that a person asked for. */
  said: number;
  /** The words of the last announcement; null before the first. */
  words: string | null;
}

/** Announces payments aloud. No method throws or waits. */
export interface Voice {
  /** Announces a payment after those that wait. Does nothing if its transaction was announced before. */
  announce(announcement: Announcement): void;
  /**
   * Announces a payment again as a repetition, because a person asks for it. It comes after the announcements that
   * wait, and has no chime. It does nothing while another repetition waits, and is silent if no voice can speak it.
   */
  repeat(repetition: Repetition): void;
  status(): VoiceStatus;
  /** Becomes silent at once, and drops the waiting announcements. */
  close(): Promise<void>;
}

/**
 * At most this many announcements wait. Beyond that the voice drops the oldest, because the newest payer is still in
 * front of the box.
 */
const WAITING_MAX = 8;
/** The voice drops announcements that have waited longer, because people could take them for another payment. */
const WAITED_MAX_MS = 60_000;
/** The voice remembers this many announced transactions. */
const REMEMBERED_MAX = 1_000;
const PAUSE_AFTER_CHIME_MS = 150;
const CHIME_ALONE = 'a chime alone would sound like a new payment';

interface Waiting extends Announcement {
  sinceMs: number;
  /** The time of the payment in milliseconds since 1970. Only a repetition has it. */
  paidAtMs: number | undefined;
}

/** The sound of a phrase, or none if no voice can speak it. */
interface Composed {
  sound: Pcm | undefined;
  text: string;
  flaw: string | undefined;
}

/** Starts the voice and tests it without a sound, so that a missing part is reported before the first payment. */
export function openVoice(options: VoiceOptions, io: VoiceIo): Voice {
  return new QueuedVoice(options, io);
}

class QueuedVoice implements Voice {
  readonly #options: VoiceOptions;
  readonly #io: VoiceIo;
  readonly #speaker: Speaker;
  readonly #stop = new AbortController();
  readonly #announced = new Set<string>();
  readonly #waiting: Waiting[] = [];
  /** The voice repeats this payment once nothing else waits. */
  #again: Waiting | undefined;
  readonly #running: Promise<void>;
  #wake: (() => void) | undefined;
  #failure: string | undefined = 'not tried yet';
  #said = 0;
  #words: string | null = null;

  constructor(options: VoiceOptions, io: VoiceIo) {
    const driver = SPEAKER_DRIVERS.get(options.driver);
    if (driver === undefined) throw new ConfigError(`voice: no driver ${options.driver}`);
    this.#options = options;
    this.#io = { ...io, log: io.log.with({ voice: options.driver }) };
    this.#speaker = driver.configure(options.options).open(this.#io);
    this.#running = this.#run();
  }

  announce({ transactionId, amount }: Announcement): void {
    if (this.#stop.signal.aborted || this.#announced.has(transactionId)) return;
    remember(this.#announced, transactionId);
    if (this.#waiting.length >= WAITING_MAX) {
      const dropped = this.#waiting.shift();
      if (dropped !== undefined) this.#unspoken(dropped, `more than ${WAITING_MAX} announcements wait`);
    }
    this.#waiting.push({ transactionId, amount, sinceMs: this.#io.clock.monotonicMs(), paidAtMs: undefined });
    this.#wake?.();
  }

  repeat({ transactionId, amount, paidAtMs }: Repetition): void {
    if (this.#stop.signal.aborted || this.#again !== undefined) return;
    this.#again = { transactionId, amount, sinceMs: this.#io.clock.monotonicMs(), paidAtMs };
    this.#wake?.();
  }

  status(): VoiceStatus {
    return {
      driver: this.#options.driver,
      ok: this.#failure === undefined,
      reason: this.#failure ?? null,
      queued: this.#waiting.length + (this.#again === undefined ? 0 : 1),
      said: this.#said,
      words: this.#words,
    };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#waiting.length = 0;
    this.#again = undefined;
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    await this.#attempt(() => this.#tryOut());
    while (!signal.aborted) {
      const next = this.#next();
      if (next === undefined) await this.#somethingWaits();
      else await this.#takeTurn(next);
    }
  }

  /**
   * Returns the next announcement. New payments come first, because a person who holds the key down could silence them
   * otherwise.
   */
  #next(): Waiting | undefined {
    const news = this.#waiting.shift();
    if (news !== undefined) return news;
    const again = this.#again;
    this.#again = undefined;
    return again;
  }

  #somethingWaits(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  async #takeTurn(item: Waiting): Promise<void> {
    const { clock, log } = this.#io;
    const { transactionId, amount } = item;
    const repeated = item.paidAtMs !== undefined;
    const waitedMs = Math.round(clock.monotonicMs() - item.sinceMs);
    if (waitedMs > WAITED_MAX_MS) {
      this.#unspoken(item, `it waited ${waitedMs} ms, longer than ${WAITED_MAX_MS} ms`);
      return;
    }
    const { volumePercent, why } = this.#volume();
    if (volumePercent === 0) {
      this.#unspoken(item, why);
      return;
    }
    await this.#attempt(async () => {
      const { sound, text, flaw } = repeated ? await this.#composeAgain(item) : await this.#compose(amount);
      if (sound === undefined) {
        this.#unspoken(item, flaw ?? CHIME_ALONE);
        return this.#failure;
      }
      await this.#speaker.output.play(withVolume(sound, volumePercent), text, this.#stop.signal);
      if (this.#stop.signal.aborted) return flaw;
      // The status of the voice is about new payments only.
      const after = repeated ? this.#failure : flaw;
      log.info('payment-spoken', { transactionId, amount, repeated });
      if (!repeated) this.#said += 1;
      this.#words = text;
      return after;
    });
  }

  /** Runs `work`, which returns a problem if there is one, and stores the problem for the status. */
  async #attempt(work: () => Promise<string | undefined>): Promise<void> {
    const failure = await work().catch(reasonAndFix);
    const before = this.#failure;
    if (this.#stop.signal.aborted || failure === before) return;
    this.#failure = failure;
    if (failure !== undefined) this.#io.log.error('voice-failed', { reason: failure });
    else this.#io.log.info('voice-recovered');
  }

  async #tryOut(): Promise<string | undefined> {
    const { zero } = this.#options;
    const everyWord = vocabulary(zero).join(' ');
    const { flaw } = await this.#speak({ text: announcementText(0), number: everyWord });
    await this.#speaker.output.check(this.#stop.signal);
    await this.#tryRepetition();
    return flaw;
  }

  /**
   * Tests a repetition. A voice of recorded words may lack the words for one. Then the key for it only shows the
   * payment.
   */
  async #tryRepetition(): Promise<void> {
    if (this.#speaker.speeches.length === 0) return;
    const { spoken, flaw } = await this.#speak(REPETITION_TRIED);
    if (spoken === undefined) this.#io.log.warn('repetitions-not-spoken', { reason: flaw });
  }

  async #composeAgain({ amount, paidAtMs = 0 }: Waiting): Promise<Composed> {
    const { zero } = this.#options;
    const text = repetitionText(amount, paidAtMs, { zero });
    const phrase = { text, number: numberWords(amount, { zero }), time: timeWords(paidAtMs, { zero }) };
    const { spoken, flaw } = await this.#speak(phrase);
    return { sound: spoken?.words, text, flaw };
  }

  async #compose(amount: number): Promise<Composed> {
    const { zero } = this.#options;
    const text = announcementText(amount, { zero });
    const { spoken, flaw } = await this.#speak({ text, number: numberWords(amount, { zero }) });
    if (spoken === undefined) return { sound: chime(SPEECH_FORMAT), text, flaw };
    const { words } = spoken;
    if (!this.#options.chime) return { sound: words, text, flaw };
    const first = spoken.chime ?? chime(words);
    return { sound: concat([first, silence(PAUSE_AFTER_CHIME_MS, words), words]), text, flaw };
  }

  /**
   * Renders the phrase with the first speech that can. Also returns the problems of the speeches that failed before it.
   */
  async #speak(phrase: Phrase) {
    const flaws: string[] = [];
    for (const speech of this.#speaker.speeches) {
      try {
        const spoken = await speech.render(phrase, this.#stop.signal);
        return { spoken, flaw: flaws.length === 0 ? undefined : `${flaws.join('; ')}; another voice speaks instead` };
      } catch (error) {
        flaws.push(reasonAndFix(error));
      }
    }
    const heard = phrase.time === undefined ? 'only the chime rings' : 'nothing is said again';
    return { spoken: undefined, flaw: flaws.length === 0 ? undefined : `${flaws.join('; ')}; ${heard}` };
  }

  #volume(): { volumePercent: number; why: string } {
    const { quietHours, volumePercent } = this.#options;
    // A clock that stopped without power must not silence the day. So without a trusted time there is no night.
    const nowMs = this.#io.toldMs();
    if (quietHours !== undefined && nowMs !== undefined && isWithin(quietHours, nowMs)) {
      return { volumePercent: Math.min(volumePercent, quietHours.volumePercent), why: 'quiet hours' };
    }
    return { volumePercent, why: 'the volume is 0' };
  }

  #unspoken({ transactionId, amount }: Announcement, reason: string): void {
    this.#io.log.warn('announcement-not-spoken', { transactionId, amount, reason });
  }
}

function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest] = ids;
  if (ids.size > REMEMBERED_MAX && oldest !== undefined) ids.delete(oldest);
}
