import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { DownMessage, UpMessage } from '../protocol/messages.ts';
import type { WireEntry, WireEntryOf, WirePage } from '../protocol/wire.ts';
import { bodyToTell } from './wire/masking.ts';

/** What is kept: the newest entries, and of those no more than so many characters. */
const ENTRIES_MAX = 20_000;
const CHARS_MAX = 16_000_000;
/** One answer holds no more, unless its first entry alone does. */
const PAGE_CHARS_MAX = 4_000_000;
/** Of a longer body or answer, the beginning is kept. */
const TEXT_CHARS_MAX = 16_384;
/** What an entry takes besides its texts, about. */
const ENTRY_CHARS = 200;
/** Slots of entries that are gone, before the list is made anew. */
const GONE_MAX = 4_096;

type Numbered = 'n' | 'at' | 'upMs';
type Unnumbered<E> = E extends WireEntry ? Omit<E, Numbered> : never;
type Told<K extends WireEntry['kind']> = Omit<WireEntryOf<K>, Numbered | 'kind'>;

interface Kept {
  wallMs: number;
  monotonicMs: number;
  chars: number;
  /** Made when somebody asks: nobody does while a gateway is in a hurry. */
  tell: () => Unnumbered<WireEntry>;
}

export interface TrafficLogDeps {
  clock: Clock;
  random: Random;
}

/** The newest that the gateway heard and said, in memory, for whoever records, reports or looks for a fault. */
export class TrafficLog {
  readonly #clock: Clock;
  readonly #run: string;
  readonly #startedMs: number;
  #kept: Kept[] = [];
  /** Of `#kept`, how many at its beginning are gone. */
  #gone = 0;
  /** The number of the newest entry. */
  #newest = 0;
  #chars = 0;

  constructor({ clock, random }: TrafficLogDeps) {
    this.#clock = clock;
    this.#run = random.uuid();
    this.#startedMs = clock.monotonicMs();
  }

  /** `body` and `answer` are texts as they were sent; secrets in them are not told. */
  call(told: Omit<Told<'call'>, 'body' | 'answer'> & { body: string; answer: string }): void {
    const [body, answer] = [cut(told.body), cut(told.answer)];
    this.#add(body.length + answer.length, () => ({
      ...told,
      kind: 'call',
      body: bodyToTell(body),
      answer: bodyToTell(answer),
    }));
  }

  message(box: string, to: 'box' | 'gateway', body: DownMessage | UpMessage): void {
    this.#add(charsOf(body), () => ({ kind: 'message', box, to, body }));
  }

  box(box: string, online: boolean, why: string): void {
    this.#add(why.length, () => ({ kind: 'box', box, online, why }));
  }

  /** `body` is the text as it was sent. */
  callback(told: Omit<Told<'callback'>, 'body' | 'answer'> & { body: string; answer: string | null }): void {
    const [body, answer] = [cut(told.body), told.answer === null ? null : cut(told.answer)];
    this.#add(body.length + (answer?.length ?? 0), () => ({
      ...told,
      kind: 'callback',
      body: bodyToTell(body),
      answer: answer === null ? null : bodyToTell(answer),
    }));
  }

  /** The entries after number `since`, the oldest first, `limit` at most. */
  since(since: number, limit: number): WirePage {
    const oldest = this.#newest - (this.#kept.length - this.#gone) + 1;
    const first = Math.max(since + 1, oldest);
    const entries: WireEntry[] = [];
    let chars = 0;
    for (let n = first; n <= this.#newest && entries.length < limit; n += 1) {
      const kept = this.#kept[this.#gone + n - oldest];
      if (kept === undefined) break;
      chars += kept.chars;
      if (chars > PAGE_CHARS_MAX && entries.length > 0) break;
      const at = new Date(kept.wallMs).toISOString();
      entries.push({ n, at, upMs: kept.monotonicMs - this.#startedMs, ...kept.tell() });
    }
    return {
      run: this.#run,
      entries,
      next: entries.at(-1)?.n ?? Math.min(since, this.#newest),
      lost: Math.max(0, Math.min(first, this.#newest + 1) - since - 1),
      upMs: this.#clock.monotonicMs() - this.#startedMs,
    };
  }

  #add(textChars: number, tell: Kept['tell']): void {
    const chars = textChars + ENTRY_CHARS;
    this.#kept.push({ wallMs: this.#clock.wallMs(), monotonicMs: this.#clock.monotonicMs(), chars, tell });
    this.#newest += 1;
    this.#chars += chars;
    while (this.#kept.length - this.#gone > ENTRIES_MAX || this.#chars > CHARS_MAX) {
      this.#chars -= this.#kept[this.#gone]?.chars ?? 0;
      this.#kept[this.#gone] = GONE;
      this.#gone += 1;
    }
    if (this.#gone > GONE_MAX) {
      this.#kept = this.#kept.slice(this.#gone);
      this.#gone = 0;
    }
  }
}

/** Stands where an entry was, so that what it held is let go. */
const GONE: Kept = {
  wallMs: 0,
  monotonicMs: 0,
  chars: 0,
  tell: () => ({ kind: 'box', box: '', online: false, why: '' }),
};

function cut(text: string): string {
  return text.length > TEXT_CHARS_MAX ? text.slice(0, TEXT_CHARS_MAX) : text;
}

function charsOf(message: object): number {
  let chars = 0;
  for (const value of Object.values(message)) if (typeof value === 'string') chars += value.length;
  return chars;
}
