import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { basicCredentials } from '../../lib/http-server.ts';
import { takeBytes } from '../../lib/request-body.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { BOX_CHALLENGE_HEADER, BOX_PATHS, BOX_SESSION_HEADER } from '../../protocol/http-api.ts';
import { BOX_ALIVE_MS, unpostedMaxMs } from '../../protocol/messages.ts';
import { addressOf } from '../access/carried.ts';
import { answerRefusal, isLoggedIn, openStream } from '../access/requests.ts';
import { type BoxConnection, connectionToEvict } from '../boxes/connection.ts';
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

/** The stream of one session of a box. */
interface BoxStream {
  connection: BoxConnection;
  /** A hello on this stream must contain this challenge. */
  challenge: string;
  password: string;
  /** IP address of the box. */
  address: string;
  /** Monotonic time of the last signed message that the box posted. */
  heardMs: number;
  cut(): void;
}

/** The sender of a request. */
interface Sender {
  terminalCode: string;
  sessionId: string;
}

/** The property of a request that holds its sender. */
const SENDER = 'sender';
const senderOf = (request: FastifyRequest) => request.getDecorator<Sender>(SENDER);

/**
 * Registers the routes for boxes over HTTP (PROTOCOL.md, clause BOX-HTTP). Returns a function that ends every stream.
 */
export function boxRoutes(scope: FastifyInstance, world: World, stored: Stored, wire: BoxWire): () => void {
  const { clock, log } = world;
  const { hub, signer } = wire;
  const streams = new BoxStreams(world, wire);
  scope.decorateRequest(SENDER, null);
  scope.addHook('onRequest', (request, reply) => identify(request, reply, streams, world, stored));
  scope.addContentTypeParser('application/jose', takeBytes);

  scope.get(BOX_PATHS.stream, { config: OWN }, (request, reply) => {
    if (streams.get(senderOf(request)) === undefined) return streams.open(request, reply);
    const reason = 'this session has a stream already';
    return answerRefusal(request, reply, log, { code: 'E46', reason }, 409);
  });

  scope.post(BOX_PATHS.messages, { config: OWN, bodyLimit: LIMITS.messageBytesMax }, async (request, reply) => {
    const sender = senderOf(request);
    const { terminalCode: box, sessionId } = sender;
    const refuse = (reason: string, status = 400) =>
      answerRefusal(request, reply, log, { code: 'E46', reason }, status);
    const stream = streams.get(sender);
    if (stream === undefined) return refuse('a post without the stream of its session', 409);
    const message = await signer.verify(box, stream.challenge, Buffer.isBuffer(request.body) ? request.body : '');
    // The box repeats a post when the connection broke before the answer. The first one was accepted.
    if (!message.ok && message.code === 'MESSAGE_REPLAYED') {
      log.warn('message-refused', { box, code: message.code, reason: message.reason });
      return reply.code(202).send();
    }
    if (!message.ok) return refuse(`${message.code}: ${message.reason}`);
    if (message.value.sessionId !== sessionId) {
      return refuse(`a message of another session than the header ${BOX_SESSION_HEADER}`);
    }
    stream.heardMs = clock.monotonicMs();
    if (await hub.receive(box, stream.connection, message.value)) return reply.code(202).send();
    // The hub has logged the reason. The box ends its session, and sends unacknowledged reports again in the next one.
    return reply.code(503).send({ status: 'FAILED', message: 'E05' });
  });

  return () => streams.end();
}

/** Returns the box that sent a request. Its password is not checked again if it opened the stream of this session. */
async function identify(
  request: FastifyRequest,
  reply: FastifyReply,
  streams: BoxStreams,
  { log }: World,
  { directory, logins }: Stored,
) {
  const { username: terminalCode = '', password } = basicCredentials(request) ?? {};
  const session = sessionHeader.safeParse(request.headers[BOX_SESSION_HEADER]);
  const sender = { terminalCode, sessionId: session.data ?? '' };
  if (!streams.isOpenedWith(password, sender)) {
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

/** The open streams of all boxes. */
class BoxStreams {
  readonly #world: World;
  readonly #wire: BoxWire;
  /** By terminalCode and sessionId, oldest first. */
  readonly #streams = new Map<string, Map<string, BoxStream>>();

  constructor(world: World, wire: BoxWire) {
    this.#world = world;
    this.#wire = wire;
  }

  get({ terminalCode, sessionId }: Sender): BoxStream | undefined {
    return this.#streams.get(terminalCode)?.get(sessionId);
  }

  /** Returns true if the stream of this session was opened with this password. */
  isOpenedWith(password = '', sender: Sender): boolean {
    const opened = this.get(sender)?.password;
    return opened !== undefined && equalSecrets(password, opened);
  }

  open(request: FastifyRequest, reply: FastifyReply): void {
    const { hub, connect } = this.#wire;
    const { clock, random } = this.#world;
    const { terminalCode, sessionId } = senderOf(request);
    const { password = '' } = basicCredentials(request) ?? {};
    const own = this.#streams.get(terminalCode) ?? new Map<string, BoxStream>();
    this.#streams.set(terminalCode, own);
    const isInUse = (it: BoxStream) => it.connection === hub.session(terminalCode)?.connection;
    const isFull = own.size >= STREAMS_PER_BOX_MAX;
    if (isFull) connectionToEvict([...own.values()], (it) => it.address, isInUse)?.cut();

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
    own.set(sessionId, stream);
    const silenceMaxMs = () => {
      const session = hub.session(terminalCode);
      return unpostedMaxMs(session?.connection === connection ? session.aliveMs : BOX_ALIVE_MS);
    };
    const silent = cutWhenSilent(stream, silenceMaxMs, events.ended, clock);
    void events.ended.then(async () => {
      if (own.get(sessionId) === stream) own.delete(sessionId);
      if (own.size === 0 && this.#streams.get(terminalCode) === own) this.#streams.delete(terminalCode);
      const silentMs = await silent;
      const why = silentMs === undefined ? 'its stream ended' : `it was silent for ${silentMs} ms`;
      hub.disconnected(terminalCode, { connection }, why);
    });
  }

  end(): void {
    for (const own of this.#streams.values()) for (const { connection } of own.values()) connection.end();
  }
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
