import { BudgetMeter } from '../../lib/budget.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { beginningOf } from '../../lib/text.ts';
import { PATHS } from '../../protocol/http-api.ts';
import type { WireEntry, WireEntryOf, WirePage } from '../../protocol/wire.ts';
import type { Changes } from './changes.ts';

/** At most this many entries and characters are stored. Beyond that, the oldest entries are dropped. */
const ENTRIES_MAX = 20_000;
const CHARS_MAX = 16_000_000;
/** The largest number of characters of one page. A first entry that is longer is returned alone. */
const PAGE_CHARS_MAX = 4_000_000;
/** At most this many characters of a body or answer are stored. The rest is cut. */
const TEXT_CHARS_MAX = 16_384;
/** The same limit for a caller who has not proved who he is. */
const UNPROVED_CHARS_MAX = 1_000;
/** At most this many characters of a path are stored. */
const PATH_CHARS_MAX = 500;
/** The estimated size of an entry without its texts. */
const ENTRY_CHARS = 200;
/** The console lists at most this many calls of partners with a note. */
export const NOTED_MAX = 50;
/** At most this many of them are from unproved callers, so that strangers cannot push the others out of the list. */
const NOTED_UNPROVED_MAX = 10;
/** At most this many unproved calls are stored at once, and one more after each `forgetMs`. */
const UNPROVED_KEPT = { usesMax: 200, forgetMs: 1_000 };
/** The list is compacted when it has this many empty slots. */
const EMPTIED_MAX = 4_096;

/** Sources report money below this path. The console lists their calls too. */
const HOOKS_PREFIX = '/hooks/';
const PARTNER_PATHS: readonly string[] = Object.values(PATHS);

/** The values of these fields are masked, so that nobody can log in with them. `checkSum` may be misspelt. */
const SECRET_NAMES = String.raw`pass?word|passwd|secret|token|authori[sz]ation|bearer|salt|key\b|che?c?k?[\s_-]?su[mn]`;
const SECRET_FIELD = new RegExp(SECRET_NAMES, 'i');
const MASK = '***';
/** Masks the values of such fields in text that is not JSON, up to the possible end of the value. */
const SECRET_TEXT = new RegExp(
  String.raw`((?:${SECRET_NAMES})\w{0,30}["']?\s{0,8}[:=]{0,2}>?\s{0,8})` +
    String.raw`("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|\[[^\]]*\]?|\{[^}]*\}?|[^,}&"'\n]+)`,
  'gi',
);
/** Finds bearer tokens and checkSums. An orderId may look like a checkSum, but not in a field with such a name. */
const TOKEN = /eyJ[\w-]{8,}(?:\.[\w-]+){1,2}/g;
const CHECK_SUM = /(?<![0-9a-z-])[0-9a-f]{32}(?![0-9a-z-])/gi;
const LIKE_CHECK_SUM = /ch.?e|sum|md5|hash/i;
const DEPTH_MAX = 8;

type Numbered = 'n' | 'at' | 'upMs';
type Unnumbered<E> = E extends WireEntry ? Omit<E, Numbered> : never;
type Fields<K extends WireEntry['kind']> = Omit<WireEntryOf<K>, Numbered | 'kind'>;

interface Kept {
  wallMs: number;
  monotonicMs: number;
  chars: number;
  /** Makes the entry when it is read, because writing must be fast. */
  read: () => Unnumbered<WireEntry>;
}

export interface TrafficLogDeps {
  clock: Clock;
  random: Random;
  changes: Changes;
}

/** Stores the newest calls, messages and callbacks of the gateway, in memory only. */
export class TrafficLog {
  readonly #clock: Clock;
  readonly #run: string;
  readonly #startedMs: number;
  #kept: Kept[] = [];
  /** The number of empty slots at the beginning of `#kept`. */
  #emptied = 0;
  /** The number of the newest entry. */
  #newest = 0;
  #chars = 0;
  readonly #changes: TrafficLogDeps['changes'];
  readonly #noted: { n: number; kept: Kept; isProved: boolean }[] = [];
  readonly #unproved = new BudgetMeter(UNPROVED_KEPT);

  constructor({ clock, random, changes }: TrafficLogDeps) {
    this.#changes = changes;
    this.#clock = clock;
    this.#run = random.uuid();
    this.#startedMs = clock.monotonicMs();
  }

  /**
   * Stores a call. `body` and `answer` are the texts as they were sent. Their secrets are masked. Of many calls by
   * callers who have not proved who they are (`isProved`), only some are stored.
   */
  call(fields: Omit<Fields<'call'>, 'body' | 'answer'> & { body: string; answer: string }, isProved: boolean): void {
    if (!isProved && !this.#mayKeepUnproved()) return;
    const { path: whole, body: sent, answer: answered, ...rest } = fields;
    const charsMax = isProved ? TEXT_CHARS_MAX : UNPROVED_CHARS_MAX;
    const [path, body, answer] = [beginningOf(whole, PATH_CHARS_MAX), cut(sent, charsMax), cut(answered, charsMax)];
    const { method, reason, lenient, warnings } = rest;
    const kept = this.#add(charsOf([path, body, answer, reason, ...lenient, ...warnings]), () => ({
      ...rest,
      kind: 'call',
      path,
      body: withoutSecrets(body),
      answer: withoutSecrets(answer),
    }));
    const isOfPartner = method === 'MQTT' || PARTNER_PATHS.includes(path) || path.startsWith(HOOKS_PREFIX);
    if (!isOfPartner || (reason === null && lenient.length + warnings.length === 0)) return;
    this.#noted.unshift({ n: this.#newest, kept, isProved });
    const unproved = this.#noted.filter((it) => !it.isProved);
    const over = unproved.length > NOTED_UNPROVED_MAX ? unproved.at(-1) : undefined;
    if (over !== undefined) this.#noted.splice(this.#noted.indexOf(over), 1);
    this.#noted.splice(NOTED_MAX);
    this.#changes.publish('calls');
  }

  #mayKeepUnproved(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (this.#unproved.waitMs('', nowMs) > 0) return false;
    this.#unproved.add('', nowMs);
    return true;
  }

  /** Returns calls of partners that were refused, leniently accepted or answered with a warning, newest first. */
  noted(): WireEntry[] {
    return this.#noted.map(({ n, kept }) => this.#entryOf(n, kept));
  }

  /** Stores a message of the protocol, or of a dialect with its own `type`. */
  message(box: string, to: 'box' | 'gateway', body: Fields<'message'>['body']): void {
    this.#add(charsOf(body), () => ({ kind: 'message', box, to, body }));
  }

  box(box: string, online: boolean, why: string): void {
    this.#add(why.length, () => ({ kind: 'box', box, online, why }));
  }

  /** Stores a callback. `body` is the text as it was sent. */
  callback(fields: Omit<Fields<'callback'>, 'body' | 'answer'> & { body: string; answer: string | null }): void {
    const { body: sent, answer: answered, ...rest } = fields;
    const [body, answer] = [cut(sent), answered === null ? null : cut(answered)];
    this.#add(charsOf([body, answer]), () => ({
      ...rest,
      kind: 'callback',
      body: withoutSecrets(body),
      answer: answer === null ? null : withoutSecrets(answer),
    }));
  }

  /** Returns the oldest entries after number `since`, at most `limit`. */
  since(since: number, limit: number): WirePage {
    const oldest = this.#newest - (this.#kept.length - this.#emptied) + 1;
    const first = Math.max(since + 1, oldest);
    const entries: WireEntry[] = [];
    let chars = 0;
    for (let n = first; n <= this.#newest && entries.length < limit; n += 1) {
      const kept = this.#kept[this.#emptied + n - oldest];
      if (kept === undefined) break;
      chars += kept.chars;
      if (chars > PAGE_CHARS_MAX && entries.length > 0) break;
      entries.push(this.#entryOf(n, kept));
    }
    return {
      run: this.#run,
      entries,
      next: entries.at(-1)?.n ?? Math.min(since, this.#newest),
      lost: Math.max(0, Math.min(first, this.#newest + 1) - since - 1),
      upMs: this.#clock.monotonicMs() - this.#startedMs,
    };
  }

  #entryOf(n: number, { wallMs, monotonicMs, read }: Kept): WireEntry {
    return { n, at: new Date(wallMs).toISOString(), upMs: monotonicMs - this.#startedMs, ...read() };
  }

  #add(textChars: number, read: Kept['read']): Kept {
    const chars = textChars + ENTRY_CHARS;
    const kept = { wallMs: this.#clock.wallMs(), monotonicMs: this.#clock.monotonicMs(), chars, read };
    this.#kept.push(kept);
    this.#newest += 1;
    this.#chars += chars;
    while (this.#kept.length - this.#emptied > ENTRIES_MAX || this.#chars > CHARS_MAX) {
      this.#chars -= this.#kept[this.#emptied]?.chars ?? 0;
      this.#kept[this.#emptied] = EMPTY;
      this.#emptied += 1;
    }
    if (this.#emptied > EMPTIED_MAX) {
      this.#kept = this.#kept.slice(this.#emptied);
      this.#emptied = 0;
    }
    return kept;
  }
}

/** Replaces a dropped entry, to free its memory. */
const EMPTY: Kept = {
  wallMs: 0,
  monotonicMs: 0,
  chars: 0,
  read: () => ({ kind: 'box', box: '', online: false, why: '' }),
};

function cut(text: string, charsMax = TEXT_CHARS_MAX): string {
  return text.length > charsMax ? beginningOf(text, charsMax) : text;
}

function charsOf(message: object): number {
  let chars = 0;
  for (const value of Object.values(message)) if (typeof value === 'string') chars += value.length;
  return chars;
}

/** Returns a body with masked secrets: the decoded JSON, or else its text. Null for an empty body. */
export function withoutSecrets(text: string): unknown {
  if (text === '') return null;
  try {
    return masked(JSON.parse(text) as unknown, 0);
  } catch {
    // The text is not JSON, or it is nested too deeply.
    return text.replaceAll(SECRET_TEXT, `$1${MASK}`).replaceAll(TOKEN, MASK).replaceAll(CHECK_SUM, MASK);
  }
}

function masked(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.replaceAll(TOKEN, MASK);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEPTH_MAX) throw new Error('too deep');
  if (Array.isArray(value)) return value.map((it) => masked(it, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, it]) => [key, isSecret(key, it) ? MASK : masked(it, depth + 1)]),
  );
}

function isSecret(field: string, value: unknown): boolean {
  if (SECRET_FIELD.test(field)) return true;
  return LIKE_CHECK_SUM.test(field) && typeof value === 'string' && value.search(CHECK_SUM) >= 0;
}
