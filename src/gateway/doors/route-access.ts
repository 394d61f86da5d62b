import { ENROLMENTS_PATH } from '../../protocol/enrolment.ts';
import { BOX_PATHS, PATHS } from '../../protocol/http-api.ts';
import type { Right } from '../access/roles.ts';
import { PAGE_FILES } from './page-files.ts';

/**
 * Who may call a route: whoever has a right, every role, anybody, or `own` where the route proves its callers itself
 * (partners, boxes, sources of money).
 */
export type Access = Right | 'every-role' | 'anybody' | 'own';

type Rows = Record<string, Access>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route, where the route itself has it. */
    access?: Access;
    /** The verb of the audit list for what the route changes. */
    audit?: string;
  }
}

/** The routes of every table of the registry. */
const OF_TABLE = {
  'GET /admin/v1/{table}': 'look',
  'GET /admin/v1/{table}/:name': 'look',
  'POST /admin/v1/{table}': 'administer',
  'PATCH /admin/v1/{table}/:name': 'administer',
  'DELETE /admin/v1/{table}/:name': 'administer',
  'POST /admin/v1/{table}/:name/disable': 'administer',
  'POST /admin/v1/{table}/:name/enable': 'administer',
} as const satisfies Rows;

const PAGES: Rows = {
  'GET /': 'anybody',
  'GET /welcome': 'anybody',
  'GET /registry': 'anybody',
  'GET /docs': 'anybody',
  'GET /docs/admin': 'anybody',
  'GET /openapi.json': 'anybody',
  'GET /admin/openapi.json': 'anybody',
  'GET /livez': 'anybody',
  'GET /readyz': 'anybody',
  'GET /healthz': 'anybody',
  // The picture of a QR, by a reference that nobody guesses.
  'GET /qr/:ref': 'anybody',
};

const MOCK: Rows = {
  'GET /_mock/about': 'look',
  'GET /_mock/boxes': 'look',
  'GET /_mock/boxes/:terminalCode': 'look',
  'GET /_mock/boxes/:terminalCode/screen.png': 'look',
  'GET /_mock/orders': 'look',
  'GET /_mock/payments': 'look',
  'GET /_mock/credits': 'look',
  'GET /_mock/sources': 'look',
  'GET /_mock/keys': 'look',
  'GET /_mock/callbacks': 'look',
  'GET /_mock/callbacks/backlog': 'look',
  'GET /_mock/callbacks/:id': 'look',
  'GET /_mock/wire': 'look',
  'GET /_mock/calls': 'look',
  'GET /_mock/faults': 'look',
  'GET /_mock/events': 'look',
  'GET /_mock/enrolments': 'look',
  'GET /_mock/backup': 'administer',
  'POST /_mock/orders/:orderId/cancel': 'administer',
  'POST /_mock/orders/:orderId/pay': 'administer',
  'POST /_mock/keys/rotate': 'administer',
  'POST /_mock/callbacks/resend': 'administer',
  'POST /_mock/callbacks/:id/resend': 'administer',
  'POST /_mock/faults': 'administer',
  'DELETE /_mock/faults': 'administer',
  'DELETE /_mock/faults/:id': 'administer',
  'POST /_mock/enrolments/:terminalCode/accept': 'administer',
  'POST /_mock/enrolments/:terminalCode/reject': 'administer',
  'POST /_mock/boxes/:terminalCode/forget': 'administer',
};

const OF_SOME_TABLES = {
  'GET /admin/v1/audit': 'look',
  'POST /admin/v1/accounts/:name/link': 'administer',
  'POST /admin/v1/accounts/:name/unlink': 'administer',
  'POST /admin/v1/boxes/:name/link': 'administer',
  'POST /admin/v1/boxes/:name/unlink': 'administer',
  'POST /admin/v1/partners/:name/rotate': 'administer',
  'POST /admin/v1/boxes/:name/rotate': 'administer',
  'POST /admin/v1/sources/:name/rotate': 'administer',
} as const satisfies Rows;

const OTHERS: Rows = {
  [`GET ${BOX_PATHS.stream}`]: 'own',
  [`POST ${BOX_PATHS.messages}`]: 'own',
  [`POST ${ENROLMENTS_PATH}`]: 'own',
  [`GET ${ENROLMENTS_PATH}/:id`]: 'own',
  'POST /hooks/:name': 'own',
  'POST /hooks/:name/*': 'own',
};

/** The registry's routes of the admin API. */
export const REGISTRY_ACCESS: Readonly<Record<string, Right>> = {
  ...OF_SOME_TABLES,
  ...Object.fromEntries(
    ['partners', 'accounts', 'boxes', 'sources'].flatMap((table) =>
      Object.entries(OF_TABLE).map(([route, access]) => [route.replace('{table}', table), access]),
    ),
  ),
};

/**
 * Returns who may call each route that does not have its `access` itself, by its method and path (PROTOCOL.md, clause ROL-2). There are
 * no others: a route that has neither is not registered.
 */
export function routeAccess({ basePath, mode }: { basePath: string; mode: 'sandbox' | 'live' }): Readonly<Rows> {
  const calls = Object.values(PATHS).flatMap((path) => ['POST', 'OPTIONS'].map((it) => `${it} ${basePath}${path}`));
  return {
    ...Object.fromEntries(calls.map((route) => [route, 'own'])),
    ...Object.fromEntries(Object.keys(PAGE_FILES).map((path) => [`GET ${path}`, 'anybody'])),
    ...PAGES,
    ...MOCK,
    ...REGISTRY_ACCESS,
    ...OTHERS,
    // How much money a shop gets is nobody's business.
    'GET /metrics': mode === 'live' ? 'look' : 'anybody',
  };
}

/** Changes that the audit list names although they are not of the registry, which notes its own. */
export const AUDITED: Readonly<Record<string, string>> = {
  'POST /_mock/orders/:orderId/cancel': 'cancelled',
  'POST /_mock/keys/rotate': 'rotated',
  'POST /_mock/callbacks/resend': 'resent',
  'POST /_mock/callbacks/:id/resend': 'resent',
  'POST /_mock/enrolments/:terminalCode/accept': 'enrolled',
  'POST /_mock/enrolments/:terminalCode/reject': 'rejected',
  'POST /_mock/boxes/:terminalCode/forget': 'forgotten',
};
