import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../lib/clock.ts';
import type { EventStream } from '../../lib/event-stream.ts';
import { authorizationHeader } from '../../lib/http-client.ts';
import type { Logger } from '../../lib/log.ts';
import type { Authorizer } from '../access/authorizer.ts';
import { openStream } from '../access/requests.ts';
import { TOPICS } from '../common/changes.ts';
import { CONSOLE_EVENTS_PATH, WATCHERS_MAX } from '../doors/stream-routes.ts';
import type { ClusterView } from '../store/engines/cluster-database.ts';
import type { Peers } from './peers.ts';

/** Several changes of one list within this time are reported once, because all shards change together. */
const TOGETHER_MS = 50;
/** The shards of this version send lines of at most this many characters. */
const LINE_CHARS_MAX = 1_000;
/** Sent when the members, or the holders of shards, have changed. */
const CLUSTER_TOPIC = 'cluster';

export interface ConsoleEventsDeps {
  clock: Clock;
  log: Logger;
  peers: Peers;
  authorizer: Authorizer;
  /** A member reads the events of the shards with this token. */
  adminToken: string | undefined;
}

/** The stream that this member reads from one shard. */
interface Reading {
  /** The member that runs the shard. */
  holder: string;
  over: AbortController;
}

/**
 * Sends the events of all shards to the consoles at one member. While somebody reads, it reads one stream from each
 * shard, wherever the shard runs. After it has opened a stream again, all lists count as changed, because it may have
 * missed events.
 */
export class ConsoleEvents {
  readonly #deps: ConsoleEventsDeps;
  readonly #readers = new Set<EventStream>();
  readonly #readings = new Map<number, Reading>();
  readonly #changed = new Set<string>();
  #view: ClusterView = { members: [], holders: new Map() };
  #seen = '';

  constructor(deps: ConsoleEventsDeps) {
    this.#deps = deps;
  }

  /** Stores the view of the cluster, and follows the shards in it. */
  see(view: ClusterView): void {
    this.#view = view;
    const seen = JSON.stringify([view.members, [...view.holders]]);
    if (seen !== this.#seen) this.#tell(CLUSTER_TOPIC);
    this.#seen = seen;
    if (this.#readers.size > 0) this.#follow();
  }

  /** Answers a caller who may look with the events of all shards. Ends the oldest reader if there are too many. */
  async watch(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { authorizer } = this.#deps;
    const caller = await authorizer.authorize('look', request, reply);
    if (caller === undefined) return reply;
    const [oldest] = this.#readers;
    if (this.#readers.size >= WATCHERS_MAX) oldest?.end();
    const reader = openStream(reply, this.#deps.clock);
    this.#readers.add(reader);
    const release = authorizer.whenRevoked(caller, () => reader.end());
    void reader.ended.then(() => {
      release();
      this.#readers.delete(reader);
      if (this.#readers.size === 0) this.#stop();
    });
    this.#follow();
    return reply;
  }

  close(): void {
    for (const reader of this.#readers) reader.end();
    this.#stop();
  }

  #stop(): void {
    for (const { over } of this.#readings.values()) over.abort('nobody reads');
    this.#readings.clear();
  }

  #follow(): void {
    const { holders } = this.#view;
    for (const [shard, { holder, over }] of this.#readings) {
      if (holders.get(shard) === holder) continue;
      over.abort('the shard has moved');
      this.#readings.delete(shard);
    }
    for (const [shard, holder] of holders) {
      if (this.#readings.has(shard)) continue;
      const reading = { holder, over: new AbortController() };
      this.#readings.set(shard, reading);
      // A stream that ends is opened again at the next beat, at the member that then runs the shard.
      void this.#read(shard, reading.over.signal)
        .catch(() => undefined)
        .then(() => {
          if (this.#readings.get(shard) === reading) this.#readings.delete(shard);
        });
    }
  }

  async #read(shard: number, signal: AbortSignal): Promise<void> {
    const { peers, adminToken } = this.#deps;
    const answer = await peers.openStream(shard, CONSOLE_EVENTS_PATH, authorizationHeader(adminToken), signal);
    if (answer === undefined) return;
    if (answer.statusCode !== 200) {
      answer.destroy();
      return;
    }
    this.#tell(...TOPICS);
    let rest = '';
    for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop()?.slice(0, LINE_CHARS_MAX) ?? '';
      this.#tell(...lines.flatMap((line) => /^data: ([a-z]+)$/.exec(line)?.[1] ?? []));
    }
  }

  #tell(...topics: string[]): void {
    if (topics.length === 0 || this.#readers.size === 0) return;
    if (this.#changed.size === 0) void this.#deps.clock.sleep(TOGETHER_MS).then(() => this.#flush());
    for (const topic of topics) this.#changed.add(topic);
  }

  #flush(): void {
    const topics = [...this.#changed];
    this.#changed.clear();
    for (const reader of this.#readers) for (const data of topics) reader.send({ data });
  }
}
