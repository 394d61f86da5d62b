import { type Clock, withDeadline } from '../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Ask, Hint, Questions } from '../common/place.ts';
import type { BrokerLine } from './broker-line.ts';
import type { DatabaseSession } from './database-session.ts';
import { type Said, said, type WrongLogin } from './said.ts';
import { CHANNEL, channelOf, RUN_GONE } from './tables.ts';

/** PostgreSQL limits a notification to 8,000 bytes. A longer one names a row of `cluster.texts`. */
const NOTIFICATION_BYTES_MAX = 7_500;
/** At most this many notifications wait. Beyond that, the oldest is dropped: what it says is in the rows. */
const WAITING_MAX = 10_000;
const AT_ONCE_MAX = 200;
/** A query that failed is repeated in this interval, until it is this old. A lost session is opened again that way. */
const AGAIN_MS = 100;
const AGAIN_MS_MAX = 2_500;
/** The beginning of a notification that names a row. */
const ROW = 'row ';

/** Receives what the other gateways say. */
export interface Ears {
  hint(hint: Hint): void;
  answer(kind: Ask, question: unknown): Promise<unknown>;
  wrongLogin(told: WrongLogin): void;
}

/**
 * Says things to the other gateways by notifications of the database, and hears what they say. A notification may be
 * lost. Whoever relies on one asks again, or reads the rows. A question that will be asked again goes over the broker: a
 * notification wakes all sessions of the database that listen, although it is for one of them.
 */
export class Voice {
  readonly #run: string;
  readonly #database: DatabaseSession;
  readonly #line: BrokerLine;
  readonly #deps: { clock: Clock; random: Random; log: Logger };
  readonly #over = new AbortController();
  readonly #asked = new Map<string, (answer: unknown) => void>();
  #waiting: { channel: string; text: string }[] = [];
  #isSaying = false;
  #isChecking = false;
  #ears: Ears | undefined;

  constructor(
    run: string,
    { database, line }: { database: DatabaseSession; line: BrokerLine },
    deps: { clock: Clock; random: Random; log: Logger },
  ) {
    this.#run = run;
    this.#database = database;
    this.#line = line;
    this.#deps = deps;
  }

  /** Begins to pass on what others say. */
  begin(ears: Ears): void {
    this.#ears = ears;
    this.#line.begin((text) => void this.#hear(text, (to, it) => this.#line.say(to, JSON.stringify(it))));
  }

  /**
   * Asks the session for an answer, which opens it again if it was lost. A gateway that says nothing would otherwise
   * stay deaf: to a session that has ended, and to one that hangs. Never rejects.
   */
  async keepHearing(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    await this.#again(() => this.#database.query('select 1')).catch(() => undefined);
    this.#isChecking = false;
  }

  /** Ends what waits to be said again. */
  close(): void {
    this.#over.abort();
  }

  hint(hint: Hint): void {
    this.#say(CHANNEL, { by: this.#run, hint });
  }

  wrongLogin(told: WrongLogin): void {
    this.#say(CHANNEL, told);
  }

  /** Asks one run. Returns undefined without an answer in time. `mayBeLost`: it goes over the broker if that is there. */
  async ask<K extends Ask>(
    run: string,
    kind: K,
    question: Questions[K]['question'],
    withinMs: number,
    mayBeLost = false,
  ): Promise<Questions[K]['answer'] | undefined> {
    const id = this.#deps.random.uuid();
    const answered = new Promise<unknown>((resolve) => this.#asked.set(id, resolve));
    const asked = { by: this.#run, ask: kind, id, question };
    if (!(mayBeLost && this.#line.say(run, JSON.stringify(asked)))) this.#say(channelOf(run), asked);
    try {
      return (await withDeadline(this.#deps.clock, withinMs, answered)) as Questions[K]['answer'] | undefined;
    } finally {
      this.#asked.delete(id);
    }
  }

  /** Takes a notification. Never throws. */
  heard(payload: string): Promise<void> {
    return this.#hear(payload, () => false);
  }

  /** Takes what was said. An answer goes back over `line`, or else by a notification. Never throws. */
  async #hear(payload: string, line: (to: string, answer: Said) => boolean): Promise<void> {
    const { log } = this.#deps;
    try {
      const text = payload.startsWith(ROW) ? await this.#textOf(payload.slice(ROW.length)) : payload;
      if (text === undefined) return;
      const parsed = said.safeParse(JSON.parse(text));
      if (parsed.success) await this.#take(parsed.data, line);
      else log.warn('hint-refused', { reason: 'it was sent by a gateway of another version' });
    } catch (error) {
      log.warn('hint-failed', { reason: reasonOf(error) });
    }
  }

  async #take(it: Said, line: (to: string, answer: Said) => boolean): Promise<void> {
    if ('answerTo' in it) return this.#asked.get(it.answerTo)?.(it.answer);
    if (it.by === this.#run && !('about' in it)) return;
    if ('about' in it) return this.#ears?.wrongLogin(it);
    if ('hint' in it) return this.#ears?.hint(it.hint);
    const answer = await this.#ears?.answer(it.ask, it.question);
    if (answer === undefined) return;
    const answered = { answerTo: it.id, answer };
    if (!line(it.by, answered)) this.#say(channelOf(it.by), answered);
  }

  async #textOf(id: string): Promise<string | undefined> {
    const { rows } = await this.#database.query<{ text: string }>('select text from cluster.texts where id = $1', [id]);
    return rows[0]?.text;
  }

  #say(channel: string, it: Said): void {
    this.#waiting.push({ channel, text: JSON.stringify(it) });
    if (this.#waiting.length > WAITING_MAX) this.#waiting.shift();
    if (!this.#isSaying) void this.#sayAll();
  }

  async #sayAll(): Promise<void> {
    this.#isSaying = true;
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, AT_ONCE_MAX);
      await this.#again(() => this.#sayThese(some)).catch((error: unknown) => {
        this.#deps.log.warn('hints-lost', { count: some.length, reason: reasonOf(error) });
      });
    }
    this.#isSaying = false;
  }

  /** Repeats a query until the database answers, for a while. What is said then arrives late, and perhaps twice. */
  async #again<T>(query: () => Promise<T>): Promise<T> {
    const { clock } = this.#deps;
    const { signal } = this.#over;
    const untilMs = clock.monotonicMs() + AGAIN_MS_MAX;
    for (;;) {
      try {
        return await query();
      } catch (error) {
        const isLate = clock.monotonicMs() >= untilMs;
        if (isLate || signal.aborted || systemCodeOf(error) === RUN_GONE) throw error;
        await clock.sleep(AGAIN_MS, signal);
      }
    }
  }

  async #sayThese(some: readonly { channel: string; text: string }[]): Promise<void> {
    const isLong = ({ text }: { text: string }) => Buffer.byteLength(text) > NOTIFICATION_BYTES_MAX;
    for (const { channel, text } of some.filter(isLong)) {
      await this.#database.query(`select pg_notify($1, '${ROW}' || cluster.keep($2))`, [channel, text]);
    }
    const short = some.filter((it) => !isLong(it));
    if (short.length === 0) return;
    await this.#database.query(
      'select pg_notify(channel, text) from unnest($1::text[], $2::text[]) as t (channel, text)',
      [short.map(({ channel }) => channel), short.map(({ text }) => text)],
    );
  }
}
