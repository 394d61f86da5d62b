import { reasonOf } from '../../lib/errors.ts';
import { parseJson } from '../../lib/http-client.ts';
import type { Logger } from '../../lib/log.ts';
import type { News } from '../common/place.ts';
import type { DatabaseSession } from './database-session.ts';
import { toldNews } from './said.ts';

/** At most this many news wait for the database. Beyond that, the oldest is dropped. */
const WAITING_MAX = 1_000;

/** Tells news to all gateways by a table, and reads those of the others: none is lost, and none comes twice. */
export class Newsstand {
  readonly #run: string;
  readonly #database: DatabaseSession;
  readonly #log: Logger;
  readonly #waiting: { text: string; settle(isStored: boolean): void }[] = [];
  #sending: Promise<void> | undefined;
  #reader: ((news: News) => void) | undefined;
  /** The newest number that was read. Undefined before the first look: a gateway that joins reads no older news. */
  #readSeq: number | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(run: string, database: DatabaseSession, log: Logger) {
    this.#run = run;
    this.#database = database;
    this.#log = log;
  }

  /** Begins to pass on the news of others. */
  begin(reader: (news: News) => void): void {
    this.#reader = reader;
  }

  /** News that cannot be stored now wait for `flush`. Settles with whether they were stored. */
  tell(news: News): Promise<boolean> {
    const text = JSON.stringify({ by: this.#run, news });
    return new Promise((settle) => {
      this.#waiting.push({ text, settle });
      if (this.#waiting.length > WAITING_MAX) this.#waiting.shift()?.settle(false);
      void this.flush();
    });
  }

  /** Sends the waiting news in their order. Never throws. */
  flush(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** Gives up the news that wait. */
  close(): void {
    for (const { settle } of this.#waiting.splice(0)) settle(false);
  }

  /** Reads the news since the last time. Rejects without an answer. */
  read(): Promise<void> {
    const reading = this.#reading.then(() => this.#read());
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  async #send(): Promise<void> {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      try {
        await this.#database.query('select cluster.tell($1)', [next.text]);
      } catch (error) {
        this.#log.warn('news-not-sent', { reason: reasonOf(error) });
        return;
      }
      if (this.#waiting[0] === next) this.#waiting.shift();
      next.settle(true);
    }
  }

  async #read(): Promise<void> {
    const { rows } = await this.#database.query<{ seq: string; text: string | null }>(
      this.#readSeq === undefined
        ? 'select coalesce(max(seq), 0) as seq, null as text from cluster.news'
        : 'select seq, text from cluster.news where seq > $1 order by seq',
      this.#readSeq === undefined ? [] : [this.#readSeq],
    );
    for (const { seq, text } of rows) {
      this.#readSeq = Number(seq);
      if (text !== null) this.#take(text);
    }
  }

  #take(text: string): void {
    const parsed = toldNews.safeParse(parseJson(text));
    if (!parsed.success) this.#log.warn('news-refused', { reason: 'it was sent by a gateway of another version' });
    else if (parsed.data.by !== this.#run) this.#reader?.(parsed.data.news);
  }
}
