import type { FastifyInstance } from 'fastify';
import type { Hub } from '../boxes/hub.ts';
import type { Directory } from '../directory.ts';
import type { FaultOrders } from '../edges.ts';
import type { Store } from '../store/store.ts';
import type { TrafficLog } from '../traffic-log.ts';
import { backupRoutes } from './backup-routes.ts';
import { type CallbackRoutesDeps, callbackRoutes } from './callback-routes.ts';
import { faultRoutes } from './fault-routes.ts';
import { type MockRoutesDeps, mockRoutes } from './mock-routes.ts';
import { logAdminRequests, trafficRoutes } from './traffic-routes.ts';
import { createViews } from './views.ts';

export type AdminRoutesDeps = Omit<MockRoutesDeps & CallbackRoutesDeps, 'views'> & {
  store: Store;
  hub: Hub;
  directory: Directory;
  trafficLog: TrafficLog;
  faults: FaultOrders;
};

/** What only owners may ask, below `/_mock`. Returns what ends its streams. */
export function adminRoutes(scope: FastifyInstance, deps: AdminRoutesDeps): () => void {
  logAdminRequests(scope, deps);
  const views = createViews(deps.store, deps.hub, deps.directory);
  const endStreams = mockRoutes(scope, { ...deps, views });
  callbackRoutes(scope, { ...deps, views });
  const endBackups = backupRoutes(scope, deps);
  trafficRoutes(scope, deps);
  faultRoutes(scope, deps);
  return () => {
    endStreams();
    endBackups();
  };
}
