import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Logger } from '../../lib/log.ts';
import { type AnswerDoc, describeRoutes, type RouteDoc } from '../../lib/route.ts';
import { issuesOf } from '../../protocol/codec.ts';
import { CODES, type Code } from '../../protocol/codes.ts';
import { REASON_HEADER } from '../../protocol/http-api.ts';
import type { Caller } from '../access/authorizer.ts';
import { headerText, logRefusal, readBody } from '../access/requests.ts';
import { type Right, ROLE_NAMES, rolesWith } from '../access/roles.ts';
import { accept, type Refusal, type Result, refuse } from '../common/result.ts';
import type { Admin } from '../registry/changes.ts';
import { callerOf } from './admin.ts';

const CHANGE_BYTES_MAX = 16_384;
const ADMIN_PATH = '/admin/v1';
const STATUS_OF: Partial<Record<Code, number>> = {
  E96: 404,
  MANAGED_BY_FILE: 409,
  NAME_TAKEN: 409,
  ROW_CHANGED: 409,
  STILL_IN_USE: 409,
  TOO_MANY_SALES: 429,
};

/** A call of an admin, decoded. */
export interface AdminCall<Query, Body> {
  /** The row in the path; '' without one. */
  name: string;
  query: Query;
  body: Body;
  /** Who calls. */
  caller: Caller;
  /** The caller, as whoever changes a row. */
  by: Admin;
  reply: FastifyReply;
}

/** One route: what it takes and answers, for the gateway as for its description. */
export interface AdminRoute<Query, Body, Answer> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/admin/v1`, with `:name` for a row. */
  path: string;
  /** Who may call it. */
  access: Right | 'every-role';
  /** The verb of the audit list for this change, if it is not one of the registry. */
  audit?: string;
  summary: string;
  query?: z.ZodType<Query>;
  /** An empty body is read as `{}`. */
  body?: z.ZodType<Body>;
  /** The answer, and its status. */
  answer: z.ZodType<Answer>;
  status?: 200 | 201;
  /** Media type of the answer, if it is not JSON. */
  type?: string;
  /** Codes of its refusals, beside E74 (no admin), E46 and E05. */
  refusals?: readonly Code[];
  run(call: AdminCall<Query, Body>): Promise<Result<Answer>>;
}

type Described = Omit<AdminRoute<unknown, unknown, unknown>, 'run'>;

/** The calls of admins below `/admin/v1`. Each is registered with its description, so that none lacks one. */
export class AdminApi {
  readonly #log: Logger;
  readonly #routes: Described[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Registers a route in a scope, whose prefix is `/admin/v1`. */
  route<Query, Body, Answer>(scope: FastifyInstance, route: AdminRoute<Query, Body, Answer>): void {
    this.#routes.push(route);
    const { method, path, access, query, body, status = 200, type, audit } = route;
    scope.route<{ Params: { name?: string } }>({
      method,
      url: path,
      bodyLimit: CHANGE_BYTES_MAX,
      config: { access, ...(audit !== undefined && { audit }) },
      handler: async (request, reply) => {
        const asked = query === undefined ? accept(undefined as Query) : decoded(query, request.query);
        if (!asked.ok) return this.#refuse(request, reply, asked);
        const given = body === undefined ? accept(undefined as Body) : this.#bodyOf(request, body);
        if (!given.ok) return this.#refuse(request, reply, given);
        const caller = callerOf(request);
        const by = { who: caller.who, address: caller.address, seen: seenIn(request) };
        const { name = '' } = request.params;
        const result = await route.run({ name, query: asked.value, body: given.value, caller, by, reply });
        if (!result.ok) return this.#refuse(request, reply, result);
        reply.code(status).header('cache-control', 'no-store');
        if (type !== undefined) reply.type(type);
        return reply.send(result.value);
      },
    });
  }

  /** The OpenAPI 3.1 document of all routes, made from the schemas that decode their calls. */
  document(): object {
    const { paths, schemas } = describeRoutes(this.#routes.map(described));
    return {
      openapi: '3.1.0',
      info: {
        title: 'Payment QR gateway: administration',
        version: '1',
        description:
          'Partners, accounts, boxes, sources of money, tokens, and sales. With a token as a bearer; what programs of the machine of the gateway may do without one is http.loopback in its file.',
      },
      servers: [{ url: '/' }],
      paths,
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } }, schemas },
    };
  }

  #bodyOf<Body>(request: FastifyRequest, schema: z.ZodType<Body>): Result<Body> {
    const isEmpty = !Buffer.isBuffer(request.body) || request.body.length === 0;
    const json = isEmpty ? accept({}) : readBody(request, this.#log);
    return json.ok ? decoded(schema, json.value) : json;
  }

  /** The answer contains the reason, because only admins get it. */
  #refuse(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
    const { code, reason } = refusal;
    const status = STATUS_OF[code] ?? 400;
    logRefusal(request, this.#log, refusal, status);
    reply.code(status).header(REASON_HEADER, headerText(reason));
    return reply.send({ status: 'FAILED', message: code, reason });
  }
}

function decoded<T>(schema: z.ZodType<T>, value: unknown): Result<T> {
  const parsed = schema.safeParse(value);
  return parsed.success ? accept(parsed.data) : refuse('E46', issuesOf(parsed.error, { schema, value }));
}

/** The `changedAt` that `If-Match` names; undefined without one, or for any. */
function seenIn({ headers }: FastifyRequest): string | undefined {
  const tag = headers['if-match']?.replaceAll(/^(W\/)?"|"$/g, '');
  return tag === '*' ? undefined : tag;
}

/** Describes a route, with every refusal that it may answer. */
function described(route: Described): RouteDoc {
  const { method, path, access, summary, query, body, answer, status = 200, type, refusals = [] } = route;
  const roles = access === 'every-role' ? ROLE_NAMES : rolesWith(access);
  const byStatus = new Map<number, Code[]>([[400, ['E46']]]);
  for (const code of refusals) {
    const of = STATUS_OF[code] ?? 400;
    byStatus.set(of, [...(byStatus.get(of) ?? []), code]);
  }
  return {
    method,
    path: `${ADMIN_PATH}${path}`,
    name: `${method.toLowerCase()}${path.replaceAll(/[/:.]+(\w)/g, (_all, letter: string) => letter.toUpperCase())}`,
    summary,
    description: `For the roles ${roles.join(', ')}.`,
    security: [{}, { bearer: [] }],
    ...(query && { query }),
    ...(body && { body }),
    answers: {
      [status]: { about: 'done', schema: answer, ...(type !== undefined && { type }) },
      ...Object.fromEntries([...byStatus].map(([of, codes]) => [of, failure(codes, true)])),
      401: failure(['E74'], false),
      403: failure(['NOT_ALLOWED'], true),
      429: failure(['E74', ...(byStatus.get(429) ?? [])], false, 'too many wrong logins, or calls; see Retry-After'),
      500: failure(['E05'], false),
    },
  };
}

function failure(codes: readonly Code[], isReasoned: boolean, why?: string): AnswerDoc {
  const properties = { status: { const: 'FAILED' }, message: { enum: codes } };
  const reason = { reason: { type: 'string', description: 'the field, and what was expected' } };
  const schema = {
    type: 'object',
    required: ['status', 'message', ...(isReasoned ? ['reason'] : [])],
    properties: isReasoned ? { ...properties, ...reason } : properties,
  };
  return { about: why ?? codes.map((code) => `- \`${code}\` ${CODES[code]}`).join('\n'), schema };
}
