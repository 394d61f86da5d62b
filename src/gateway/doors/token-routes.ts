import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { newAdminToken } from '../access/admin-tokens.ts';
import { boxesOf, type Caller } from '../access/authorizer.ts';
import { accept } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import { mayDo, ROLE_NAMES, ROLES } from '../config/roles.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { AdminTokenRow } from '../store/schema/tables.ts';
import type { OwnApi } from './own-api.ts';

/** The till of the console offers this many boxes. */
const TILLS_MAX = 500;

const time = z.string().describe('ISO 8601, UTC');
const boxes = z.array(z.string()).nullable().describe('of a cashier: the boxes at which he may sell; null: all');
const tokenAnswer = z.strictObject({
  name: z.string(),
  role: z.string(),
  boxes,
  createdAt: time,
  createdBy: z.string(),
  lastUsedAt: time.nullable().describe('up to a minute old'),
  revokedAt: time.nullable(),
});
const tokensQuery = z.object({
  revoked: z.stringbool().default(false).describe('the revoked ones in place of the others'),
});
const tokenMade = z.strictObject({
  status: z.literal('SUCCESS'),
  message: z.literal(''),
  token: z.string().describe('shown once: nobody can read it later'),
});
const callerAnswer = z.strictObject({
  name: z.string().describe('the name of the token; loopback without one'),
  role: z.enum(ROLE_NAMES),
  rights: z.array(z.string()),
  mode: z.enum(['sandbox', 'live']),
  sandbox: z.boolean(),
  tills: z.array(z.string()).describe('the boxes with an account at which the caller may sell'),
});

/** Registers the routes of tokens and of the caller's own role, below `/admin/v1` (PROTOCOL.md, clause ROL). */
export function tokenRoutes(scope: FastifyInstance, api: OwnApi, { world, stored, access }: OpenGateway): void {
  const { adminTokens } = access;
  const { config } = world;
  api.route(scope, {
    method: 'GET',
    path: '/caller',
    access: 'every-role',
    summary: 'Who calls, and what he may do',
    answer: callerAnswer,
    run: async ({ caller }) => {
      const { who: name, role } = caller;
      const { mode, sandbox } = config;
      return accept({ name, role, rights: [...ROLES[role]], mode, sandbox, tills: await tillsOf(caller, stored) });
    },
  });
  api.route(scope, {
    method: 'GET',
    path: '/tokens',
    access: 'administer',
    summary: 'List the tokens, in the order of their names',
    query: tokensQuery,
    answer: z.array(tokenAnswer),
    run: async ({ query }) => accept((await adminTokens.list(query.revoked)).map(tokenView)),
  });
  api.route(scope, {
    method: 'POST',
    path: '/tokens',
    access: 'administer',
    summary: 'Make a token',
    body: newAdminToken,
    answer: tokenMade,
    status: 201,
    refusals: ['NAME_TAKEN'],
    run: async ({ by, body }) => {
      const made = await adminTokens.add(by, body);
      return made.ok ? accept({ status: 'SUCCESS', message: '', token: made.value }) : made;
    },
  });
  api.route(scope, {
    method: 'DELETE',
    path: '/tokens/:name',
    access: 'administer',
    summary: 'Revoke a token: it is refused at once, and its streams end',
    answer: tokenMade.omit({ token: true }),
    refusals: ['E96'],
    run: async ({ by, name }) => {
      const revoked = await adminTokens.revoke(by, name);
      return revoked.ok ? accept({ status: 'SUCCESS', message: '' }) : revoked;
    },
  });
}

async function tillsOf({ role, boxes }: Caller, { directory }: Stored): Promise<string[]> {
  if (!mayDo(role, 'sell')) return [];
  const able = boxes === undefined ? await directory.linkedBoxes(TILLS_MAX) : await directory.boxesNamed(boxes);
  return able.flatMap((it) => (it.account === undefined || it.disabled ? [] : [it.terminalCode])).toSorted();
}

function tokenView(row: AdminTokenRow): z.output<typeof tokenAnswer> {
  return {
    name: row.name,
    role: row.role,
    boxes: boxesOf(row)?.slice() ?? null,
    createdAt: iso(row.created_at_ms),
    createdBy: row.created_by,
    lastUsedAt: row.last_used_at_ms === null ? null : iso(row.last_used_at_ms),
    revokedAt: row.revoked_at_ms === null ? null : iso(row.revoked_at_ms),
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
