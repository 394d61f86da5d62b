import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { BOX_CHALLENGE_HEADER, BOX_PATHS, BOX_SESSION_HEADER, BOX_SILENCE_MAX_MS } from '../../protocol/http-api.ts';
import type { BoxConnection } from '../boxes/connection.ts';
import { connectionToEvict } from '../boxes/giving-way.ts';
import type { MessageSigner } from '../boxes/message-signer.ts';
import type { BoxConfig } from '../config.ts';
import type { Directory } from '../directory.ts';
import type { BoxHub, LinkFaults } from '../faults/link-faults.ts';
import { boxPasswordOf, type Logins } from '../logins.ts';
import { isLoggedIn } from './login-answer.ts';
import { answerRefusal, basicCredentials, openStream } from './requests.ts';

/** Open streams of one box, the one in use and those not yet ended; one more ends another that is not in use. */
const STREAMS_PER_BOX_MAX = 4;

const sessionHeader = z.uuid();

export interface BoxRoutesDeps {
  hub: BoxHub;
  links: LinkFaults;
  seals: MessageSigner;
  directory: Directory;
  logins: Logins;
  clock: Clock;
  random: Random;
  log: Logger;
}

/** The stream of one session of a box. */
interface BoxStream {
  line: BoxConnection;
  /** What a hello on it has to answer. */
  challenge: string;
  /** Where it was opened from. */
  address: string;
  /** When the box last posted what it has sealed, on the monotonic clock. */
  heardMs: number;
  cut(): void;
}

/** The connection of boxes over HTTP (PROTOCOL.md, clause BOX-HTTP). Returns what ends every stream. */
export function boxRoutes(scope: FastifyInstance, deps: BoxRoutesDeps): () => void {
  const { hub, links, seals, clock, random, log } = deps;
  /** terminalCode → sessionId → its stream, oldest first. */
  const streams = new Map<string, Map<string, BoxStream>>();
  const boxes: Boxes = new WeakMap();
  scope.addHook('onRequest', (request, reply) => identify(request, reply, deps, boxes));
  scope.addHook('preHandler', async (request, reply) => {
    await links.passable(identityOf(request, boxes).box.terminalCode, request.raw.socket);
    // Who has given up meanwhile has said nothing.
    return request.raw.socket.destroyed ? reply.hijack() : undefined;
  });
  scope.addContentTypeParser('application/jose', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  scope.get(BOX_PATHS.stream, (request, reply) => {
    const { box, sessionId } = identityOf(request, boxes);
    const { terminalCode } = box;
    const own = streams.get(terminalCode) ?? new Map<string, BoxStream>();
    streams.set(terminalCode, own);
    // A login and a session that were seen to pass cut off no box: each stream of its own has another session.
    if (own.has(sessionId)) {
      const reason = 'this session has a stream, which is heard';
      return answerRefusal(request, reply, log, { code: 'E46', reason }, 409);
    }
    const isInUse = (it: BoxStream) => it.line === hub.session(terminalCode)?.connection;
    const tooMany = own.size >= STREAMS_PER_BOX_MAX;
    if (tooMany) connectionToEvict([...own.values()], (it) => it.address, isInUse)?.cut();

    const challenge = random.uuid();
    const events = openStream(reply, clock, { [BOX_CHALLENGE_HEADER]: challenge });
    const line = links.line(terminalCode, {
      transport: 'http',
      send: (message) => {
        const sealed = seals.sign(terminalCode, message);
        if (sealed === undefined) {
          log.warn('message-unsent', { box: terminalCode, type: message.type, reason: 'its session is over' });
          return;
        }
        const copies = message.type === 'heard' ? 1 : links.copies(terminalCode);
        for (let copy = copies; copy > 0; copy -= 1) events.send({ data: sealed });
      },
      end: () => events.end(),
    });
    const address = request.socket.remoteAddress ?? '';
    const stream: BoxStream = { line, challenge, address, heardMs: clock.monotonicMs(), cut: () => events.cut() };
    own.set(sessionId, stream);
    const disconnect = links.connected(terminalCode, events);
    const silent = watchSilence(stream, events.ended, clock);
    void events.ended.then(async () => {
      disconnect();
      if (own.get(sessionId) === stream) own.delete(sessionId);
      if (own.size === 0 && streams.get(terminalCode) === own) streams.delete(terminalCode);
      const why = (await silent) ? `it was silent for ${BOX_SILENCE_MAX_MS} ms` : 'its stream ended';
      hub.disconnected(terminalCode, { line }, why);
    });
  });

  /** The stream that a post belongs to; answered with 409 without one. */
  const streamOf = (request: FastifyRequest, reply: FastifyReply): BoxStream | undefined => {
    const { box, sessionId } = identityOf(request, boxes);
    const stream = streams.get(box.terminalCode)?.get(sessionId);
    if (stream === undefined)
      answerRefusal(request, reply, log, { code: 'E46', reason: 'a post without the stream of its session' }, 409);
    return stream;
  };

  scope.post(BOX_PATHS.messages, { bodyLimit: LIMITS.messageBytesMax }, async (request, reply) => {
    const { box, sessionId } = identityOf(request, boxes);
    const stream = streamOf(request, reply);
    if (stream === undefined) return reply;
    const refuse = (reason: string) => answerRefusal(request, reply, log, { code: 'E46', reason });
    const body = Buffer.isBuffer(request.body) ? request.body : '';
    const message = seals.verify(box.terminalCode, stream.challenge, body);
    // A box repeats a post whose connection broke before the answer: it was taken the first time.
    if (!message.ok && message.code === 'MESSAGE_REPLAYED') {
      log.warn('message-refused', { box: box.terminalCode, code: message.code, reason: message.reason });
      return reply.code(202).send();
    }
    if (!message.ok) return refuse(`${message.code}: ${message.reason}`);
    if (message.value.sessionId !== sessionId) {
      return refuse(`a message of another session than the header ${BOX_SESSION_HEADER}`);
    }
    stream.heardMs = clock.monotonicMs();
    if (await hub.receive(box.terminalCode, stream.line, message.value)) return reply.code(202).send();
    // The hub has logged why. The box ends its session on it, and sends what it owes again in the next.
    return reply.code(503).send({ status: 'FAILED', message: 'E05' });
  });

  return () => {
    for (const own of streams.values()) for (const { line } of own.values()) line.end();
  };
}

/** Cuts a stream whose box posts nothing for too long (PROTOCOL.md, clause BOX-HTTP-3); whether it came to that. */
async function watchSilence(stream: BoxStream, ended: Promise<void>, clock: Clock): Promise<boolean> {
  const over = new AbortController();
  void ended.then(() => over.abort());
  while (!over.signal.aborted) {
    const leftMs = stream.heardMs + BOX_SILENCE_MAX_MS - clock.monotonicMs();
    if (leftMs <= 0) {
      stream.cut();
      return true;
    }
    await clock.sleep(leftMs, over.signal);
  }
  return false;
}

type Boxes = WeakMap<FastifyRequest, { box: BoxConfig; sessionId: string }>;

async function identify(request: FastifyRequest, reply: FastifyReply, deps: BoxRoutesDeps, boxes: Boxes) {
  const { username = '', password } = basicCredentials(request) ?? {};
  const box = deps.directory.box(username);
  const attempt = { kind: 'box', username, secret: password, expected: boxPasswordOf(box?.secret) } as const;
  const challenge = 'Basic realm="paybox box", charset="UTF-8"';
  if (!isLoggedIn(request, reply, attempt, { ...deps, challenge }) || box === undefined) return reply;
  const session = sessionHeader.safeParse(request.headers[BOX_SESSION_HEADER]);
  if (!session.success) {
    return answerRefusal(request, reply, deps.log, { code: 'E46', reason: `${BOX_SESSION_HEADER} is not a UUID` });
  }
  boxes.set(request, { box, sessionId: session.data });
}

function identityOf(request: FastifyRequest, boxes: Boxes): { box: BoxConfig; sessionId: string } {
  const identity = boxes.get(request);
  if (identity === undefined) throw new Error('a request without a box reached its handler');
  return identity;
}
