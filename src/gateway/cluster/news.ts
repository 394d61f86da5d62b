import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { News } from '../common/shard.ts';

/** At most this many news wait for the database. Beyond that, the oldest is dropped. */
const WAITING_MAX = 1_000;
/** PostgreSQL limits a notification to 8,000 bytes. */
const REASON_CHARS_MAX = 500;

const reason = z.string().transform((text) => text.slice(0, REASON_CHARS_MAX));
const news = z.discriminatedUnion('about', [
  z.object({ about: z.literal('registry') }),
  z.object({ about: z.literal('signing-key') }),
  z.object({ about: z.literal('occurrence'), id: z.string(), by: z.int(), times: z.int() }),
  z.object({ about: z.literal('renew'), box: z.string(), reason }),
  z.object({ about: z.literal('expel'), box: z.string(), reason, disabled: z.boolean() }),
]);

const names = z.array(z.string()).optional();
/** The wrong logins at member `by`. */
const wrongLogins = z.object({
  about: z.literal('wrong-logins'),
  by: z.string(),
  addresses: names,
  users: names,
  pairs: names,
});
export type WrongLogins = z.output<typeof wrongLogins>;

interface NewsDeskDeps {
  clock: Clock;
  log: Logger;
  /** Sends a text to every member. */
  tell(text: string): Promise<void>;
  /** Called with the wrong logins that a member has sent. */
  heardLogins(told: WrongLogins): void;
}

/** Sends news between the shards of a cluster through the database. */
export class NewsDesk {
  readonly #deps: NewsDeskDeps;
  readonly #readers: ((news: News) => void)[] = [];
  #sending: Promise<void> | undefined;
  #again: Promise<void> | undefined;
  readonly #waiting: { text: string; settle(isStored: boolean): void }[] = [];

  constructor(deps: NewsDeskDeps) {
    this.#deps = deps;
  }

  onNews(reader: (news: News) => void): void {
    this.#readers.push(reader);
  }

  /** Sends news to every shard. News that cannot be stored now wait for `flush`. Returns whether they were stored. */
  tell(told: News): Promise<boolean> {
    const text = JSON.stringify('reason' in told ? { ...told, reason: told.reason.slice(0, REASON_CHARS_MAX) } : told);
    return new Promise((settle) => {
      this.#waiting.push({ text, settle });
      if (this.#waiting.length > WAITING_MAX) this.#waiting.shift()?.settle(false);
      void this.flush();
    });
  }

  /** Sends the waiting news in their order. If it is already sending, it sends once more afterwards. Never throws. */
  flush(): Promise<void> {
    if (this.#sending === undefined) {
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined;
      });
      return this.#sending;
    }
    this.#again ??= this.#sending.then(() => {
      this.#again = undefined;
      return this.flush();
    });
    return this.#again;
  }

  async #send(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await this.#deps.tell(next.text);
        next.settle(true);
      } catch (error) {
        this.#waiting.unshift(next);
        this.#deps.log.warn('news-not-sent', { reason: reasonOf(error) });
        return;
      }
    }
  }

  /** Reads a text that a member has sent. */
  heard(text: string): void {
    const parsed = z.union([news, wrongLogins]).safeParse(jsonOf(text));
    if (!parsed.success) this.#deps.log.warn('news-refused', { reason: 'it was sent by a gateway of another version' });
    else if (parsed.data.about === 'wrong-logins') this.#deps.heardLogins(parsed.data);
    else this.#read(parsed.data);
  }

  #read(told: News): void {
    for (const reader of this.#readers) reader(told);
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
