import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import {
  generateRequest,
  PATHS,
  type StatusResponse,
  sendQrRequest,
  type TokenResponse,
  testCallbackRequest,
} from '../../protocol/http-api.ts';
import type { Logins } from '../access/logins.ts';
import { answerRefusal, basicCredentials, bearerToken, isLoggedIn, readBody } from '../access/requests.ts';
import { TOKEN_SECONDS, type Tokens } from '../access/tokens.ts';
import type { PartnerConfig } from '../config.ts';
import type { Context } from '../context.ts';
import type { Result } from '../result.ts';
import type { Service } from '../service/service.ts';
import type { TrafficLog } from '../traffic-log.ts';
import { logCalls } from './traffic-routes.ts';

export interface ServiceRoutesDeps extends Pick<Context, 'clock' | 'directory' | 'log'> {
  service: Service;
  tokens: Tokens;
  logins: Logins;
  trafficLog: Pick<TrafficLog, 'call'>;
  /** Address under which a caller reached the gateway. */
  originOf: (request: FastifyRequest) => string;
}

/** Decoration of a request with its partner; null before the login. */
const PARTNER = 'partner';

/** The four endpoints of the payment QR service, below `{base_url}`. */
export function serviceRoutes(scope: FastifyInstance, deps: ServiceRoutesDeps): void {
  scope.decorateRequest(PARTNER, null);
  logCalls(scope, scope.prefix, deps, (request) => {
    return request.getDecorator<PartnerConfig | null>(PARTNER)?.username ?? null;
  });
  scope.route({
    method: 'POST',
    url: PATHS.token,
    // Answered before the body is read, which is ignored (PROTOCOL.md, clause TOK-3).
    onRequest: (request, reply) => answerToken(request, reply, deps),
    handler: () => undefined,
  });
  scope.register(async (bearers) => bearerRoutes(bearers, deps));
}

async function answerToken(request: FastifyRequest, reply: FastifyReply, deps: ServiceRoutesDeps) {
  const { username = '', password } = basicCredentials(request) ?? {};
  const partner = deps.directory.partner(username);
  const challenge = 'Basic realm="paybox", charset="UTF-8"';
  const attempt = { kind: 'partner', username, secret: password, expected: partner?.password } as const;
  if (!isLoggedIn(request, reply, attempt, { ...deps, challenge })) return reply;
  if (partner !== undefined) request.setDecorator(PARTNER, partner);
  const access_token = await deps.tokens.issue(username);
  const answer: TokenResponse = { access_token, token_type: 'Bearer', expires_in: TOKEN_SECONDS };
  return reply.header('cache-control', 'no-store').send(answer);
}

function bearerRoutes(scope: FastifyInstance, { service, directory, tokens, log, originOf }: ServiceRoutesDeps): void {
  scope.addHook('onRequest', async (request, reply) => {
    const token = bearerToken(request);
    const username = token === undefined ? undefined : await tokens.read(token);
    const partner = directory.partner(username ?? '');
    if (partner !== undefined) {
      request.setDecorator(PARTNER, partner);
      return;
    }
    reply.header('www-authenticate', token === undefined ? 'Bearer' : 'Bearer error="invalid_token"');
    const reason = token === undefined ? 'no bearer token' : 'the bearer token is wrong or expired';
    return answerRefusal(request, reply, log, { code: 'E74', reason });
  });

  const post = <T>(
    url: string,
    schema: z.ZodObject,
    work: (partner: PartnerConfig, json: unknown, request: FastifyRequest) => Promise<Result<T>>,
    answer: (value: T) => unknown,
  ) =>
    scope.post(url, async (request, reply) => {
      const body = readBody(request, log, schema);
      const partner = request.getDecorator<PartnerConfig>(PARTNER);
      const result = body.ok ? await work(partner, body.value, request) : body;
      return result.ok ? reply.send(answer(result.value)) : answerRefusal(request, reply, log, result);
    });
  const success = (message = ''): StatusResponse => ({ status: 'SUCCESS', message });

  post(
    PATHS.generate,
    generateRequest,
    (partner, json, request) => service.generate(partner, json, originOf(request)),
    (generated) => generated,
  );
  post(PATHS.sendQr, sendQrRequest, (partner, json) => service.sendQr(partner, json), success);
  post(PATHS.testCallback, testCallbackRequest, (partner, json) => service.testCallback(partner, json), success);
}
