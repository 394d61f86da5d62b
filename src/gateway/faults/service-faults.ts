import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from '../../lib/log.ts';
import { PATHS } from '../../protocol/http-api.ts';
import type { Directory } from '../directory.ts';
import { isObject, parseJson } from '../domain/decode.ts';
import { answerRefusal, bearerToken, pathOf } from '../http/requests.ts';
import type { Tokens } from '../tokens.ts';
import type { Subject } from './active-faults.ts';
import type { Faults } from './faults.ts';

/** Tokens expired before their time are remembered up to here; the oldest are expired by themselves first. */
const EXPIRED_MAX = 10_000;

/** Tokens that can expire before their time. */
export interface ExpirableTokens extends Tokens {
  expire(token: string): void;
}

export function expirable(tokens: Tokens): ExpirableTokens {
  const expired = new Set<string>();
  return {
    issue: (partner) => tokens.issue(partner),
    read: async (token) => (expired.has(token) ? undefined : tokens.read(token)),
    expire: (token) => {
      const [oldest] = expired;
      if (oldest !== undefined && expired.size >= EXPIRED_MAX) expired.delete(oldest);
      expired.add(token);
    },
  };
}

export interface ServiceFaultsDeps {
  faults: Faults;
  directory: Directory;
  tokens: ExpirableTokens;
  log: Logger;
}

/** Has the calls of a scope go wrong, after the partner is known and before anything is done (PROTOCOL.md, clause FLT-5). */
export function serviceFaults(scope: FastifyInstance, deps: ServiceFaultsDeps): void {
  const { faults, tokens, log } = deps;
  scope.addHook('preHandler', async (request, reply) => {
    const subject = subjectOf(request, deps);
    if (subject === undefined) return undefined;
    const slow = faults.delay('service-slow', subject);
    await slow?.delayed((slow.seconds ?? 0) * 1000);
    if (faults.take('service-500', subject) === undefined) return undefined;
    return answerRefusal(request, reply, log, { code: 'E05', reason: 'the fault service-500' });
  });
  scope.addHook('onSend', async (request, reply) => {
    if (reply.statusCode !== 200 || !pathOf(request).endsWith(PATHS.generate)) return;
    const subject = subjectOf(request, deps);
    if (subject !== undefined && faults.take('token-expired', subject)) tokens.expire(bearerToken(request) ?? '');
  });
}

/** What a call is about; undefined where no fault can be meant. */
function subjectOf({ body }: FastifyRequest, { faults, directory }: ServiceFaultsDeps): Subject | undefined {
  if (!Buffer.isBuffer(body) || !faults.mayConcern(body)) return undefined;
  const parsed = parseJson(body);
  const json = parsed.ok && isObject(parsed.value) ? parsed.value : {};
  const text = (name: string) => (typeof json[name] === 'string' ? json[name] : '');
  const named = directory.boxNamed(text('terminalCode'), text('serialNumber'));
  const boxes = named === undefined ? directory.boxesOf(text('bankAccount')) : [named];
  return { boxes: boxes.map((it) => it.terminalCode), content: text('content') };
}
