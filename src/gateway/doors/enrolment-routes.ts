import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { issuesOf } from '../../protocol/codec.ts';
import { ENROLMENTS_PATH, enrolmentRequest } from '../../protocol/enrolment.ts';
import { addressOf } from '../access/carried.ts';
import { answerRefusal, readBody } from '../access/requests.ts';
import type { Result } from '../common/result.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';

const REQUEST_BYTES_MAX = 1_024;
/** A box proves itself. */
const OWN = { access: 'own' } as const;

const acceptance = z.object({ code: z.string().max(64) });

/** Routes for boxes without a secret (PROTOCOL.md, clauses ENR-2 to ENR-4). */
export function boxEnrolmentRoutes(scope: FastifyInstance, { world, stored, access }: OpenGateway): void {
  const { log } = world;
  const { directory, logins } = stored;
  const { enrolments } = access;
  scope.post(ENROLMENTS_PATH, { config: OWN, bodyLimit: REQUEST_BYTES_MAX }, async (request, reply) => {
    const json = readBody(request, log, enrolmentRequest);
    if (!json.ok) return answerRefusal(request, reply, log, json);
    const parsed = enrolmentRequest.safeParse(json.value);
    if (!parsed.success) {
      return answerRefusal(request, reply, log, { code: 'E46', reason: issuesOf(parsed.error) });
    }
    const { terminalCode, serialNumber } = parsed.data;
    const address = addressOf(request);
    const known = (await directory.box(terminalCode))?.serialNumber;
    // Counted for both together: a wrong serial number must not lock out the box itself.
    const username = `${terminalCode} ${serialNumber}`;
    const verdict = logins.check({ kind: 'enrolment', username, secret: serialNumber, expected: known }, address);
    const tooMany = (retryAfterSeconds: number, reason: string) => {
      reply.header('retry-after', String(retryAfterSeconds));
      return answerRefusal(request, reply, log, { code: 'E74', reason }, 429);
    };
    if (!verdict.ok && verdict.retryAfterSeconds > 0) {
      return tooMany(verdict.retryAfterSeconds, 'too many requests to enrol an unknown box');
    }
    const made = await enrolments.register(parsed.data, address);
    if ('waitMs' in made) return tooMany(Math.ceil(made.waitMs / 1000), `too many requests to enrol ${terminalCode}`);
    return made.ok ? reply.code(201).send(made.value) : answerRefusal(request, reply, log, made);
  });
  scope.get<{ Params: { id: string } }>(`${ENROLMENTS_PATH}/:id`, { config: OWN }, async (request, reply) => {
    const state = await enrolments.state(request.params.id);
    if (state !== undefined) return state;
    return answerRefusal(request, reply, log, { code: 'E46', reason: 'no such request, or it is over' }, 404);
  });
}

/** Routes for admins: list, accept and reject enrolments. */
export function adminEnrolmentRoutes(scope: FastifyInstance, { world, access }: OpenGateway): void {
  const { log } = world;
  const { enrolments } = access;
  const answer = (request: FastifyRequest, reply: FastifyReply, verdict: Result<undefined>) => {
    if (verdict.ok) return reply.send({ status: 'SUCCESS', message: '' });
    return answerRefusal(request, reply, log, verdict, verdict.code === 'E35' ? 404 : 400);
  };
  type OfBox = { Params: { terminalCode: string } };
  scope.get('/enrolments', () => enrolments.list());
  scope.post<OfBox>('/enrolments/:terminalCode/accept', { bodyLimit: REQUEST_BYTES_MAX }, async (request, reply) => {
    const json = readBody(request, log, acceptance);
    if (!json.ok) return answerRefusal(request, reply, log, json);
    const parsed = acceptance.safeParse(json.value);
    if (!parsed.success) return answerRefusal(request, reply, log, { code: 'E46', reason: 'expected a code' });
    return answer(request, reply, await enrolments.accept(request.params.terminalCode, parsed.data.code));
  });
  scope.post<OfBox>('/enrolments/:terminalCode/reject', async (request, reply) =>
    answer(request, reply, await enrolments.reject(request.params.terminalCode)),
  );
  scope.post<OfBox>('/boxes/:terminalCode/forget', async (request, reply) =>
    answer(request, reply, await enrolments.forget(request.params.terminalCode)),
  );
}
