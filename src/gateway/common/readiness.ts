import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Clock, withDeadline } from '../../lib/clock.ts';

/** A proxy that has asked within this time watches this process: proxies ask every few seconds. */
const WATCHED_MS = 5_000;
/** A process that stops gives its proxy this time to ask once more before the port closes. HAProxy asks every 500 ms in our sample. */
const ASK_AGAIN_MS = 600;
const STOPPING = 'it is stopping';

/** Answers `/readyz`: reports to a proxy whether this process accepts calls. */
export class Readiness {
  readonly #clock: Clock;
  readonly #problem: () => Promise<string | undefined>;
  readonly #told = Promise.withResolvers<void>();
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #isStopping = false;

  /** `problem` returns why the process accepts no calls, or undefined. It must settle in bounded time. */
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

  /** Returns why this process accepts no calls, or undefined if it does. */
  async problem(): Promise<string | undefined> {
    const reason = this.#isStopping ? STOPPING : await this.#problem();
    return this.#isStopping ? STOPPING : reason;
  }

  /** Refuses all calls from now on. Settles once the proxy that watches has asked again, at once if none watches. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const isWatched = this.#clock.monotonicMs() - this.#askedAtMs < WATCHED_MS;
    if (isWatched) await withDeadline(this.#clock, ASK_AGAIN_MS, this.#told.promise);
  }
}
