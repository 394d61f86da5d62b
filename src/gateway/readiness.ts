import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Clock, withDeadline } from '../lib/clock.ts';

/** Whoever has asked within this time watches: a proxy asks every few seconds at the latest. */
const WATCHED_MS = 5_000;
/** For a proxy to ask once more when this process stops, before its door closes. HAProxy asks every 500 ms in our sample. */
const ASK_AGAIN_MS = 600;
const STOPPING = 'it is stopping';

/** Whether this process takes calls now, for a proxy in front: the answer of `/readyz`. */
export class Readiness {
  readonly #clock: Clock;
  readonly #problem: () => Promise<string | undefined>;
  readonly #told = Promise.withResolvers<void>();
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #isStopping = false;

  /** `problem` says why it takes none, and settles in bounded time; undefined while it does. */
  constructor(clock: Clock, problem: () => Promise<string | undefined>) {
    this.#clock = clock;
    this.#problem = problem;
  }

  /** Answers a proxy. */
  async answer(_request: FastifyRequest, reply: FastifyReply): Promise<object> {
    this.#askedAtMs = this.#clock.monotonicMs();
    const reason = await this.problem();
    if (reason === undefined) return { status: 'ok' };
    if (this.#isStopping) this.#told.resolve();
    return reply.code(503).send({ status: 'failed', reason });
  }

  /** Why this process takes no calls; undefined if it does. */
  async problem(): Promise<string | undefined> {
    const reason = this.#isStopping ? STOPPING : await this.#problem();
    return this.#isStopping ? STOPPING : reason;
  }

  /** From now on it takes none. Settles once the proxy that watches it has asked again, at once if none does. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const isWatched = this.#clock.monotonicMs() - this.#askedAtMs < WATCHED_MS;
    if (isWatched) await withDeadline(this.#clock, ASK_AGAIN_MS, this.#told.promise);
  }
}
