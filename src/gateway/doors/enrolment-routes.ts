import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { issuesOf } from '../../protocol/codec.ts';
import { ENROLMENTS_PATH, enrolmentRequest } from '../../protocol/enrolment.ts';
import { done, enrolmentAnswer } from '../../protocol/mock-api.ts';
import { addressOf } from '../access/carried.ts';
import type { Access } from '../access/open-access.ts';
import type { OwnRoute } from '../access/own-route.ts';
import { answerRefusal, readBody } from '../access/requests.ts';
import { accept, type Result } from '../common/result.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { OwnApi } from './own-api.ts';

const REQUEST_BYTES_MAX = 1_024;
/** A box proves its identity itself. */
const OWN = { access: 'own' } as const;

const acceptance = z.object({ code: z.string().max(64) });
/** The refusals of a box that cannot enrol. */
const REFUSALS = ['E35', 'ENROLMENT_CLOSED', 'BOX_DISABLED'] as const;

/** Registers the routes for boxes without a secret (PROTOCOL.md, clauses ENR-2 to ENR-4). */
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
    // Wrong attempts count for both names together: a wrong serial number must not lock out the box itself.
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

/** Registers the routes with which admins list, accept and reject enrolments. */
export function adminEnrolmentRoutes(scope: FastifyInstance, api: OwnApi, { enrolments }: Access): void {
  api.route(scope, {
    method: 'GET',
    path: '/enrolments',
    access: 'look',
    summary: 'List the boxes that ask to enrol, in the order of their codes',
    answer: z.array(enrolmentAnswer),
    run: async () => accept(await enrolments.list()),
  });
  const change = <Body>(
    route: Pick<OwnRoute<unknown, Body>, 'path' | 'audit' | 'summary' | 'body' | 'refusals'>,
    run: (terminalCode: string, body: Body) => Promise<Result<undefined>>,
  ) =>
    api.route(scope, {
      ...{ method: 'POST', access: 'administer', isLive: true, answer: done, statuses: { E35: 404 }, ...route },
      run: async ({ name, body }) => {
        const changed = await run(name, body);
        return changed.ok ? accept({ status: 'SUCCESS', message: '' }) : changed;
      },
    });
  change(
    {
      path: '/enrolments/:terminalCode/accept',
      audit: 'enrolled',
      summary: 'Give a secret to the box that shows this code',
      body: acceptance,
      refusals: [...REFUSALS, 'WRONG_CODE', 'CODE_SHARED'],
    },
    (terminalCode, { code }) => enrolments.accept(terminalCode, code),
  );
  change(
    {
      path: '/enrolments/:terminalCode/reject',
      audit: 'rejected',
      summary: 'Reject all requests under the name of this box; the box makes a new code',
      refusals: REFUSALS,
    },
    (terminalCode) => enrolments.reject(terminalCode),
  );
  change(
    {
      path: '/boxes/:terminalCode/forget',
      audit: 'forgotten',
      summary: 'Delete the secret of an enrolled box: it must enrol again',
      refusals: ['E35', 'ENROLMENT_CLOSED'],
    },
    (terminalCode) => enrolments.forget(terminalCode),
  );
}
