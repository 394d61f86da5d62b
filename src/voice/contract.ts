import type { z } from 'zod';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Pcm } from './wav.ts';

/** A payment to be heard. `amount` is whole đồng. */
export interface Announcement {
  transactionId: string;
  amount: number;
}

/** A sentence to announce. */
export interface Phrase {
  /** The whole sentence. */
  text: string;
  /** The words of the amount alone, one space between them. */
  number: string;
}

/** A phrase as sound. */
export interface Spoken {
  words: Pcm;
  /** A chime of the speaker's own, which takes the place of the box's. */
  chime: Pcm | undefined;
}

/** Words to sound. `render` throws a PayboxError that says what is missing and what to do. */
export interface Speech {
  render(phrase: Phrase, signal: AbortSignal): Promise<Spoken>;
}

/** An announcement for the page of the box: the sound, and its words to read or to speak. */
export interface PageAnnouncement {
  text: string;
  /** A WAV file of 16-bit PCM. */
  wav: Uint8Array;
}

/** Where sound is heard. Both throw a PayboxError that names what failed. */
export interface Output {
  /** Settles once the sound has been heard, so that the next does not run into it. */
  play(sound: Pcm, text: string, signal: AbortSignal): Promise<void>;
  /** Whether a sound could be heard now; makes none. */
  check(signal: AbortSignal): Promise<void>;
}

/** A way to be heard. It holds no device between announcements, so there is nothing to close. */
export interface Speaker {
  /** Tried in this order until one renders the phrase; when none does, the chime rings alone. */
  speeches: readonly Speech[];
  output: Output;
}

/** Everything with which a driver touches devices and time. */
export interface SpeakerIo {
  clock: Clock;
  log: Logger;
  /** Takes the announcements of the `page` driver to whoever looks at the page of the box. */
  onPage(announcement: PageAnnouncement): void;
}

/** One kind of voice. `options` decodes the driver's part of the configuration, `example` is a valid one. */
export interface SpeakerDriver<Options> {
  readonly name: string;
  readonly summary: string;
  readonly options: z.ZodType<Options>;
  readonly example: Options;
  open(options: Options, io: SpeakerIo): Speaker;
}
