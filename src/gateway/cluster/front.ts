import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { takeBytes } from '../../lib/request-body.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { BOX_PATHS, SHARDS_HEADER } from '../../protocol/http-api.ts';
import { addressOf, carry, SHARED_ID_HEADER } from '../access/carried.ts';
import { answerRefusal, pathOf, ROWS_DEFAULT } from '../access/requests.ts';
import { CONSOLE_EVENTS_PATH } from '../doors/stream-routes.ts';
import { CREDIT_PATH, takeCredit } from './credit-carrier.ts';
import type { Destinations } from './destination.ts';
import {
  askWhileItMoves,
  CLIENT_HEADER,
  headersToPass,
  NOT_HERE,
  OWN_HEADER,
  type Part,
  type Peers,
  SECRET_HEADER,
  SHARD_HEADER,
} from './peers.ts';
import type { RunningShard, Shards } from './shards.ts';

export interface FrontDeps {
  clock: Clock;
  log: Logger;
  random: Random;
  /** A secret that only the members know. */
  secret: string;
  count: number;
  shards: Shards;
  peers: Peers;
  destinations: Destinations;
}

/**
 * Accepts every request that reaches a member, and has the right shard answer it. `own` answers its paths for callers.
 *
 * Theory. A caller may use any member, because he cannot know where a shard runs. The front reads from the request which
 * account, box or partner it names, and finds the shard by that. It hands the request to the shard in this process, or
 * sends it to the member that runs the shard. Some requests concern all shards: the front merges their answers.
 *
 * Invariants. A request that another member has sent is never sent on. The secret of the cluster marks such a request,
 * and goes to members only. A change whose answer was lost is not sent again, because it may have been made. Something
 * does not exist only if every shard says so. The front changes neither path nor body: shards read them as they came.
 *
 * Tried and failed. A login sent to all shards at once counted as wrong once in each. A wait for the caller's request
 * ended too early, because Node destroys a request once its body is read.
 */
export function frontRoutes(app: FastifyInstance, deps: FrontDeps, own: Record<string, Handler>): void {
  const front = new Front(deps);
  for (const [path, handler] of Object.entries(own)) {
    app.get(path, (request, reply) =>
      front.isOfMember(request) ? front.answer(request, reply) : handler(request, reply),
    );
  }
  // The shard decides which types of bodies a call may have.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', takeBytes);
  app.route({
    method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    url: '/*',
    bodyLimit: Math.max(LIMITS.httpBodyBytesMax, LIMITS.messageBytesMax),
    handler: (request, reply) => front.answer(request, reply),
  });
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

class Front {
  readonly #deps: FrontDeps;

  constructor(deps: FrontDeps) {
    this.#deps = deps;
  }

  /** Returns whether a member has sent this request to one of the shards here. */
  isOfMember(request: FastifyRequest): boolean {
    return this.#hasSecret(request, SECRET_HEADER);
  }

  #hasSecret({ headers }: FastifyRequest, header: string): boolean {
    const told = headers[header];
    return typeof told === 'string' && equalSecrets(told, this.#deps.secret);
  }

  async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { destinations, shards } = this.#deps;
    const body = Buffer.isBuffer(request.body) ? request.body : undefined;
    if (this.isOfMember(request)) return this.#answerMember(request, reply, body);
    delete request.headers[SHARED_ID_HEADER];
    const to = await destinations.of(request, body);
    const [any] = shards.all();
    if (to === 'here') {
      return any === undefined ? this.#carry(0, request, reply, body) : hand(any, request, reply, body);
    }
    if (to === 'nowhere') {
      const reason = `shard: expected 0 to ${this.#deps.count - 1}`;
      return answerRefusal(request, reply, this.#deps.log, { code: 'E46', reason }, 404);
    }
    if (to === 'everywhere') return this.#orderEverywhere(request, reply, body);
    if (to === 'first' || to === 'merged') return this.#askAll(to, request, reply, body);
    return this.#carry(to.shard, request, reply, body);
  }

  /** Answers a request that another member has passed on. */
  async #answerMember(request: FastifyRequest, reply: FastifyReply, body: Buffer | undefined): Promise<FastifyReply> {
    const shard = this.#deps.shards.get(Number(request.headers[SHARD_HEADER]), isPush(request));
    if (shard === undefined) return reply.code(NOT_HERE).send();
    // A caller's request for this path is passed on like any other. It lacks the header of a member's own request.
    if (pathOf(request) === CREDIT_PATH && this.#hasSecret(request, OWN_HEADER))
      return reply.send({ result: await takeCredit(shard, body) });
    return hand(shard, request, reply, body, String(request.headers[CLIENT_HEADER] ?? ''));
  }

  /** Has a shard answer, here or at the member that runs it. Waits while the shard moves. */
  async #carry(
    index: number,
    request: FastifyRequest,
    reply: FastifyReply,
    body: Buffer | undefined,
  ): Promise<FastifyReply> {
    const { clock, shards, peers, log } = this.#deps;
    // The reply is wrapped in an object: awaiting a reply itself would wait for the end of its answer.
    const answerOnce = async () => {
      const shard = shards.get(index, isPush(request));
      if (shard !== undefined) return { to: hand(shard, request, reply, body) };
      const answer = await peers.ask(index, request, body);
      return answer && { to: pass(answer, reply) };
    };
    try {
      // Node destroys a request once its body is read. Only the answer shows whether the caller is still connected.
      const answered = await askWhileItMoves(clock, answerOnce, () => !reply.raw.closed);
      if (answered !== undefined) return answered.to;
    } catch (error) {
      const reason = `the gateway that runs shard ${index} has not answered: ${reasonOf(error)}`;
      return this.#unanswered(request, reply, reason);
    }
    log.warn('shard-not-running', { shard: index, path: pathOf(request) });
    const reason = `no gateway runs shard ${index} now; /healthz says why`;
    return answerRefusal(request, reply, log, { code: 'E05', reason }, 503);
  }

  #unanswered(request: FastifyRequest, reply: FastifyReply, reason: string): FastifyReply {
    return answerRefusal(request, reply, this.#deps.log, { code: 'E05', reason }, 502);
  }

  /** Sends an order of `/_mock` to all shards, under one id. */
  async #orderEverywhere(
    request: FastifyRequest,
    reply: FastifyReply,
    body: Buffer | undefined,
  ): Promise<FastifyReply> {
    const { count, random, peers } = this.#deps;
    request.headers[SHARED_ID_HEADER] = random.uuid();
    const answers = await Promise.all(peers.parts(this.#indexes(), request, body));
    const known = answers.filter((it) => it !== undefined);
    const part = known.find(({ status }) => status >= 400) ?? known[0];
    if (part === undefined || known.length < count) {
      const reason = `${count - known.length} shards have not taken it: DELETE ${pathOf(request)} ends it in the others`;
      return this.#unanswered(request, reply, reason);
    }
    return passPart(part, reply);
  }

  async #askAll(
    how: 'first' | 'merged',
    request: FastifyRequest,
    reply: FastifyReply,
    body: Buffer | undefined,
  ): Promise<FastifyReply> {
    const { count, shards, peers } = this.#deps;
    // One shard is asked first, so that a wrong login counts once and not in every shard.
    const [near = 0] = shards.all().map(({ index }) => index);
    const [asking] = peers.parts([near], request, body);
    const nearest = await asking;
    if (nearest !== undefined && LOGIN_REFUSED.includes(nearest.status)) return passPart(nearest, reply);
    // A DELETE ends something in all shards.
    const isEnough = how === 'first' && request.method !== 'DELETE';
    if (isEnough && nearest !== undefined && nearest.status < 400) return passPart(nearest, reply);
    const rest = peers.parts(
      this.#indexes().filter((index) => index !== near),
      request,
      body,
    );
    if (isEnough) {
      const found = await Promise.any(rest.map(goodPart)).catch(() => undefined);
      if (found !== undefined) return passPart(found, reply);
    }
    const answers = [nearest, ...(await Promise.all(rest))];
    const known = answers.filter((it) => it !== undefined);
    // The answer is 404 only if every shard says so.
    if (known.length < count) return this.#unanswered(request, reply, `${count - known.length} shards did not answer`);
    const worst = known.reduce((a, b) => (severityOf(b) > severityOf(a) ? b : a));
    if (how === 'first') return passPart(known.find(({ status }) => status < 400) ?? worst, reply);
    if (worst.status >= 400) return passPart(worst, reply);
    reply.header(SHARDS_HEADER, String(count));
    const { merge, mergeCsv } = await import('./merge.ts');
    const bodies = known.map((it) => it.body);
    if (isCsv(worst)) return reply.headers({ ...worst.headers, 'content-length': undefined }).send(mergeCsv(bodies));
    return reply
      .code(worst.status)
      .type('application/json; charset=utf-8')
      .send(await merge(bodies, limitOf(request)));
  }

  #indexes(): number[] {
    return Array.from({ length: this.#deps.count }, (_, index) => index);
  }
}

/** Ranks answers: a shard that could not answer comes before a refusal, and a refusal before "not found". */
function severityOf({ status }: Part): number {
  return status === 404 ? 400 : status;
}

/** Statuses of wrong or forbidden logins. */
const LOGIN_REFUSED: readonly number[] = [401, 403, 429];

/** Returns the answer if it is not a refusal. Rejects otherwise. */
async function goodPart(asking: Promise<Part | undefined>): Promise<Part> {
  const part = await asking;
  if (part === undefined || part.status >= 400) throw new Error('refused');
  return part;
}

function passPart({ status, headers, body }: Part, reply: FastifyReply): FastifyReply {
  return reply.code(status).headers(headers).send(body);
}

function isCsv({ headers }: Part): boolean {
  return String(headers['content-type']).startsWith('text/csv');
}

/** These lists are limited to a default number of rows, unless the query asks for more. */
const PAGED = /\/(?:orders|payments|callbacks|credits|sales)$/;
const asked = z.object({ limit: z.coerce.number().int().min(1) });

/** Returns the number of rows that the query asks for. */
function limitOf(request: FastifyRequest): number {
  const named = asked.safeParse(request.query).data?.limit;
  return named ?? (PAGED.test(pathOf(request)) ? ROWS_DEFAULT : Number.POSITIVE_INFINITY);
}

/** Answers that never end by themselves. */
export const STREAMS: readonly string[] = [BOX_PATHS.stream, CONSOLE_EVENTS_PATH];

/** Returns whether the request waits for the confirmation of a box. */
function isPush(request: FastifyRequest): boolean {
  return request.method === 'POST' && /\/send-qr$|^\/admin\/v1\/sales$/.test(pathOf(request));
}

/** Has a shard of this member answer. */
function hand(
  shard: RunningShard,
  request: FastifyRequest,
  reply: FastifyReply,
  body: Buffer | undefined,
  address = addressOf(request),
): FastifyReply {
  reply.hijack();
  carry(request.raw, { body, address });
  // The shard itself decodes the escapes in the path, once.
  request.raw.url = request.originalUrl;
  if (!STREAMS.includes(pathOf(request)) && !reply.raw.closed) {
    const pushes = isPush(request) ? 1 : 0;
    shard.inHand += 1;
    shard.pushesInHand += pushes;
    reply.raw.once('close', () => {
      shard.inHand -= 1;
      shard.pushesInHand -= pushes;
    });
  }
  shard.gateway.handle(request.raw, reply.raw);
  return reply;
}

/** Passes on the answer of another member. */
function pass(answer: IncomingMessage, reply: FastifyReply): FastifyReply {
  reply.hijack();
  const { raw } = reply;
  // The caller has disconnected before this head came. Nothing else would end a stream.
  if (raw.closed) {
    answer.destroy();
    return reply;
  }
  raw.writeHead(answer.statusCode ?? 502, headersToPass(answer.headers));
  // An event stream reports at once that it has begun. The head of any other answer goes in one packet with its body.
  if (answer.headers['content-type']?.startsWith('text/event-stream') === true) raw.flushHeaders();
  answer.pipe(raw);
  answer.once('error', () => raw.destroy());
  raw.once('close', () => answer.destroy());
  return reply;
}
