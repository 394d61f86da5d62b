import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { basicCredentials, bearerToken } from '../../lib/http-server.ts';
import type { Logger } from '../../lib/log.ts';
import { LENIENT_HEADER, PATHS, TOKEN_SECONDS, type TokenResponse, WARNING_HEADER } from '../../protocol/http-api.ts';
import { answerRefusal, BEARER, headerText, isLoggedIn, pathOf, readBody } from '../access/requests.ts';
import type { Directory, Partner } from '../common/directory.ts';
import { CallNotes, readLeniently } from '../partner/call-notes.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import { allowOrigins } from './cors.ts';
import type { ServiceCall } from './service-calls.ts';
import { logCalls, NOTES_SEPARATOR } from './traffic-routes.ts';

/** The property of a request that holds its partner. It is null before the login. */
const PARTNER = 'partner';
/** A partner proves its identity itself. */
const OWN = { access: 'own' } as const;

/** Returns the address under which a caller reached the gateway. */
type OriginOf = (request: FastifyRequest) => string;

/** Registers the endpoints of the payment QR service, below `{base_url}`. */
export function serviceRoutes(
  scope: FastifyInstance,
  calls: readonly ServiceCall[],
  open: OpenGateway,
  originOf: OriginOf,
): void {
  const { world } = open;
  allowOrigins(scope, Object.values(PATHS), { origins: world.config.cors, log: world.log });
  scope.decorateRequest(PARTNER, null);
  logCalls(scope, scope.prefix, world, (request) => {
    const partner = request.getDecorator<Partner | null>(PARTNER);
    return { by: partner?.username ?? null, isProved: partner !== null };
  });
  scope.route({
    method: 'POST',
    url: PATHS.token,
    config: OWN,
    // The gateway answers before it reads the body, which it ignores (PROTOCOL.md, clause TOK-3).
    onRequest: (request, reply) => answerToken(request, reply, open),
    handler: () => undefined,
  });
  scope.register(async (bearers) => bearerRoutes(bearers, calls, open, originOf));
}

async function answerToken(request: FastifyRequest, reply: FastifyReply, { world, stored, tokens }: OpenGateway) {
  const { directory, logins } = stored;
  const { log } = world;
  const { username = '', password } = basicCredentials(request) ?? {};
  const partner = await enabledPartner(directory, username);
  const challenge = 'Basic realm="paybox", charset="UTF-8"';
  const attempt = { kind: 'partner', username, secret: password, expected: partner?.password } as const;
  if (!isLoggedIn(request, reply, attempt, { logins, log, challenge })) return reply;
  if (partner !== undefined) request.setDecorator(PARTNER, partner);
  const access_token = await tokens.issue(username);
  const answer: TokenResponse = { access_token, token_type: 'Bearer', expires_in: TOKEN_SECONDS };
  return reply.header('cache-control', 'no-store').send(answer);
}

async function enabledPartner(directory: Directory, username: string): Promise<Partner | undefined> {
  const partner = await directory.partner(username);
  return partner?.disabled === false ? partner : undefined;
}

function bearerRoutes(
  scope: FastifyInstance,
  calls: readonly ServiceCall[],
  { world, stored, tokens }: OpenGateway,
  originOf: OriginOf,
): void {
  const { config, log } = world;
  const { directory } = stored;
  const letIn = async (request: FastifyRequest, reply: FastifyReply) => {
    const token = bearerToken(request);
    const username = token === undefined ? undefined : await tokens.read(token);
    const partner = await enabledPartner(directory, username ?? '');
    if (partner !== undefined) {
      request.setDecorator(PARTNER, partner);
      return;
    }
    reply.header('www-authenticate', token === undefined ? BEARER : `${BEARER}, error="invalid_token"`);
    const reason =
      token === undefined ? 'Authorization: expected a bearer token' : 'the bearer token is wrong or expired';
    return answerRefusal(request, reply, log, { code: 'E74', reason });
  };
  scope.addHook('onRequest', letIn);
  // A body arrives after its head. In that time the partner may be removed, or its token may expire.
  scope.addHook('preHandler', letIn);

  const tellNotes = notesTeller(log);
  for (const { name, body: schema, run } of calls) {
    scope.post(PATHS[name], { config: OWN }, async (request, reply) => {
      const body = readBody(request, log, schema);
      const partner = request.getDecorator<Partner>(PARTNER);
      const notes = new CallNotes(config.strict);
      const result = body.ok
        ? await run(partner, readLeniently(schema, body.value, notes), { origin: originOf(request), notes })
        : body;
      tellNotes(notes, partner, request, reply);
      return result.ok ? reply.send(result.value) : answerRefusal(request, reply, log, result);
    });
  }
}

/** Writes the notes of a call into the headers of its answer. Logs each kind of leniency once. */
function notesTeller(log: Logger) {
  const told = new Set<string>();
  return ({ lenient, warnings }: CallNotes, { username }: Partner, request: FastifyRequest, reply: FastifyReply) => {
    const path = pathOf(request);
    for (const what of lenient) {
      const key = JSON.stringify([username, path, what]);
      if (!told.has(key)) log.info('call-tolerated', { partner: username, path, what });
      told.add(key);
    }
    if (lenient.size > 0) reply.header(LENIENT_HEADER, headerText([...lenient].join(NOTES_SEPARATOR)));
    if (warnings.size > 0) reply.header(WARNING_HEADER, headerText([...warnings].join(NOTES_SEPARATOR)));
  };
}
