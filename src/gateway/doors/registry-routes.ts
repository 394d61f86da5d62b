import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { isStorable, withUnseen } from '../../lib/text.ts';
import type { Code } from '../../protocol/codes.ts';
import type { OwnCall, OwnRoute } from '../access/own-route.ts';
import { listQuery } from '../access/requests.ts';
import { accept, type Result } from '../common/result.ts';
import { changeOf, linkOf, newRowOf, rotationOf, typeOf } from '../registry/bodies.ts';
import { unknownRow } from '../registry/changes.ts';
import { columnOf } from '../registry/columns.ts';
import { nameField, RESOURCES, TABLES } from '../registry/resources.ts';
import type { Made, Rows } from '../registry/rows.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { PageQuery } from '../store/repositories/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';
import type { OwnApi } from './own-api.ts';
import { findNamesAsPrinted } from './printed-names.ts';
import { AUDIT_VIEW, auditView, createRegistryViews, viewSchema } from './registry-views.ts';

const SEARCH_CHARS_MAX = 64;
const CHANGE_REFUSALS: readonly Code[] = ['E96', 'MANAGED_BY_FILE', 'ROW_CHANGED'];
const SUCCESS = { status: 'SUCCESS', message: '' } as const;
const DONE = z.strictObject({ status: z.literal('SUCCESS'), message: z.literal('') });
const ONCE = 'shown once: nobody can read it later';

/** Accepts names as commands print them, with invisible characters in JSON notation. */
const search = z
  .string()
  .max(SEARCH_CHARS_MAX)
  .transform((it) => (isStorable(withUnseen(it)) ? withUnseen(it) : it))
  .optional();
/** A page begins after the last row of the one before. */
const pageQuery = listQuery.omit({ before: true }).extend({
  after: search.describe('the last name of the page before; with serial, its last serialNumber'),
  q: search.describe('only names that begin so'),
});
const auditQuery = listQuery.extend({
  before: z.coerce.number().int().optional().describe('only changes before this seq'),
  target: search.describe('as boxes/VVB000001'),
});

type Page = z.output<typeof pageQuery>;
type Change<Body> = Pick<OwnRoute<unknown, Body, unknown>, 'path' | 'summary' | 'body'> &
  Partial<Pick<OwnRoute<unknown, Body, unknown>, 'method' | 'status' | 'refusals' | 'answer'>>;

/** Registers the registry for admins, below `/admin/v1` (PROTOCOL.md, clauses REG-4 to REG-9). */
export function registryRoutes(scope: FastifyInstance, api: OwnApi, open: OpenGateway): void {
  const { registry } = open.stored.store;
  findNamesAsPrinted(scope, TABLES, registry);
  for (const table of TABLES) readRoutes(scope, api, table, open);
  for (const table of TABLES) changeRoutes(scope, api, table, open.access.registry[table]);
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
  api: OwnApi,
  table: Table,
  open: OpenGateway,
): void {
  const { registry } = open.stored.store;
  const viewOf = createRegistryViews(open)[table];
  const answer = viewSchema(table);
  api.route(scope, {
    method: 'GET',
    path: `/${table}`,
    access: 'look',
    summary: `List the ${table}, in the order of their names`,
    query: queryOf(table),
    answer: z.array(answer),
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
    answer,
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

/** Registers every change that the table allows for a row. */
function changeRoutes(scope: FastifyInstance, api: OwnApi, table: RegistryTable, rows: Rows): void {
  const { one, fields, makes, linkTo, rotate } = RESOURCES[table];
  const row = `/${table}/:name`;
  const route = <Body>(change: Change<Body>, run: (call: OwnCall<unknown, Body>) => Promise<Result<Made>>) =>
    api.route(scope, {
      ...{ method: 'POST', access: 'administer', answer: DONE, refusals: CHANGE_REFUSALS },
      ...change,
      run: async (call) => doneOf(await run(call)),
    });
  const added = makes === undefined ? DONE : DONE.extend({ [makes]: z.string().describe(ONCE) });
  route(
    {
      path: `/${table}`,
      summary: `Add ${one}`,
      body: newRowOf(table),
      answer: added,
      status: 201,
      refusals: ['NAME_TAKEN'],
    },
    ({ by, body }) => rows.add(by, body),
  );
  const taken: Code[] = Object.values(fields).some((it) => it.unique) ? ['NAME_TAKEN'] : [];
  const refusals = [...CHANGE_REFUSALS, ...taken];
  const summary = `Change ${one}: what is left out stays as it is`;
  route({ method: 'PATCH', path: row, summary, body: changeOf(table), refusals }, ({ by, name, body }) =>
    rows.change(by, name, body),
  );
  route({ path: `${row}/disable`, summary: `Disable ${one}` }, ({ by, name }) => rows.disable(by, name, true));
  route({ path: `${row}/enable`, summary: `Enable ${one}` }, ({ by, name }) => rows.disable(by, name, false));
  const removed = { method: 'DELETE', refusals: [...CHANGE_REFUSALS, 'STILL_IN_USE'] } as const;
  route({ ...removed, path: row, summary: `Remove ${one}` }, ({ by, name }) => rows.remove(by, name));
  if (rotate !== undefined) {
    const secret = z.string().describe([rotate.madeIf, ONCE].filter(Boolean).join('; '));
    const answer = DONE.extend({ [rotate.makes]: rotate.madeIf === undefined ? secret : secret.optional() });
    const given = `Give ${one} ${rotate.gives}; ${rotate.effect}`;
    route({ path: `${row}/rotate`, summary: given, body: rotationOf(rotate.fields), answer }, ({ by, name, body }) =>
      rows.rotate(by, name, body),
    );
  }
  if (linkTo === undefined) return;
  const to = RESOURCES[`${linkTo}s`].one;
  route({ path: `${row}/link`, summary: `Link ${one} to ${to}`, body: linkOf(table, linkTo) }, ({ by, name, body }) =>
    rows.link(by, name, body[linkTo] ?? null),
  );
  route({ path: `${row}/unlink`, summary: `Unlink ${one}` }, ({ by, name }) => rows.link(by, name, null));
}

/** Returns the answer to a change, with the secret if the change has made one. */
function doneOf(result: Result<Made>): Result<object> {
  if (!result.ok) return result;
  const made = Object.entries(result.value).filter(([, it]) => it !== undefined);
  return accept({ ...SUCCESS, ...Object.fromEntries(made) });
}

/** Returns the query of a list, which also searches by the link, and by each field of the table that says so. */
function queryOf(table: RegistryTable): z.ZodType<Page> {
  const { fields, linkTo } = RESOURCES[table];
  const more: Record<string, z.ZodType> = {};
  for (const [name, field] of Object.entries(fields)) {
    if (field.search !== undefined) more[field.search] = search.describe(`only ${name}s that begin so`);
    // Partners in older stores may have names that nobody can type.
    if (name === linkTo) more[name] = field.type === 'username' ? search : typeOf(field).optional();
  }
  // The schema has more keys, which `pageOf` reads by their names.
  return pageQuery.extend(more) as unknown as z.ZodType<Page>;
}

function pageOf(table: RegistryTable, query: Page): PageQuery {
  const { fields, linkTo = '' } = RESOURCES[table];
  const { limit, after, q } = query;
  const given = query as Readonly<Record<string, unknown>>;
  const searched = Object.entries(fields).find(([, { search }]) => search !== undefined && given[search] !== undefined);
  const [name, text] = searched === undefined ? [nameField(table), q] : [searched[0], given[searched[1].search ?? '']];
  const value = given[linkTo];
  return {
    limit,
    after,
    begins: typeof text === 'string' ? { column: columnOf(name), text } : undefined,
    where: typeof value === 'string' ? { column: linkTo, value } : undefined,
  };
}
