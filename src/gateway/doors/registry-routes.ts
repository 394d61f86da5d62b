import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Code } from '../../protocol/codes.ts';
import type { Access } from '../access/open-access.ts';
import { listQuery } from '../access/requests.ts';
import { accept, type Result } from '../common/result.ts';
import { unknownRow } from '../registry/changes.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import { NAME_OF, type PageQuery } from '../store/repositories/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';
import type { AdminApi, AdminRoute } from './admin-api.ts';
import { findNamesAsPrinted } from './printed-names.ts';
import { type Act, DONE, type Page, RESOURCES, search } from './registry-resources.ts';
import { AUDIT_VIEW, auditView, createRegistryViews, VIEWS } from './registry-views.ts';

const TABLES = Object.keys(RESOURCES) as RegistryTable[];
const CHANGE_REFUSALS: readonly Code[] = ['E96', 'MANAGED_BY_FILE', 'ROW_CHANGED'];
const SUCCESS = { status: 'SUCCESS', message: '' } as const;

const auditQuery = listQuery.extend({
  before: z.coerce.number().int().optional().describe('only changes before this seq'),
  target: search.describe('as boxes/VVB000001'),
});

type More = Partial<Pick<AdminRoute<unknown, unknown, unknown>, 'method' | 'status' | 'refusals'>>;

/** The registry for admins, below `/admin/v1` (PROTOCOL.md, clauses REG-4 to REG-9). */
export function registryRoutes(scope: FastifyInstance, api: AdminApi, open: OpenGateway): void {
  const { registry } = open.stored.store;
  findNamesAsPrinted(scope, TABLES, registry);
  for (const table of TABLES) readRoutes(scope, api, table, open);
  for (const table of TABLES) changeRoutes(scope, api, table, open.access);
  api.route(scope, {
    method: 'GET',
    path: '/audit',
    access: 'look',
    summary: 'Who changed what, newest first',
    query: auditQuery,
    answer: z.array(AUDIT_VIEW),
    run: async ({ query: { limit, before, target } }) =>
      accept((await registry.changes(limit, { before, target })).map(auditView)),
  });
}

function readRoutes<Table extends RegistryTable>(
  scope: FastifyInstance,
  api: AdminApi,
  table: Table,
  open: OpenGateway,
): void {
  const { registry } = open.stored.store;
  const viewOf = createRegistryViews(open)[table];
  api.route(scope, {
    method: 'GET',
    path: `/${table}`,
    access: 'look',
    summary: `List the ${table}, in the order of their names`,
    query: RESOURCES[table].query,
    answer: z.array<z.ZodType>(VIEWS[table]),
    run: async ({ query, caller: { role } }) => {
      const rows = await registry.page(table, pageOf(table, query));
      return accept(await Promise.all(rows.map((it) => viewOf(it, role))));
    },
  });
  api.route(scope, {
    method: 'GET',
    path: `/${table}/:name`,
    access: 'look',
    summary: `Read ${RESOURCES[table].one}`,
    answer: VIEWS[table] as z.ZodType,
    refusals: ['E96'],
    run: async ({ name, caller, reply }) => {
      const row = await registry.find(table, name);
      if (row === undefined) return unknownRow(table, name);
      const view = await viewOf(row, caller.role);
      reply.header('etag', `"${view.changedAt}"`);
      return accept(view);
    },
  });
}

/** Every change of a row, as its resource has it. */
function changeRoutes(scope: FastifyInstance, api: AdminApi, table: RegistryTable, access: Access): void {
  const { one, add, change, changeRefusals = [], link, rotate, disable, remove } = RESOURCES[table];
  const row = `/${table}/:name`;
  const route = <Body>(path: string, summary: string, { body, answer = DONE, run }: Act<Body>, more: More = {}) =>
    api.route(scope, {
      ...{ method: 'POST', path, access: 'administer', summary, answer, refusals: CHANGE_REFUSALS, ...more },
      ...(body && { body }),
      run: async ({ by, name, body }) => doneOf(await run(access, by, name, body as Body)),
    });
  route(`/${table}`, `Add ${one}`, add, { status: 201, refusals: ['NAME_TAKEN'] });
  const changed = { method: 'PATCH', refusals: [...CHANGE_REFUSALS, ...changeRefusals] } as const;
  route(row, `Change ${one}: what is left out stays as it is`, change, changed);
  route(`${row}/disable`, `Disable ${one}`, { run: (_, by, name) => disable(access, by, name, true) });
  route(`${row}/enable`, `Enable ${one}`, { run: (_, by, name) => disable(access, by, name, false) });
  route(row, `Remove ${one}`, { run: remove }, { method: 'DELETE', refusals: [...CHANGE_REFUSALS, 'STILL_IN_USE'] });
  if (rotate !== undefined) route(`${row}/rotate`, rotate.summary, rotate);
  if (link === undefined) return;
  const { to, body, run } = link;
  route(`${row}/link`, `Link ${one} to ${link.one}`, {
    body,
    run: (_, by, name, given) => run(access, by, name, given[to] ?? null),
  });
  route(`${row}/unlink`, `Unlink ${one}`, { run: (_, by, name) => run(access, by, name, null) });
}

/** The answer to a change, with the secret that it has made, if any. */
function doneOf(result: Result<object | undefined>): Result<typeof SUCCESS> {
  if (!result.ok) return result;
  const made = Object.entries(result.value ?? {}).filter(([, it]) => it !== undefined);
  return accept({ ...SUCCESS, ...Object.fromEntries(made) });
}

function pageOf(table: RegistryTable, { limit, after, q, serial, account, partner }: Page): PageQuery {
  const begins =
    serial !== undefined
      ? ({ column: 'serial_number', text: serial } as const)
      : q === undefined
        ? undefined
        : { column: NAME_OF[table], text: q };
  const links = [
    { column: 'account', value: account },
    { column: 'partner', value: partner },
  ] as const;
  const where = links.flatMap(({ column, value }) => (value === undefined ? [] : [{ column, value }]))[0];
  return { limit, after, begins, where };
}
