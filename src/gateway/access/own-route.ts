import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import type { AnswerDoc, RouteDoc } from '../../lib/route.ts';
import { CODES, type Code } from '../../protocol/codes.ts';
import { REASON_HEADER } from '../../protocol/http-api.ts';
import type { Result } from '../common/result.ts';
import { type Right, ROLE_NAMES, rolesWith } from '../config/roles.ts';
import type { Admin } from '../registry/changes.ts';
import type { Caller } from './authorizer.ts';

/**
 * Says who may call a route: whoever has a right, every role, anybody, or `own` where the route proves its callers itself
 * (partners, boxes, sources of money).
 */
export type Access = Right | 'every-role' | 'anybody' | 'own';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route. A gateway does not start with a route that does not say it. */
    access?: Access;
    /** The verb of the audit list for what the route changes. */
    audit?: string;
  }
}

/** Admins call the routes below this path. Their refusals have the reason in the body. */
export const ADMIN_PATH = '/admin/v1';

/** Statuses of refusals that are not 400. */
const STATUS_OF: Partial<Record<Code, number>> = {
  E67: 404,
  E96: 404,
  MANAGED_BY_FILE: 409,
  NAME_TAKEN: 409,
  NO_BACKUP: 409,
  ROW_CHANGED: 409,
  STILL_IN_USE: 409,
  TOO_MANY_SALES: 429,
};

const REASON = { [REASON_HEADER]: { description: 'the field, and what was expected', schema: { type: 'string' } } };

/** A call of a route of the gateway's own, decoded. */
export interface OwnCall<Query, Body> {
  /** The value of the parameter in the path; '' without one. */
  name: string;
  query: Query;
  body: Body;
  /** Who calls. */
  caller: Caller;
  /** The caller, as whoever changes a row. */
  by: Admin;
  reply: FastifyReply;
}

/** A route below `/_mock` or `/admin/v1`. The gateway serves, guards and describes it from this value alone. */
export interface OwnRoute<Query = unknown, Body = unknown, Answer = unknown> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/_mock` or `/admin/v1`, with at most one `:name` for a parameter. */
  path: string;
  /** Who may call it. */
  access: Right | 'every-role';
  /** The verb of the audit list for this change, if it is not one of the registry. */
  audit?: string;
  /** True for a change below `/_mock` that a live gateway has too (PROTOCOL.md, clause MOD-2). */
  isLive?: true;
  summary: string;
  query?: z.ZodType<Query>;
  /** An empty body is read as `{}`. */
  body?: z.ZodType<Body>;
  /** True if JSON without any bytes is refused: the caller's choice got lost, and without one the call does it all. */
  refusesEmptyJson?: true;
  /** The answer; left out if it is empty or no JSON. */
  answer?: z.ZodType<Answer>;
  status?: 200 | 201 | 202 | 204;
  /** Media type of the answer, if it is not JSON. */
  type?: string;
  /** Codes of its refusals, beside E74 (no admin), E46 and E05. */
  refusals?: readonly Code[];
  /** Statuses of its refusals, where they differ from those of other routes. */
  statuses?: Partial<Record<Code, number>>;
  /** True below `/_mock` if the body of a refusal has the reason, as it has below `/admin/v1`. */
  isReasoned?: true;
  /** A route that streams takes over the reply; its result is not sent then. */
  run(call: OwnCall<Query, Body>): Promise<Result<Answer>>;
}

/** Lets each route of a list have its own types of query, body and answer. */
export function ownRoute<Query, Body, Answer>(route: OwnRoute<Query, Body, Answer>): OwnRoute {
  return route;
}

/** Returns the HTTP status of a refusal. */
export function statusOf(code: Code, { statuses }: Pick<OwnRoute, 'statuses'>): number {
  return statuses?.[code] ?? STATUS_OF[code] ?? 400;
}

/** Describes a route below `prefix` for OpenAPI, with every refusal that it may answer. `scheme` names the proof of callers. */
export function describeOwn(route: OwnRoute, prefix: string, scheme: string): RouteDoc {
  const { method, path, access, summary, query, body, answer, status = 200, type, refusals = [] } = route;
  const roles = access === 'every-role' ? ROLE_NAMES : rolesWith(access);
  const byStatus = new Map<number, Code[]>([[400, ['E46']]]);
  for (const code of refusals) {
    const of = statusOf(code, route);
    byStatus.set(of, [...(byStatus.get(of) ?? []), code]);
  }
  const isOfAdmins = prefix === ADMIN_PATH;
  const isReasoned = route.isReasoned ?? isOfAdmins;
  return {
    method,
    path: `${prefix}${path}`,
    name: `${method.toLowerCase()}${path.replaceAll(/[/:.]+(\w)/g, (_all, letter: string) => letter.toUpperCase())}`,
    summary,
    description: `For the roles ${roles.join(', ')}.`,
    security: [{}, { [scheme]: [] }],
    ...(query && { query }),
    ...(body && { body }),
    answers: {
      [status]: { about: 'done', ...(answer && { schema: answer }), ...(type !== undefined && { type }) },
      ...Object.fromEntries([...byStatus].map(([of, codes]) => [of, failure(codes, isReasoned)])),
      401: failure(['E74'], false),
      403: failure(['NOT_ALLOWED'], isOfAdmins),
      ...(body && bodyRefusals()),
      429: failure(['E74', ...(byStatus.get(429) ?? [])], false, 'too many wrong logins, or calls; see Retry-After'),
      500: failure(['E05'], false),
    },
  };
}

/** Refusals of a body that the gateway does not read. */
function bodyRefusals() {
  return {
    413: failure(['E46'], false, 'E46: the body is too long'),
    415: failure(['E46'], false, 'E46: the body is not application/json'),
  };
}

/** Describes refusals with these codes. The reason is in the body, or else in a header (PROTOCOL.md, clause ERR-7). */
export function failure(codes: readonly Code[], isReasoned: boolean, why?: string): AnswerDoc {
  const properties = { status: { const: 'FAILED' }, message: { enum: codes } };
  const reason = { reason: { type: 'string', description: 'the field, and what was expected' } };
  const schema = {
    type: 'object',
    required: ['status', 'message', ...(isReasoned ? ['reason'] : [])],
    properties: isReasoned ? { ...properties, ...reason } : properties,
  };
  const about = why ?? codes.map((code) => `- \`${code}\` ${CODES[code]}`).join('\n');
  return { about, schema, ...(!isReasoned && { headers: REASON }) };
}
