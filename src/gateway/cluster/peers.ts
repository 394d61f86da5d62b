import { Agent, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { FastifyRequest } from 'fastify';
import { type Clock, withAbortAfter } from '../../lib/clock.ts';
import { systemCodeOf } from '../../lib/errors.ts';
import { AnswerTooLong, openHttp, readBody } from '../../lib/http-client.ts';
import { TLS_FLOOR } from '../../lib/tls.ts';
import { BOX_PATHS } from '../../protocol/http-api.ts';
import { addressOf } from '../access/carried.ts';
import { pathOf } from '../access/requests.ts';
import type { ClusterView } from '../store/engines/cluster-database.ts';

/** Headers of a request that one member passes on to another. */
export const SHARD_HEADER = 'x-paybox-shard';
export const SECRET_HEADER = 'x-paybox-cluster';
/** Contains the secret in a member's own request. A request that it passes on for a caller never has this header. */
export const OWN_HEADER = 'x-paybox-own';
export const CLIENT_HEADER = 'x-paybox-client';

/** The longest wait for a shard that is moving. */
const SHARD_WAIT_MS = 8_000;
const SHARD_LOOK_MS = 50;
/** Misdirected Request (RFC 9110, section 15.5.20): this member does not run the shard now. */
export const NOT_HERE = 421;

const CONNECT_TIMEOUT_MS = 1_000;
/** This is longer than any call takes, because a push waits for its confirmation. */
const ANSWER_TIMEOUT_MS = 70_000;
/** The longest wait for one shard's part of a merged answer. */
const PART_TIMEOUT_MS = 3_000;
/** The longest wait until a credit is stored. A commit may take as long as the database needs. */
const POST_TIMEOUT_MS = 10_000;
const PART_BYTES_MAX = 8 * 1_048_576;

/** A request to a shard. */
interface Asking {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The IP address of the caller. */
  address: string;
  body: Buffer | undefined;
}

/** The answer of one shard. */
export interface Part {
  status: number;
  headers: Record<string, string | string[]>;
  body: Buffer;
}

/**
 * Asks again and again until there is an answer. Returns undefined when the time that a shard needs to move is over, or
 * when nobody waits for the answer.
 */
export async function askWhileItMoves<T>(
  clock: Clock,
  ask: () => Promise<T | undefined>,
  isWaitedFor = () => true,
): Promise<T | undefined> {
  const untilMs = clock.monotonicMs() + SHARD_WAIT_MS;
  do {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await clock.sleep(SHARD_LOOK_MS);
  } while (clock.monotonicMs() < untilMs && isWaitedFor());
  return undefined;
}

/** Sends requests to the other members of the cluster. */
export class Peers {
  readonly #clock: Clock;
  readonly #secret: string;
  readonly #agents: { 'http:': Agent; 'https:': TlsAgent };
  #view: ClusterView = { members: [], holders: new Map() };
  /** Requests that a member has not answered yet. */
  readonly #asked = new Map<string, Set<AbortController>>();

  /** `ca`: PEM of the authority that signed the certificates of the members. */
  constructor({ clock, secret, ca }: { clock: Clock; secret: string; ca?: Buffer | undefined }) {
    this.#agents = {
      'http:': new Agent({ keepAlive: true }),
      'https:': new TlsAgent({ keepAlive: true, ...TLS_FLOOR, ...(ca && { ca }) }),
    };
    this.#clock = clock;
    this.#secret = secret;
  }

  /** Stores the current view of the cluster. Ends the requests to members that are gone. */
  see(view: ClusterView): void {
    this.#view = view;
    const there = new Set(view.members.map(({ id }) => id));
    for (const [member, asked] of this.#asked) {
      if (!there.has(member)) for (const it of asked) it.abort(new Error('it is gone'));
    }
  }

  /** Sends a request to the member that runs this shard, and returns the head of its answer. Undefined without one. */
  ask(index: number, request: FastifyRequest, body: Buffer | undefined): Promise<IncomingMessage | undefined> {
    const isStream = pathOf(request) === BOX_PATHS.stream;
    return this.#ask(index, askingOf(request, body), isStream ? undefined : ANSWER_TIMEOUT_MS);
  }

  /** Opens a stream of the shard for this member. Undefined while nobody runs the shard. `over` ends the stream. */
  openStream(
    index: number,
    path: string,
    headers: Record<string, string>,
    over: AbortSignal,
  ): Promise<IncomingMessage | undefined> {
    return this.#ask(index, { method: 'GET', path, headers, address: '', body: undefined }, undefined, over);
  }

  async #ask(
    index: number,
    asking: Asking,
    timeoutMs: number | undefined,
    over?: AbortSignal,
  ): Promise<IncomingMessage | undefined> {
    const member = this.#view.members.find(({ id }) => id === this.#view.holders.get(index));
    if (member === undefined) return undefined;
    const gone = new AbortController();
    const asked = this.#asked.get(member.id) ?? new Set();
    this.#asked.set(member.id, asked.add(gone));
    const either = over === undefined ? gone.signal : AbortSignal.any([gone.signal, over]);
    const work = (signal: AbortSignal) => this.#send(member.url, index, asking, signal);
    try {
      const answer = await (timeoutMs === undefined
        ? work(either)
        : withAbortAfter(this.#clock, timeoutMs, either, work));
      if (answer.statusCode !== NOT_HERE) return answer;
      answer.resume();
      return undefined;
    } catch (error) {
      // No member has received the request, so it may be sent again.
      if (systemCodeOf(error) === 'ECONNREFUSED') return undefined;
      throw error;
    } finally {
      asked.delete(gone);
    }
  }

  /** Returns the whole answer of the shard. Undefined if there is none. */
  async read(index: number, request: FastifyRequest, body: Buffer | undefined): Promise<Part | undefined> {
    return this.#readOf(index, request, body).catch(() => undefined);
  }

  #readOf(index: number, request: FastifyRequest, body: Buffer | undefined): Promise<Part | undefined> {
    // A change may wait for a box or a partner.
    const timeoutMs = isReading(request) ? PART_TIMEOUT_MS : ANSWER_TIMEOUT_MS;
    return this.#read(index, askingOf(request, body), timeoutMs);
  }

  /**
   * Returns the answers of these shards, and waits for each while it moves. Undefined for a shard without an answer.
   */
  parts(indexes: readonly number[], request: FastifyRequest, body: Buffer | undefined): Promise<Part | undefined>[] {
    return indexes.map(async (index) => {
      const answered = await askWhileItMoves(this.#clock, async () => {
        try {
          const part = await this.#readOf(index, request, body);
          return part && { part };
        } catch {
          // A change is not requested twice, because it may have been made before its answer was lost.
          return isReading(request) ? undefined : { part: undefined };
        }
      });
      return answered?.part;
    });
  }

  #read(index: number, asking: Asking, timeoutMs: number): Promise<Part | undefined> {
    return withAbortAfter(this.#clock, timeoutMs, undefined, async (late) => {
      const answer = await this.#ask(index, asking, undefined, late);
      if (answer === undefined) return undefined;
      const whole = await readBody(answer, PART_BYTES_MAX);
      if (whole === undefined) throw new AnswerTooLong(PART_BYTES_MAX);
      return { status: answer.statusCode ?? 502, headers: headersToPass(answer.headers), body: whole };
    });
  }

  /** Sends a body to the shard for this member. Undefined while nobody runs the shard. Rejects without an answer. */
  post(index: number, path: string, body: string): Promise<Part | undefined> {
    const headers = { 'content-type': 'application/json', [OWN_HEADER]: this.#secret };
    const asking = { method: 'POST', path, headers, address: '', body: Buffer.from(body) };
    return this.#read(index, asking, POST_TIMEOUT_MS);
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  #send(
    url: string,
    index: number,
    { method, path, headers, address, body }: Asking,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const to = addressAt(url, path);
    return openHttp(to, {
      method,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-length': String(body.length) }),
        'x-forwarded-for': address,
        [CLIENT_HEADER]: address,
        [SHARD_HEADER]: String(index),
        [SECRET_HEADER]: this.#secret,
      },
      body,
      signal,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      agent: this.#agents[to.protocol === 'https:' ? 'https:' : 'http:'],
    });
  }
}

function isReading({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

function askingOf(request: FastifyRequest, body: Buffer | undefined): Asking {
  const passed = headersToPass(request.headers) as Record<string, string>;
  const { 'content-length': _length, [OWN_HEADER]: _own, ...headers } = passed;
  // The path is sent as it came. Each gateway decodes its escapes once, and all must read the same path.
  return { method: request.method, path: request.originalUrl, headers, address: addressOf(request), body };
}

/**
 * Returns the address of a request at another member. It must not resolve the target as a URL: `//host/path` would lead
 * to a host that the caller names, and send the secret of the cluster there.
 */
export function addressAt(member: string, target: string): URL {
  const path = target.startsWith('/') ? target : `/${target.replace(/^[a-z]+:\/\/[^/]*\/?/i, '')}`;
  return new URL(`${new URL(member).origin}${path}`);
}

/** Headers that concern one connection only (RFC 9110, section 7.6.1). */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'proxy-connection',
  'te',
  'trailer',
]);

/** Returns the headers that are passed on. */
export function headersToPass(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(([name, value]) => value !== undefined && !OF_CONNECTION.has(name));
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}
