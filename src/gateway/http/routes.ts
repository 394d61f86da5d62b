import type { FastifyInstance, FastifyRequest } from 'fastify';
import { answersOnceMade } from '../access/requests.ts';
import type { BacklogReader } from '../callbacks/backlog.ts';
import type { GatewayConfig } from '../config.ts';
import type { Directory } from '../directory.ts';
import type { FaultOrders } from '../fault-orders.ts';
import { addressError, urlHost } from '../listen.ts';
import { type GuardDeps, guardRoutes } from './admin.ts';
import { AdminApi } from './admin-api.ts';
import { type AdminRoutesDeps, adminRoutes } from './admin-routes.ts';
import { type BoxRoutesDeps, boxRoutes } from './box-routes.ts';
import { adminEnrolmentRoutes, boxEnrolmentRoutes, type EnrolmentRoutesDeps } from './enrolment-routes.ts';
import { type HookRoutesDeps, hookRoutes } from './hook-routes.ts';
import { type PageRoutesDeps, pageRoutes } from './page-routes.ts';
import { type RegistryRoutesDeps, registryRoutes } from './registry-routes.ts';
import { type SaleRoutesDeps, saleRoutes } from './sale-routes.ts';
import { type ServiceRoutesDeps, serviceRoutes } from './service-routes.ts';
import { type TokenRoutesDeps, tokenRoutes } from './token-routes.ts';
import { logAdminRequests } from './traffic-routes.ts';

export type RoutesDeps = Omit<AdminRoutesDeps, 'baseUrl' | 'faults'> &
  Omit<ServiceRoutesDeps, 'originOf'> &
  EnrolmentRoutesDeps &
  HookRoutesDeps &
  Pick<SaleRoutesDeps, 'sales'> &
  RegistryRoutesDeps &
  TokenRoutesDeps &
  GuardDeps &
  Pick<PageRoutesDeps, 'metrics' | 'health'> & {
    boxes: BoxRoutesDeps;
    /** The backlog, at most one second old, for metrics. */
    cachedBacklog: BacklogReader;
  };

/** Edges of the routes. */
interface RouteEdges {
  faults: FaultOrders;
  partnerRoutes(scope: FastifyInstance, directory: Directory): Promise<void>;
  boxRoutes(scope: FastifyInstance): void;
}

/** Registers every route of the gateway. Returns a function that ends all streams. */
export function registerRoutes(app: FastifyInstance, edges: RouteEdges, deps: RoutesDeps): () => void {
  const { config, boxes, cachedBacklog } = deps;
  const { basePath } = config;
  guardRoutes(app, deps);
  const endStreams: (() => void)[] = [];
  app.register(
    async (scope) => {
      await edges.partnerRoutes(scope, deps.directory);
      serviceRoutes(scope, { ...deps, originOf: (request) => originFor(request, app, config) });
    },
    { prefix: basePath },
  );
  app.register(async (scope) => {
    edges.boxRoutes(scope);
    endStreams.push(boxRoutes(scope, boxes));
  });
  app.register(
    async (scope) => {
      const baseUrl = () => `${originAt(app, config)}${basePath}`;
      endStreams.push(adminRoutes(scope, { ...deps, faults: edges.faults, baseUrl }));
    },
    { prefix: '/_mock' },
  );
  app.register(async (scope) => hookRoutes(scope, deps), { prefix: '/hooks' });
  const api = new AdminApi(deps.log);
  app.register(
    async (scope) => {
      logAdminRequests(scope, deps);
      saleRoutes(scope, api, deps);
    },
    { prefix: '/admin/v1' },
  );
  app.register(
    async (scope) => {
      // Not in the traffic log: bodies and answers have passwords. The audit list has every change.
      registryRoutes(scope, api, deps);
      tokenRoutes(scope, api, deps);
    },
    { prefix: '/admin/v1' },
  );
  app.get(
    '/admin/openapi.json',
    answersOnceMade(() => api.document()),
  );
  app.register(async (scope) => boxEnrolmentRoutes(scope, deps));
  app.register(async (scope) => adminEnrolmentRoutes(scope, deps), { prefix: '/_mock' });
  app.register((scope) => pageRoutes(scope, { ...deps, backlog: cachedBacklog }));
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

/** Address of the gateway, as `http://127.0.0.1:8800`. */
export function originAt(app: FastifyInstance, { http }: GatewayConfig): string {
  const address = app.server.address();
  const port = address === null || typeof address === 'string' ? http.port : address.port;
  return `${schemeOf(http)}://${urlHost(http.host)}:${port}`;
}

function schemeOf({ tls }: GatewayConfig['http']): string {
  return tls === undefined ? 'http' : 'https';
}

/** Address under which this caller reached the gateway, so that links in the answer work for it. */
function originFor(request: FastifyRequest, app: FastifyInstance, config: GatewayConfig): string {
  const { host = '' } = request.headers;
  return /^[\w.[\]:-]{1,255}$/.test(host) ? `${schemeOf(config.http)}://${host}` : originAt(app, config);
}
