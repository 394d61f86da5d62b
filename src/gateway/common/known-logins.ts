import { createHmac } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';
import { KNOWN_LOGINS_MAX } from '../store/repositories/credentials.ts';
import type { Store } from '../store/store.ts';
import { lookRegularly } from './shared-work.ts';
import type { World } from './world.ts';

const KEY_BYTES = 32;
/** Interval of writes. A killed gateway forgets at most the new logins of this time. */
const WRITE_EVERY_MS = 3_000;
/** Digests per write; one write takes a few milliseconds. */
const WRITE_MAX = 200;

/**
 * Remembers which users have logged in from which addresses. The digests are keyed, so the store has neither names nor addresses. Beyond
 * the limit the one with the oldest login is forgotten.
 */
export class KnownLogins {
  readonly #key: string;
  readonly #digests = new Set<string>();
  readonly #onNew: (digest: string) => void;

  constructor(key = systemRandom.secret(KEY_BYTES), onNew: (digest: string) => void = () => undefined) {
    this.#key = key;
    this.#onNew = onNew;
  }

  digestOf(user: string, network: string): string {
    return createHmac('sha256', this.#key).update(`${network} ${user}`).digest('base64');
  }

  has(digest: string): boolean {
    return this.#digests.has(digest);
  }

  add(digest: string): void {
    const isNew = !this.#digests.has(digest);
    this.learn(digest);
    if (isNew) this.#onNew(digest);
  }

  /** Adds a digest that the store already has. */
  learn(digest: string): void {
    addBounded(this.#digests, digest);
  }
}

/**
 * Loads the known logins from the store. New ones are written to it until `close`, and those of other gateways are read.
 * Rejects when the store cannot be read.
 */
export async function openKnownLogins(
  world: Pick<World, 'random' | 'clock' | 'log' | 'place'>,
  store: Store,
): Promise<{ known: KnownLogins; close: () => Promise<void> }> {
  const { random, clock, log } = world;
  const key = await store.setting('known-logins-key', () => random.secret(KEY_BYTES));
  const writer = new KnownLoginWriter(clock, log, store);
  const known = new KnownLogins(key, (digest) => writer.keep(digest));
  let readSeq = 0;
  // Two gateways may write at once, and the later number be readable first. The other login stays unknown here.
  const read = async () => {
    for (const { digest, seq } of await store.knownLogins.since(readSeq)) {
      known.learn(digest);
      readSeq = seq;
    }
  };
  await read();
  const over = new AbortController();
  const reading = lookRegularly(world, 'known logins', over.signal, read);
  const close = async () => {
    over.abort();
    await reading;
    await writer.close();
  };
  return { known, close };
}

/** Writes new digests in the background: a login does not wait for the disk. */
class KnownLoginWriter {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #store: Store;
  readonly #unwritten = new Set<string>();
  readonly #closing = new AbortController();
  #writing: Promise<void> | undefined;
  #nextWriteAtMs = 0;
  #hasFailed = false;

  constructor(clock: Clock, log: Logger, store: Store) {
    this.#clock = clock;
    this.#log = log;
    this.#store = store;
  }

  keep(digest: string): void {
    addBounded(this.#unwritten, digest);
    if (!this.#closing.signal.aborted) this.#writing ??= this.#run();
  }

  /** Settles once all are written, or the store has failed. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
    let goesOn = true;
    while (goesOn && this.#unwritten.size > 0) goesOn = await this.#write();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#unwritten.size > 0) {
      const waitMs = this.#nextWriteAtMs - this.#clock.monotonicMs();
      if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
      if (signal.aborted) break;
      this.#nextWriteAtMs = this.#clock.monotonicMs() + WRITE_EVERY_MS;
      await this.#write();
    }
    this.#writing = undefined;
  }

  /** Returns whether the write succeeded. */
  async #write(): Promise<boolean> {
    const digests = [...this.#unwritten].slice(0, WRITE_MAX);
    try {
      await this.#store.knownLogins.add(digests);
    } catch (error) {
      if (!this.#hasFailed) this.#log.warn('known-logins-not-stored', { reason: reasonOf(error) });
      this.#hasFailed = true;
      return false;
    }
    for (const digest of digests) this.#unwritten.delete(digest);
    this.#hasFailed = false;
    return true;
  }
}

function addBounded(digests: Set<string>, digest: string): void {
  digests.delete(digest);
  digests.add(digest);
  const [oldest] = digests;
  if (digests.size > KNOWN_LOGINS_MAX && oldest !== undefined) digests.delete(oldest);
}
