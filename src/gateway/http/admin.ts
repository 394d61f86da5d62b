import type { FastifyInstance, FastifyRequest } from 'fastify';
import { bearerToken, hostnameOf, isForeignPage, isFromOtherPage } from '../../lib/http-server.ts';
import type { Logger } from '../../lib/log.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { strangerOf } from '../access/carried.ts';
import type { Logins } from '../access/logins.ts';
import { answerRefusal, isLoggedIn } from '../access/requests.ts';

/** Routes whose answers a browser saves as files, or reads without an end: no link on another page leads there. */
const SAVED = new Set(['/_mock/backup', '/_mock/events', '/admin/v1/sales.csv']);

export interface AdminGuardDeps {
  /** Callers with this token are admins. If it is not set, all programs on this machine are. */
  adminToken: string | undefined;
  logins: Logins;
  log: Logger;
}

/**
 * Allows the routes of a scope only with the admin token; without a token only to programs and pages of this machine.
 */
export function requireAdmin(scope: FastifyInstance, { adminToken, logins, log }: AdminGuardDeps): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (adminToken !== undefined) {
      const attempt = { kind: 'admin', username: '', secret: bearerToken(request), expected: adminToken } as const;
      return isLoggedIn(request, reply, attempt, { logins, log, challenge: 'Bearer' }) ? undefined : reply;
    }
    const problem = refusalReason(request);
    if (problem === undefined) return undefined;
    reply.header('www-authenticate', 'Bearer');
    return answerRefusal(request, reply, log, { code: 'E74', reason: problem });
  });
}

/** Allows a route to programs of this machine, and to others only with the admin token. */
export function requireAdminBeyondHere(scope: FastifyInstance, deps: AdminGuardDeps): void {
  const { adminToken: expected, logins, log } = deps;
  scope.addHook('onRequest', async (request, reply) => {
    const stranger = strangerOf(request);
    if (stranger === undefined) return undefined;
    const attempt = { kind: 'admin', username: '', secret: bearerToken(request), expected } as const;
    return isLoggedIn(request, reply, attempt, { logins, log, challenge: 'Bearer' }) ? undefined : reply;
  });
}

/** Why a caller is no program or page of this machine, with advice; `undefined` if it is one. */
function refusalReason(request: FastifyRequest): string | undefined {
  const stranger = strangerOf(request);
  if (stranger !== undefined) return `${stranger}: set adminToken, and send it as a bearer`;
  // A page of another site can make a browser on this machine send requests, also to a name that resolves to loopback.
  if (!isLoopbackHost(hostnameOf(request.raw) ?? '')) return 'not by a loopback name';
  const isSaved = SAVED.has(request.routeOptions.url ?? '');
  const isForeign = isSaved ? isFromOtherPage(request.raw) : isForeignPage(request.raw);
  return isForeign ? 'from a page of another origin' : undefined;
}

/** Routes below `/_mock` that change something and that a service for real money has too. */
const LIVE_WRITES = new Set([
  '/_mock/orders/:orderId/cancel',
  '/_mock/callbacks/resend',
  '/_mock/callbacks/:id/resend',
  '/_mock/keys/rotate',
]);

/** Refuses, in a live gateway, the writes below `/_mock` that only a sandbox has (PROTOCOL.md, clause MOD-2). */
export function refuseSandboxWrites(scope: FastifyInstance, { mode, log }: { mode: string; log: Logger }): void {
  if (mode !== 'live') return;
  scope.addHook('onRequest', async (request, reply) => {
    if (['GET', 'HEAD'].includes(request.method) || LIVE_WRITES.has(request.routeOptions.url ?? '')) return undefined;
    const reason = 'expected a gateway with mode: sandbox: this one is live, where nothing is paid or fails by order';
    return answerRefusal(request, reply, log, { code: 'E75', reason });
  });
}
