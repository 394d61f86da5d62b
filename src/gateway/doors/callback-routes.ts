import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { backlogAnswer, callbackAnswer, resentAnswer } from '../../protocol/mock-api.ts';
import { listQuery } from '../access/requests.ts';
import { accept, refuse } from '../common/result.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { OwnApi } from './own-api.ts';
import type { Views } from './views.ts';

const NAME_CHARS_MAX = 64;

const callbacksQuery = listQuery.extend({ status: z.enum(['pending', 'delivered', 'failed']).optional() });

const time = z.iso.datetime({ offset: true, error: 'expected a time as 2026-01-31T08:00:00Z' }).transform(Date.parse);
/** Which callbacks to send again. By default the gateway sends all failed ones. */
const choice = z.strictObject({
  partner: z.string().max(NAME_CHARS_MAX).optional(),
  from: time.optional(),
  to: time.optional(),
  status: z.enum(['failed', 'pending']).default('failed'),
});

const unknown = refuse('E96', 'no such callback');

/** Registers the routes of callbacks, below `/_mock` (PROTOCOL.md, clause SYN-5). */
export function callbackRoutes(
  scope: FastifyInstance,
  api: OwnApi,
  { stored, money: { dispatcher, backlog } }: OpenGateway,
  views: Views,
): void {
  const { store, directory } = stored;
  api.route(scope, {
    method: 'GET',
    path: '/callbacks',
    access: 'look',
    summary: 'List the callbacks with their newest attempts, newest first',
    query: callbacksQuery,
    answer: z.array(callbackAnswer),
    run: async ({ query: { limit, before, status }, caller }) =>
      accept(await views.callbacks(caller.role, limit, before, status)),
  });
  api.route(scope, {
    method: 'GET',
    path: '/callbacks/backlog',
    access: 'look',
    summary: 'Count the callbacks that wait or have failed',
    answer: backlogAnswer,
    refusals: ['E05'],
    statuses: { E05: 503 },
    run: async () => {
      const owed = await backlog();
      return owed === undefined ? refuse('E05', 'the store does not answer') : accept(owed);
    },
  });
  api.route(scope, {
    method: 'GET',
    path: '/callbacks/:id',
    access: 'look',
    summary: 'Read a callback with its attempts',
    answer: callbackAnswer,
    refusals: ['E96'],
    run: async ({ name, caller }) => {
      const found = await store.callbacks.find(name);
      const view = found && (await views.callback(caller.role, found));
      return view === undefined ? unknown : accept(view);
    },
  });
  api.route(scope, {
    method: 'POST',
    path: '/callbacks/resend',
    access: 'administer',
    audit: 'resent',
    isLive: true,
    summary: 'Send callbacks again: all that failed, or those that the body chooses',
    body: choice,
    refusesEmptyJson: true,
    answer: resentAnswer,
    status: 202,
    refusals: ['E67'],
    run: async ({ body: { partner, from: fromMs, to: toMs, status } }) => {
      if (partner !== undefined && (await directory.partner(partner)) === undefined) {
        return refuse('E67', `partner: there is no ${partner}`);
      }
      const { count, more } = await dispatcher.resendAll({ partner, fromMs, toMs, status });
      return accept({ status: 'SUCCESS', message: '', callbacks: count, more });
    },
  });
  api.route(scope, {
    method: 'POST',
    path: '/callbacks/:id/resend',
    access: 'administer',
    audit: 'resent',
    isLive: true,
    summary: 'Send a callback again, at once',
    answer: callbackAnswer,
    refusals: ['E75', 'E96'],
    run: async ({ name, caller }) => {
      const callback = await dispatcher.resend(name);
      if (callback === 'test') return refuse('E75', 'its payment was a test of the sandbox: expected one of money');
      const view = callback && (await views.callback(caller.role, callback));
      return view === undefined ? unknown : accept(view);
    },
  });
}
