import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import { basicCredentials } from '../../lib/http-server.ts';
import { takeBytes } from '../../lib/request-body.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { BOX_CHALLENGE_HEADER, BOX_PATHS, BOX_SESSION_HEADER } from '../../protocol/http-api.ts';
import { BOX_ALIVE_MS, unpostedMaxMs } from '../../protocol/messages.ts';
import { addressOf } from '../access/carried.ts';
import { answerRefusal, isLoggedIn, openStream } from '../access/requests.ts';
import { connectionToEvict } from '../boxes/connection.ts';
import type { BoxStream, HttpStreams, Sender } from '../boxes/http-streams.ts';
import { PostsElsewhere } from '../boxes/posts-elsewhere.ts';
import { spreadMsFor } from '../boxes/welcome.ts';
import type { BoxWire } from '../boxes/wire.ts';
import { boxPasswordOf } from '../common/logins.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';

/**
 * A box may have this many open streams: the one in use, and others that have not ended. One more ends one that is not
 * in use.
 */
const STREAMS_PER_BOX_MAX = 4;

/** A box proves its identity itself. */
const OWN = { access: 'own' } as const;

const sessionHeader = z.uuid();

/** The property of a request that holds its sender. */
const SENDER = 'sender';
const senderOf = (request: FastifyRequest) => request.getDecorator<Sender>(SENDER);

/**
 * Registers the routes for boxes over HTTP (PROTOCOL.md, clause BOX-HTTP). Returns a function that ends every stream.
 */
export function boxRoutes(
  scope: FastifyInstance,
  world: World,
  stored: Stored,
  { wire, streams }: { wire: BoxWire; streams: HttpStreams },
): () => void {
  const { log } = world;
  const elsewhere = new PostsElsewhere(world);
  scope.decorateRequest(SENDER, null);
  scope.addHook('onRequest', (request, reply) => identify(request, reply, { streams, elsewhere }, world, stored));
  scope.addContentTypeParser('application/jose', takeBytes);
  const waiting = new Set<string>();
  scope.addHook('onSend', async (_request, reply) => {
    if (reply.statusCode >= 500) reply.header('retry-after', String(retryAfterSeconds(waiting.size)));
  });

  scope.get(BOX_PATHS.stream, { config: OWN }, async (request, reply) => {
    const problem = await problemOf(senderOf(request), streams, world);
    const { terminalCode } = senderOf(request);
    if (problem?.code === 'E05') waiting.add(terminalCode);
    else waiting.delete(terminalCode);
    if (problem !== undefined) return answerRefusal(request, reply, log, problem, problem.code === 'E46' ? 409 : 503);
    openBoxStream(request, reply, world, { wire, streams });
    return reply;
  });

  scope.post(BOX_PATHS.messages, { config: OWN, bodyLimit: LIMITS.messageBytesMax }, async (request, reply) => {
    const sender = senderOf(request);
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const { status, reason } =
      streams.get(sender) === undefined
        ? await elsewhere.post(sender, basicCredentials(request)?.password ?? '', body.toString('utf8'))
        : await streams.take(sender, body);
    if (status === 202) return reply.code(202).send();
    const code = status === 503 ? 'E05' : 'E46';
    if (reason !== undefined) return answerRefusal(request, reply, log, { code, reason }, status);
    return reply.code(status).send({ status: 'FAILED', message: code });
  });

  return () => streams.end();
}

/**
 * Returns after how many seconds a box without a stream asks again: soon, because the database may be back, but so that
 * this many boxes do not come faster than their hellos are answered.
 */
function retryAfterSeconds(boxes: number): number {
  return Math.max(1, Math.ceil(spreadMsFor(boxes) / 1_000));
}

/** Returns why this session gets no stream here. Otherwise the other gateways know that it has one. */
async function problemOf(
  sender: Sender,
  streams: HttpStreams,
  { place }: World,
): Promise<{ code: 'E46' | 'E05'; reason: string } | undefined> {
  const { terminalCode, sessionId } = sender;
  const hasStream = () => streams.get(sender) !== undefined;
  try {
    const isOpen = hasStream() || (await place.streamElsewhere(terminalCode, sessionId)) !== undefined;
    if (!isOpen) await place.streamOpened(terminalCode, sessionId);
    return isOpen || hasStream() ? { code: 'E46', reason: 'this session has a stream already' } : undefined;
  } catch (error) {
    return { code: 'E05', reason: `the database does not take the stream: ${reasonOf(error)}` };
  }
}

/** Returns the box that sent a request. Its password is not checked again in the session that it belongs to. */
async function identify(
  request: FastifyRequest,
  reply: FastifyReply,
  { streams, elsewhere }: { streams: HttpStreams; elsewhere: PostsElsewhere },
  { log }: World,
  { directory, logins }: Stored,
) {
  const { username: terminalCode = '', password } = basicCredentials(request) ?? {};
  const session = sessionHeader.safeParse(request.headers[BOX_SESSION_HEADER]);
  const sender = { terminalCode, sessionId: session.data ?? '' };
  if (!streams.isOpenedWith(password, sender) && !elsewhere.isAcceptedWith(password, sender)) {
    const expected = boxPasswordOf((await directory.box(terminalCode))?.secret);
    const attempt = { kind: 'box', username: terminalCode, isStrong: true, secret: password, expected } as const;
    const challenge = 'Basic realm="paybox box", charset="UTF-8"';
    if (!isLoggedIn(request, reply, attempt, { logins, log, challenge })) return reply;
  }
  if (!session.success) {
    return answerRefusal(request, reply, log, { code: 'E46', reason: `${BOX_SESSION_HEADER} is not a UUID` });
  }
  request.setDecorator<Sender>(SENDER, sender);
}

/** Opens the stream of a session, and adds it to the streams until it ends. */
function openBoxStream(
  request: FastifyRequest,
  reply: FastifyReply,
  { clock, random, place }: World,
  { wire: { hub, connect }, streams }: { wire: BoxWire; streams: HttpStreams },
): void {
  const sender = senderOf(request);
  const { terminalCode, sessionId } = sender;
  const { password = '' } = basicCredentials(request) ?? {};
  const own = streams.of(terminalCode);
  const isInUse = (it: BoxStream) => it.connection === hub.session(terminalCode)?.connection;
  if (own.length >= STREAMS_PER_BOX_MAX) connectionToEvict(own, (it) => it.address, isInUse)?.cut();

  const challenge = random.uuid();
  const events = openStream(reply, clock, { [BOX_CHALLENGE_HEADER]: challenge });
  const connection = connect(terminalCode, {
    transport: 'http',
    problem: () => undefined,
    send: (signed) => events.send({ data: signed }),
    end: () => events.end(),
  });
  const address = addressOf(request);
  const heardMs = clock.monotonicMs();
  const stream = { connection, challenge, password, address, heardMs, cut: () => events.cut() };
  streams.add(sender, stream);
  const silenceMaxMs = () => {
    const session = hub.session(terminalCode);
    return unpostedMaxMs(session?.connection === connection ? session.aliveMs : BOX_ALIVE_MS);
  };
  const silent = cutWhenSilent(stream, silenceMaxMs, events.ended, clock);
  void events.ended.then(async () => {
    streams.remove(sender, stream);
    place.streamEnded(terminalCode, sessionId);
    const silentMs = await silent;
    const why = silentMs === undefined ? 'its stream ended' : `it was silent for ${silentMs} ms`;
    hub.disconnected(terminalCode, { connection }, why);
  });
}

/**
 * Cuts a stream when its box posts nothing for too long (PROTOCOL.md, clause BOX-HTTP-3). Settles when the stream has
 * ended. Then returns that time, or undefined if the stream ended otherwise.
 */
async function cutWhenSilent(
  stream: BoxStream,
  silenceMaxMs: () => number,
  ended: Promise<void>,
  clock: Clock,
): Promise<number | undefined> {
  const over = new AbortController();
  void ended.then(() => over.abort());
  while (!over.signal.aborted) {
    const maxMs = silenceMaxMs();
    const leftMs = stream.heardMs + maxMs - clock.monotonicMs();
    if (leftMs <= 0) {
      stream.cut();
      return maxMs;
    }
    await clock.sleep(leftMs, over.signal);
  }
  return undefined;
}
