import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { describeRoutes, type RouteDoc } from '../../lib/route.ts';
import { issuesOf } from '../../protocol/codec.ts';
import { ADMIN_PATH, describeOwn, type OwnRoute, statusOf } from '../access/own-route.ts';
import { answerRefusal, readBody } from '../access/requests.ts';
import { accept, type Refusal, type Result, refuse } from '../common/result.ts';
import type { World } from '../common/world.ts';
import { callerOf } from './admin.ts';

const CHANGE_BYTES_MAX = 16_384;
const MOCK_PATH = '/_mock';

/**
 * Registers the gateway's own routes, below `/_mock` and `/admin/v1`, each with its description, so that none lacks
 * one.
 */
export class OwnApi {
  readonly #world: World;
  readonly #routes: { prefix: string; route: OwnRoute }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Registers a route in a scope, whose prefix is `/_mock` or `/admin/v1`. */
  route<Query, Body, Answer>(scope: FastifyInstance, route: OwnRoute<Query, Body, Answer>): void {
    this.#routes.push({ prefix: scope.prefix, route });
    const { method, path, access, query, body, status = 200, type, audit } = route;
    scope.route<{ Params: Record<string, string> }>({
      method,
      url: path,
      bodyLimit: CHANGE_BYTES_MAX,
      config: { access, ...(audit !== undefined && { audit }) },
      ...(this.#isOfSandbox(scope.prefix, route) && {
        onRequest: async (request, reply) => this.#refuse(request, reply, OF_SANDBOX, {}),
      }),
      handler: async (request, reply) => {
        const asked = query === undefined ? accept(undefined as Query) : decoded(query, request.query);
        if (!asked.ok) return this.#refuse(request, reply, asked, route);
        const given =
          body === undefined ? accept(undefined as Body) : this.#bodyOf(request, body, route.refusesEmptyJson);
        if (!given.ok) return this.#refuse(request, reply, given, route);
        const caller = callerOf(request);
        const by = { who: caller.who, address: caller.address, seen: seenIn(request) };
        const [name = ''] = Object.values(request.params);
        const result = await route.run({ name, query: asked.value, body: given.value, caller, by, reply });
        if (reply.sent) return reply;
        if (!result.ok) return this.#refuse(request, reply, result, route);
        reply.code(status);
        if (type !== undefined) reply.type(type);
        return reply.send(result.value);
      },
    });
  }

  /** Returns the descriptions of the routes below `/_mock`, whose callers prove themselves by the security scheme `admin`. */
  mockRoutes(): RouteDoc[] {
    return this.#described(MOCK_PATH, 'admin');
  }

  /** Returns the OpenAPI 3.1 document of the routes below `/admin/v1`, made from the schemas that decode their calls. */
  document(): object {
    const { paths, schemas } = describeRoutes(this.#described(ADMIN_PATH, 'bearer'));
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

  #described(below: string, scheme: string): RouteDoc[] {
    return this.#routes.flatMap(({ prefix, route }) => (prefix === below ? describeOwn(route, prefix, scheme) : []));
  }

  /**
   * Returns true for a change below `/_mock` that a live gateway refuses: one that does not say that it is for live
   * gateways too.
   */
  #isOfSandbox(prefix: string, { method, isLive }: Pick<OwnRoute, 'method' | 'isLive'>): boolean {
    return this.#world.config.mode === 'live' && prefix === MOCK_PATH && method !== 'GET' && isLive !== true;
  }

  #bodyOf<Body>(request: FastifyRequest, schema: z.ZodType<Body>, refusesEmptyJson = false): Result<Body> {
    const isLeftOut = !Buffer.isBuffer(request.body) || (request.body.length === 0 && !refusesEmptyJson);
    const json = isLeftOut ? accept({}) : readBody(request, this.#world.log);
    return json.ok ? decoded(schema, json.value) : json;
  }

  #refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    refusal: Refusal,
    route: Pick<OwnRoute, 'statuses' | 'isReasoned'>,
  ): FastifyReply {
    return answerRefusal(request, reply, this.#world.log, refusal, statusOf(refusal.code, route), route.isReasoned);
  }
}

const OF_SANDBOX = refuse(
  'E75',
  'expected a gateway with mode: sandbox: this one is live, where nothing is paid or fails by order',
);

function decoded<T>(schema: z.ZodType<T>, value: unknown): Result<T> {
  const parsed = schema.safeParse(value);
  return parsed.success ? accept(parsed.data) : refuse('E46', issuesOf(parsed.error, { schema, value }));
}

/** Returns the `changedAt` that `If-Match` names. Undefined without that header, or with `*`. */
function seenIn({ headers }: FastifyRequest): string | undefined {
  const tag = headers['if-match']?.replaceAll(/^(W\/)?"|"$/g, '');
  return tag === '*' ? undefined : tag;
}
