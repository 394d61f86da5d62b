import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import {
  generateRequest,
  PATHS,
  type StatusResponse,
  sendQrRequest,
  type TokenResponse,
  testCallbackRequest,
} from '../../protocol/http-api.ts';
import type { PartnerConfig } from '../config.ts';
import type { Directory } from '../directory.ts';
import type { Logins } from '../logins.ts';
import type { Result } from '../result.ts';
import type { Service } from '../service.ts';
import { TOKEN_SECONDS, type Tokens } from '../tokens.ts';
import type { TrafficLog } from '../traffic-log.ts';
import { isLoggedIn } from './login-answer.ts';
import { answerRefusal, basicCredentials, bearerToken, readBody } from './requests.ts';
import { logCalls } from './traffic-routes.ts';

export interface ServiceRoutesDeps {
  service: Service;
  directory: Directory;
  tokens: Tokens;
  logins: Logins;
  wire: Pick<TrafficLog, 'call'>;
  clock: Clock;
  log: Logger;
  /** Where a caller reaches the gateway. */
  originOf: (request: FastifyRequest) => string;
  /** Adds hooks after which the calls of a scope may go wrong by order. */
  goWrong: (scope: FastifyInstance) => void;
}

/** The four endpoints of the payment QR service, below `{base_url}`. */
export function serviceRoutes(scope: FastifyInstance, deps: ServiceRoutesDeps): void {
  const partners: Partners = new WeakMap();
  logCalls(scope, scope.prefix, deps, (request) => partners.get(request)?.username ?? null);
  scope.route({
    method: 'POST',
    url: PATHS.token,
    // Answered before the body is read, whatever it is (PROTOCOL.md, clause TOK-3).
    onRequest: (request, reply) => answerToken(request, reply, deps, partners),
    handler: () => undefined,
  });
  scope.register(async (bearers) => bearerRoutes(bearers, deps, partners));
}

/** Who has shown to be the partner that a request is of. */
type Partners = WeakMap<FastifyRequest, PartnerConfig>;

async function answerToken(request: FastifyRequest, reply: FastifyReply, deps: ServiceRoutesDeps, partners: Partners) {
  const { username = '', password } = basicCredentials(request) ?? {};
  const partner = deps.directory.partner(username);
  const expected = partner?.password;
  const challenge = 'Basic realm="paybox", charset="UTF-8"';
  const attempt = { kind: 'partner', username, secret: password, expected } as const;
  if (!isLoggedIn(request, reply, attempt, { ...deps, challenge })) return reply;
  if (partner !== undefined) partners.set(request, partner);
  const access_token = await deps.tokens.issue(username);
  const answer: TokenResponse = { access_token, token_type: 'Bearer', expires_in: TOKEN_SECONDS };
  return reply.header('cache-control', 'no-store').send(answer);
}

function bearerRoutes(
  scope: FastifyInstance,
  { service, directory, tokens, log, originOf, goWrong }: ServiceRoutesDeps,
  partners: Partners,
): void {
  scope.addHook('onRequest', async (request, reply) => {
    const token = bearerToken(request);
    const username = token === undefined ? undefined : await tokens.read(token);
    const partner = directory.partner(username ?? '');
    if (partner !== undefined) {
      partners.set(request, partner);
      return;
    }
    reply.header('www-authenticate', token === undefined ? 'Bearer' : 'Bearer error="invalid_token"');
    const reason = token === undefined ? 'no bearer token' : 'the bearer token is wrong or expired';
    return answerRefusal(request, reply, log, { code: 'E74', reason });
  });

  goWrong(scope);

  const post = <T>(
    url: string,
    schema: z.ZodObject,
    work: (partner: PartnerConfig, json: unknown, request: FastifyRequest) => Promise<Result<T>>,
    answer: (value: T) => unknown,
  ) =>
    scope.post(url, async (request, reply) => {
      const partner = partners.get(request);
      if (partner === undefined) throw new Error('a request without a partner reached its handler');
      const body = readBody(request, log, schema);
      const verdict = body.ok ? await work(partner, body.value, request) : body;
      return verdict.ok ? reply.send(answer(verdict.value)) : answerRefusal(request, reply, log, verdict);
    });
  const success = (message: string): StatusResponse => ({ status: 'SUCCESS', message });

  post(
    PATHS.generate,
    generateRequest,
    (partner, json, request) => service.generate(partner, json, originOf(request)),
    (made) => made,
  );
  post(
    PATHS.sendQr,
    sendQrRequest,
    (partner, json) => service.sendQr(partner, json),
    () => success(''),
  );
  post(PATHS.testCallback, testCallbackRequest, (partner, json) => service.testCallback(partner, json), success);
}
