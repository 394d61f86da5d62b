import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { decodeUp, encode } from '../../protocol/codec.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { BOX_PATHS, BOX_SESSION_HEADER } from '../../protocol/http-api.ts';
import type { Hub } from '../boxes/hub.ts';
import type { Line } from '../boxes/line.ts';
import type { BoxConfig } from '../config.ts';
import type { Directory } from '../directory.ts';
import { answerRefusal, basicCredentials, isSecret } from './requests.ts';
import { openStream } from './streams.ts';

/** Open streams of one box, the one in use and those not yet ended; one more ends the oldest. */
const STREAMS_PER_BOX_MAX = 4;

const sessionHeader = z.uuid();

export interface BoxRoutesDeps {
  hub: Hub;
  directory: Directory;
  clock: Clock;
  log: Logger;
}

/** The connection of boxes over HTTP (PROTOCOL.md, clause BOX-HTTP). Returns what ends every stream. */
export function boxRoutes(scope: FastifyInstance, deps: BoxRoutesDeps): () => void {
  const { hub, clock, log } = deps;
  /** terminalCode → sessionId → its stream, oldest first. */
  const streams = new Map<string, Map<string, Line>>();
  const boxes = new WeakMap<FastifyRequest, { box: BoxConfig; sessionId: string }>();
  scope.addHook('onRequest', (request, reply) => identify(request, reply, deps, boxes));

  scope.get(BOX_PATHS.stream, (request, reply) => {
    const { box, sessionId } = identityOf(request, boxes);
    const { terminalCode } = box;
    const own = streams.get(terminalCode) ?? new Map<string, Line>();
    streams.set(terminalCode, own);
    // The same session on a new connection: the old one was lost without its end being seen.
    own.get(sessionId)?.end();
    own.delete(sessionId);
    const [oldest] = own.values();
    if (own.size >= STREAMS_PER_BOX_MAX) oldest?.end();

    const stream = openStream(reply, clock);
    const line: Line = {
      transport: 'http',
      send: (message) => stream.send(encode(message)),
      end: () => stream.end(),
    };
    own.set(sessionId, line);
    void stream.ended.then(() => {
      if (own.get(sessionId) === line) own.delete(sessionId);
      if (own.size === 0 && streams.get(terminalCode) === own) streams.delete(terminalCode);
      hub.lost(terminalCode, { line }, 'its stream ended');
    });
  });

  scope.post(BOX_PATHS.messages, { bodyLimit: LIMITS.messageBytesMax }, async (request, reply) => {
    const { box, sessionId } = identityOf(request, boxes);
    const message = decodeUp(Buffer.isBuffer(request.body) ? request.body : '');
    if (!message.ok) return answerRefusal(request, reply, log, { code: 'E46', reason: message.reason });
    if (message.value.type === 'hello' && message.value.sessionId !== sessionId) {
      const reason = `hello with another session than the header ${BOX_SESSION_HEADER}`;
      return answerRefusal(request, reply, log, { code: 'E46', reason });
    }
    const line = streams.get(box.terminalCode)?.get(sessionId);
    if (line === undefined) {
      const reason = 'a message without the stream of its session';
      return answerRefusal(request, reply, log, { code: 'E46', reason }, 409);
    }
    await hub.receive(box.terminalCode, line, message.value);
    return reply.code(202).send();
  });

  return () => {
    for (const own of streams.values()) for (const line of own.values()) line.end();
  };
}

type Boxes = WeakMap<FastifyRequest, { box: BoxConfig; sessionId: string }>;

async function identify(request: FastifyRequest, reply: FastifyReply, deps: BoxRoutesDeps, boxes: Boxes) {
  const given = basicCredentials(request);
  const box = deps.directory.box(given?.username ?? '');
  if (!isSecret(given?.password ?? '', box?.secret) || box === undefined) {
    reply.header('www-authenticate', 'Basic realm="paybox box", charset="UTF-8"');
    return answerRefusal(request, reply, deps.log, { code: 'E74', reason: 'unknown box or wrong secret' });
  }
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
