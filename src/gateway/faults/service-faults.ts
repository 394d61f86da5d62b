import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { bearerToken } from '../../lib/http-server.ts';
import { isObject } from '../../protocol/codec.ts';
import { faultKind, faultOfContent, MAGIC_PREFIX } from '../../protocol/faults.ts';
import { PATHS } from '../../protocol/http-api.ts';
import { answerRefusal, pathOf } from '../access/requests.ts';
import type { Tokens } from '../access/tokens.ts';
import { parseJson } from '../common/decode.ts';
import type { Directory } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { PartnerCalls } from '../partner/partner-calls.ts';
import type { Subject } from './active-faults.ts';
import { asNews } from './fault-news.ts';
import type { Faults } from './faults.ts';

/** At most this many tokens are stored as expired. The oldest expire by themselves before this limit is reached. */
const EXPIRED_MAX = 10_000;

/** Lets tokens expire before their time. Knows them by their hash, as all gateways of the database do. */
export class ExpirableTokens {
  readonly #expired = new Set<string>();

  wrap(tokens: Tokens): Tokens {
    return {
      issue: (partner) => tokens.issue(partner),
      read: async (token) => (this.#expired.has(hashOf(token)) ? undefined : tokens.read(token)),
    };
  }

  expire(sha256: string): void {
    const [oldest] = this.#expired;
    if (oldest !== undefined && this.#expired.size >= EXPIRED_MAX) this.#expired.delete(oldest);
    this.#expired.add(sha256);
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * Keeps contents that order a fault unchanged. Such a content has no room for a code, and the fault must happen to each
 * push (PROTOCOL.md, clause FLT-4).
 */
export function keepContents(calls: PartnerCalls): PartnerCalls {
  return {
    generate: (partner, json, call) =>
      calls.generate(partner, json, { ...call, isVerbatim: contentIn(json).startsWith(MAGIC_PREFIX) }),
    sendQr: (partner, json, call) => {
      const fault = faultOfContent(contentIn(json));
      const isVerbatim = fault !== undefined && ['push', 'link'].includes(faultKind(fault).place);
      return calls.sendQr(partner, json, { ...call, isVerbatim });
    },
    testCallback: (...args) => calls.testCallback(...args),
    checkOrder: (...args) => calls.checkOrder(...args),
    cancelQr: (...args) => calls.cancelQr(...args),
  };
}

function contentIn(json: unknown): string {
  return isObject(json) && typeof json.content === 'string' ? json.content : '';
}

/** Makes calls of logged-in partners fail, before they change anything (PROTOCOL.md, clauses FLT-5 and FLT-12). */
export function serviceFaults(
  scope: FastifyInstance,
  { log, place }: World,
  { directory }: Stored,
  { faults, expirable }: { faults: Faults; expirable: ExpirableTokens },
): void {
  scope.addHook('preHandler', async (request, reply) => {
    const subject = await subjectOf(request, faults, directory);
    if (subject === undefined) return undefined;
    const problem = await faults.contentProblem(subject);
    if (problem !== undefined) return answerRefusal(request, reply, log, { code: 'FAULT_UNKNOWN', reason: problem });
    const slow = faults.delay('service-slow', subject);
    await slow?.delayed((slow.seconds ?? 0) * 1000);
    if (faults.take('service-500', subject) === undefined) return undefined;
    return answerRefusal(request, reply, log, { code: 'E05', reason: 'the fault service-500' });
  });
  scope.addHook('onSend', async (request, reply) => {
    if (reply.statusCode !== 200 || !pathOf(request).endsWith(PATHS.generate)) return;
    const subject = await subjectOf(request, faults, directory);
    if (subject === undefined || faults.take('token-expired', subject) === undefined) return;
    const sha256 = hashOf(bearerToken(request) ?? '');
    expirable.expire(sha256);
    await place.tell(asNews({ about: 'token-expired', sha256 }));
  });
}

/** Returns the boxes and the content of a call. Undefined if no fault can happen to it. */
async function subjectOf(
  { body, headers }: FastifyRequest,
  faults: Faults,
  directory: Directory,
): Promise<Subject | undefined> {
  if (!Buffer.isBuffer(body) || !faults.mayConcern(body)) return undefined;
  const parsed = parseJson(body, headers);
  const json = parsed.ok && isObject(parsed.value) ? parsed.value : {};
  const text = (name: string) => (typeof json[name] === 'string' ? json[name] : '');
  const named = await directory.boxNamed(text('terminalCode'), text('serialNumber'));
  const boxes = named === undefined ? await directory.boxesOf(text('bankAccount')) : [named];
  return { boxes: boxes.map((it) => it.terminalCode), content: text('content') };
}
