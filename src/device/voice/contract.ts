import type { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Pcm } from './wav.ts';

/** A payment to announce. `amount` is in whole đồng. */
export interface Announcement {
  transactionId: string;
  amount: number;
}

/** A payment to say again. `paidAtMs` is calendar time in milliseconds since 1970. */
export interface Repetition extends Announcement {
  paidAtMs: number;
}

/** A sentence to announce. */
export interface Phrase {
  /** The complete sentence. */
  text: string;
  /** The words of the amount only, separated by single spaces. */
  number: string;
  /** The words of the time of a repeated payment only, separated by single spaces. */
  time?: string;
}

/** A phrase as sound. */
export interface Spoken {
  words: Pcm;
  /** A chime that replaces the built-in one. */
  chime: Pcm | undefined;
}

/** Turns words into sound. `render` throws a PayboxError that says what is missing and what to do. */
export interface Speech {
  render(phrase: Phrase, signal: AbortSignal): Promise<Spoken>;
}

/** An announcement for the box's web page: the sound, and its text. */
export interface PageAnnouncement {
  text: string;
  /** A WAV file of 16-bit PCM. */
  wav: Uint8Array;
}

/** Plays sound. Both methods throw a PayboxError that names the failure. */
export interface Output {
  /** Settles when the sound has ended, so that the next one does not overlap it. */
  play(sound: Pcm, text: string, signal: AbortSignal): Promise<void>;
  /** Checks that the output could play a sound now, without playing one. */
  check(signal: AbortSignal): Promise<void>;
}

/** The speech and output of a driver. No device is open between announcements, so nobody has to close it. */
export interface Speaker {
  /** The voice tries these in order until one renders the phrase. If none does, it plays only the chime. */
  speeches: readonly Speech[];
  output: Output;
}

/** Gives a driver access to devices and time. */
export interface SpeakerIo {
  clock: Clock;
  log: Logger;
  /** Sends the announcements of the `page` driver to the open pages of the box. */
  onPage(announcement: PageAnnouncement): void;
}

/** A kind of voice. `options` decodes the driver's part of the configuration, and `example` is a valid one. */
export interface SpeakerDriver<Options> {
  readonly name: string;
  readonly summary: string;
  readonly options: z.ZodType<Options>;
  readonly example: Options;
  open(options: Options, io: SpeakerIo): Speaker;
}
