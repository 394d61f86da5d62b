import { execFile } from 'node:child_process';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFile, stat } from 'node:fs/promises';
import { isIP, type LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import { type Clock, withAbortAfter } from './clock.ts';
import { reasonOf, systemCodeOf } from './errors.ts';

const HOSTS_FILE = '/etc/hosts';
const HOSTS_BYTES_MAX = 1_048_576;
/** Limits one name, over all name servers and tries. */
const LOOKUP_TIMEOUT_MS = 4000;
/** Limits one name if an expired answer is known (RFC 8767, section 5). */
const STALE_ANSWER_TIMEOUT_MS = 1500;
/** Limits one try. Each further try waits twice as long. */
const TRY_TIMEOUT_MS = 1000;
const TRIES = 4;
/** At most this many lookups run at the same time. */
const LOOKUPS_MAX = 200;
/** At most this many lookups by the system run at the same time, because each is a process. */
const SYSTEM_LOOKUPS_MAX = 4;
const SYSTEM_ANSWER_BYTES_MAX = 65_536;
const KNOWN_MAX = 1000;
const TTL_MAX_SECONDS = 3600;
/** The system's answers state no lifetime, so they have this one. */
const SYSTEM_TTL_SECONDS = 60;
/** For this long, no lookup follows a failure or the use of an expired answer. */
const FAILURE_KEPT_MS = 5000;
/** The resolver uses an expired answer for this long if no name server answers. */
const STALE_KEPT_MS = 86_400_000;

/** With these errors the name servers do not know the name. The system may, by search domains or mDNS. */
const UNKNOWN = ['ENOTFOUND', 'ENODATA', 'EBADNAME', 'ECONNREFUSED'];
const SYSTEM_LOOKUP = `require('node:dns').lookup(process.argv[1], { all: true }, (error, found) =>
  process.stdout.write(JSON.stringify(error ? [] : found)))`;

export interface HostResolverDeps {
  clock: Clock;
  /** Name servers that replace the system's, for example `127.0.0.1:53`. */
  servers?: readonly string[];
  hostsFile?: string;
}

interface Known {
  addresses: LookupAddress[];
  /** The reason why there are no addresses. */
  failure: Error | undefined;
  freshUntilMs: number;
  /** Until this time the resolver uses the answer if no name server answers. */
  goodUntilMs: number;
}

interface Asking {
  answer: Promise<LookupAddress[]>;
  waiters: number;
  stop: AbortController;
}

/**
 * Resolves host names without `getaddrinfo`. That function uses Node's four threads, so a silent name server would
 * block disk, TLS and the end of the process for seconds. Each lookup has a deadline, and concurrent requests for a
 * name share one. Answers are cached for their lifetime, and used for a day more if no name server answers.
 * `/etc/hosts` and `localhost` need no lookup. For names that the name servers do not know, a separate process asks the
 * system.
 *
 * `cacheable-lookup` does not replace it: that library falls back to `getaddrinfo`, has no deadline, cancellation or limit
 * of lookups, uses no expired answer, and takes the time from the system.
 */
export class HostResolver {
  readonly #deps: HostResolverDeps;
  readonly #known = new Map<string, Known>();
  readonly #asking = new Map<string, Asking>();
  readonly #closing = new AbortController();
  #hosts = { version: '', addresses: new Map<string, LookupAddress[]>() };
  #systemLookups = 0;

  constructor(deps: HostResolverDeps) {
    this.#deps = deps;
  }

  /** Replaces `dns.lookup` for a connection; `signal` cancels it. IPv4 comes first. */
  lookup(signal?: AbortSignal): LookupFunction {
    return (host, options, callback) => {
      const family = { IPv4: 4, IPv6: 6 }[String(options.family)] ?? Number(options.family ?? 0);
      this.resolve(host, signal).then(
        (all) => {
          const found = family === 0 ? all : all.filter((it) => it.family === family);
          const [first] = found;
          if (first === undefined) callback(failed(`${host} has no IPv${family} address`, 'ENOTFOUND'), []);
          else if (options.all === true) callback(null, found);
          else callback(null, first.address, first.family);
        },
        (error) => callback(error, []),
      );
    };
  }

  /**
   * Returns the addresses of a host, at least one. Rejects with a `code` within 4 s if there are none or no server
   * answers.
   */
  async resolve(host: string, signal?: AbortSignal): Promise<LookupAddress[]> {
    const name = host.toLowerCase().replace(/\.$/, '');
    if (isIP(name) !== 0) return [{ address: name, family: isIP(name) }];
    const here = (await this.#readHosts()).get(name);
    if (here !== undefined) return here;
    if (/^(.+\.)?localhost$/.test(name)) return LOOPBACK;
    const known = this.#known.get(name);
    if (known !== undefined && this.#deps.clock.monotonicMs() < known.freshUntilMs) return answerOf(known);
    return this.#wait(name, signal);
  }

  /** Cancels all lookups, including later ones. */
  close(): void {
    this.#closing.abort(failed('the resolver is closed', 'ECANCELLED'));
  }

  async #wait(name: string, signal: AbortSignal | undefined): Promise<LookupAddress[]> {
    const signals = [this.#closing.signal, ...(signal === undefined ? [] : [signal])];
    const ended = AbortSignal.any(signals);
    ended.throwIfAborted();
    const asking = this.#asking.get(name) ?? this.#begin(name);
    asking.waiters += 1;
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(ended.reason);
    ended.addEventListener('abort', abort, { once: true });
    try {
      return await Promise.race([asking.answer, aborted.promise]);
    } finally {
      ended.removeEventListener('abort', abort);
      asking.waiters -= 1;
      if (asking.waiters === 0) {
        this.#forget(name, asking);
        asking.stop.abort(failed(`the lookup of ${name} was cancelled`, 'ECANCELLED'));
      }
    }
  }

  #begin(name: string): Asking {
    if (this.#asking.size >= LOOKUPS_MAX) throw failed(`${LOOKUPS_MAX} other names are being looked up`, 'EAGAIN');
    const stop = new AbortController();
    const asking: Asking = { stop, waiters: 0, answer: this.#ask(name, stop.signal) };
    this.#asking.set(name, asking);
    const forget = () => this.#forget(name, asking);
    asking.answer.then(forget, forget);
    return asking;
  }

  #forget(name: string, asking: Asking): void {
    if (this.#asking.get(name) === asking) this.#asking.delete(name);
  }

  /** Looks a name up and caches the answer. */
  async #ask(name: string, stop: AbortSignal): Promise<LookupAddress[]> {
    const { clock } = this.#deps;
    const before = this.#known.get(name);
    const mayStandIn = before !== undefined && clock.monotonicMs() < before.goodUntilMs;
    const withinMs = mayStandIn ? STALE_ANSWER_TIMEOUT_MS : LOOKUP_TIMEOUT_MS;
    try {
      const { addresses, ttlSeconds } = await withAbortAfter(clock, withinMs, stop, (signal) =>
        this.#find(name, signal),
      );
      const freshUntilMs = clock.monotonicMs() + Math.min(ttlSeconds, TTL_MAX_SECONDS) * 1000;
      const goodUntilMs = freshUntilMs + STALE_KEPT_MS;
      this.#remember(name, { addresses, failure: undefined, freshUntilMs, goodUntilMs });
      return addresses;
    } catch (error) {
      if (stop.aborted) throw error;
      const failure = error instanceof Error ? error : new Error(String(error));
      const freshUntilMs = clock.monotonicMs() + FAILURE_KEPT_MS;
      if (mayStandIn && systemCodeOf(error) !== 'ENOTFOUND') {
        this.#remember(name, { ...before, freshUntilMs });
        return before.addresses;
      }
      if (systemCodeOf(error) !== 'EAGAIN')
        this.#remember(name, { addresses: [], failure, freshUntilMs, goodUntilMs: 0 });
      throw failure;
    }
  }

  #remember(name: string, known: Known): void {
    this.#known.delete(name);
    this.#known.set(name, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  async #find(name: string, signal: AbortSignal): Promise<{ addresses: LookupAddress[]; ttlSeconds: number }> {
    const found = name.endsWith('.local') ? [] : await this.#askServers(name, signal);
    if (found.length > 0) {
      const addresses = found.map(({ address }) => ({ address, family: isIP(address) }));
      return { addresses, ttlSeconds: Math.min(...found.map((it) => it.ttl)) };
    }
    return { addresses: await this.#askSystem(name, signal), ttlSeconds: SYSTEM_TTL_SECONDS };
  }

  /** Returns the answers of the name servers; empty if they do not know the name. Rejects if they do not answer. */
  async #askServers(name: string, signal: AbortSignal): Promise<{ address: string; ttl: number }[]> {
    // A separate resolver for each lookup can be cancelled alone, and reads the current name server configuration.
    const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES });
    if (this.#deps.servers !== undefined) resolver.setServers(this.#deps.servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    const answers = await Promise.allSettled([
      resolver.resolve4(name, { ttl: true }),
      resolver.resolve6(name, { ttl: true }),
    ]);
    signal.removeEventListener('abort', cancel);
    const found = answers.flatMap((it) => (it.status === 'fulfilled' ? it.value : []));
    if (found.length > 0) return found;
    const errors = answers.flatMap((it) => (it.status === 'rejected' ? [it.reason as unknown] : []));
    const worst = errors.find((it) => !UNKNOWN.includes(systemCodeOf(it) ?? ''));
    if (worst === undefined) return [];
    if (!['ECANCELLED', 'ETIMEOUT'].includes(systemCodeOf(worst) ?? '')) throw worst;
    throw failed(`no name server answers for ${name}`, 'ETIMEDOUT');
  }

  async #askSystem(name: string, signal: AbortSignal): Promise<LookupAddress[]> {
    if (this.#systemLookups >= SYSTEM_LOOKUPS_MAX) {
      throw failed(`${SYSTEM_LOOKUPS_MAX} other lookups by the system are running`, 'EAGAIN');
    }
    this.#systemLookups += 1;
    try {
      const limits = { signal, killSignal: 'SIGKILL', maxBuffer: SYSTEM_ANSWER_BYTES_MAX } as const;
      const { stdout } = await promisify(execFile)(process.execPath, ['-e', SYSTEM_LOOKUP, name], limits);
      const found = JSON.parse(stdout) as LookupAddress[];
      if (found.length > 0) return found;
    } catch (error) {
      throw failed(`the system cannot resolve ${name}: ${reasonOf(error)}`, 'ETIMEDOUT');
    } finally {
      this.#systemLookups -= 1;
    }
    throw failed(`there is no host ${name}`, 'ENOTFOUND');
  }

  /** Reads the current hosts file; returns an empty map if there is none. */
  async #readHosts(): Promise<ReadonlyMap<string, LookupAddress[]>> {
    const path = this.#deps.hostsFile ?? HOSTS_FILE;
    const file = await stat(path).catch(() => undefined);
    const version = file === undefined ? '' : `${file.ino} ${file.mtimeMs} ${file.size}`;
    if (version !== this.#hosts.version) {
      const isRead = file?.isFile() === true && file.size <= HOSTS_BYTES_MAX;
      const text = isRead ? await readFile(path, 'utf8').catch(() => '') : '';
      this.#hosts = { version, addresses: parseHosts(text) };
    }
    return this.#hosts.addresses;
  }
}

const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** Maps host names to addresses, see hosts(5). */
function parseHosts(text: string): Map<string, LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) {
      const all = hosts.get(name.toLowerCase()) ?? [];
      if (!all.some((it) => it.address === address)) all.push({ address, family });
      hosts.set(
        name.toLowerCase(),
        all.toSorted((a, b) => a.family - b.family),
      );
    }
  }
  return hosts;
}

function answerOf({ addresses, failure }: Known): LookupAddress[] {
  if (failure !== undefined) throw failure;
  return addresses;
}

function failed(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
