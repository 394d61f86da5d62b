import type { FastifyInstance, FastifyRequest } from 'fastify';
import { addressError, urlHost } from '../../lib/listen.ts';
import { ADMIN_PATH } from '../access/own-route.ts';
import { answersOnceMade } from '../access/requests.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import { guardRoutes } from './admin.ts';
import { adminRoutes } from './admin-routes.ts';
import { boxRoutes } from './box-routes.ts';
import { adminEnrolmentRoutes, boxEnrolmentRoutes } from './enrolment-routes.ts';
import { hookRoutes } from './hook-routes.ts';
import { OwnApi } from './own-api.ts';
import { pageRoutes } from './page-routes.ts';
import { registryRoutes } from './registry-routes.ts';
import { saleRoutes } from './sale-routes.ts';
import { describeService, serviceCalls } from './service-calls.ts';
import { serviceRoutes } from './service-routes.ts';
import { tokenRoutes } from './token-routes.ts';
import { logAdminRequests } from './traffic-routes.ts';

/** Registers every route of the gateway. Returns a function that ends all streams. */
export function registerRoutes(app: FastifyInstance, open: OpenGateway): () => void {
  const { world, edges, stored, boxes, money } = open;
  const { config } = world;
  const api = new OwnApi(world);
  const calls = serviceCalls(money.calls);
  guardRoutes(app, open);
  const endStreams: (() => void)[] = [];
  app.register(
    async (scope) => {
      await edges.partnerRoutes(scope, stored);
      serviceRoutes(scope, calls, open, (request) => originFor(request, app, config));
    },
    { prefix: config.basePath },
  );
  app.register(async (scope) => {
    edges.boxRoutes(scope);
    endStreams.push(boxRoutes(scope, world, stored, boxes));
  });
  app.register(
    async (scope) => {
      logAdminRequests(scope, world);
      endStreams.push(adminRoutes(scope, api, open));
      for (const route of await edges.mockRoutes(stored)) api.route(scope, route);
    },
    { prefix: '/_mock' },
  );
  app.register(async (scope) => hookRoutes(scope, open), { prefix: '/hooks' });
  app.register(
    async (scope) => {
      logAdminRequests(scope, world);
      saleRoutes(scope, api, open);
    },
    { prefix: ADMIN_PATH },
  );
  app.register(
    async (scope) => {
      // These calls are not in the traffic log, because bodies and answers have passwords. The audit list has every
      // change.
      registryRoutes(scope, api, open);
      tokenRoutes(scope, api, open);
    },
    { prefix: ADMIN_PATH },
  );
  const describe = (path: string, make: () => object) =>
    app.get(path, { config: { access: 'anybody' } }, answersOnceMade(make));
  describe('/openapi.json', () => describeService(config.basePath || '/', calls, api.mockRoutes()));
  describe('/admin/openapi.json', () => api.document());
  app.register(async (scope) => boxEnrolmentRoutes(scope, open));
  // These calls are not in the traffic log, because the code of a box is as good as its secret.
  app.register(async (scope) => adminEnrolmentRoutes(scope, api, open.access), { prefix: '/_mock' });
  app.register((scope) => pageRoutes(scope, open));
  return () => {
    for (const end of endStreams) end();
  };
}

/** Opens the port. Throws ConfigError that names the option when the address cannot be used. */
export async function listenAt(app: FastifyInstance, { http }: GatewayConfig): Promise<void> {
  try {
    await app.listen({ host: http.host, port: http.port });
  } catch (error) {
    throw addressError(error, http, 'http');
  }
}

/** Returns the address of the gateway, as `http://127.0.0.1:8800`. */
export function originAt(app: FastifyInstance, { http }: GatewayConfig): string {
  const address = app.server.address();
  const port = address === null || typeof address === 'string' ? http.port : address.port;
  return `${schemeOf(http)}://${urlHost(http.host)}:${port}`;
}

function schemeOf({ tls }: GatewayConfig['http']): string {
  return tls === undefined ? 'http' : 'https';
}

/** Returns the address under which this caller reached the gateway, so that links in the answer work for it. */
function originFor(request: FastifyRequest, app: FastifyInstance, config: GatewayConfig): string {
  const { host = '' } = request.headers;
  return /^[\w.[\]:-]{1,255}$/.test(host) ? `${schemeOf(config.http)}://${host}` : originAt(app, config);
}
