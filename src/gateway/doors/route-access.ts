import type { Right } from '../access/roles.ts';

/**
 * Who may call a route: whoever has a right, every role, anybody, or `own` where the route proves its callers itself
 * (partners, boxes, sources of money).
 */
export type Access = Right | 'every-role' | 'anybody' | 'own';

type Rows = Readonly<Record<string, Access>>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route, where the route itself has it. */
    access?: Access;
    /** The verb of the audit list for what the route changes. */
    audit?: string;
  }
}

/** Who may call the routes below `/_mock`. */
export const MOCK_ACCESS: Rows = {
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
