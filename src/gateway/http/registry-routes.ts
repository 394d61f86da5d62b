import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { isStorable, withUnseen } from '../../lib/text.ts';
import type { Code } from '../../protocol/codes.ts';
import { bankAccount } from '../../protocol/fields.ts';
import { NAME_OF, type PageQuery } from '../../store/repositories/registry.ts';
import type { RegistryTable } from '../../store/schema/tables.ts';
import type { Access } from '../access/open-access.ts';
import { listQuery } from '../access/requests.ts';
import { CHANGES, LINKS, NEW_ROWS, ROTATIONS } from '../registry/bodies.ts';
import { type Admin, unknownRow } from '../registry/changes.ts';
import { accept, type Result } from '../result.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { AdminApi } from './admin-api.ts';
import { findNamesAsPrinted } from './printed-names.ts';
import { AUDIT_VIEW, auditView, createRegistryViews, VIEWS } from './registry-views.ts';

const SEARCH_CHARS_MAX = 64;
const TABLES = ['partners', 'accounts', 'boxes', 'sources'] as const;
const ONE: Record<RegistryTable, string> = {
  partners: 'a partner',
  accounts: 'an account',
  boxes: 'a box',
  sources: 'a source',
};
const CHANGE_REFUSALS: readonly Code[] = ['E96', 'MANAGED_BY_FILE', 'ROW_CHANGED'];

/** As commands print names: with what nobody sees in JSON notation. */
const search = z
  .string()
  .max(SEARCH_CHARS_MAX)
  .transform((it) => (isStorable(withUnseen(it)) ? withUnseen(it) : it))
  .optional();
/** `q`: the beginning of a name; `serial`: that of a serialNumber. The next page begins after the last row of this one. */
const pageQuery = listQuery.omit({ before: true }).extend({
  after: search.describe('the last name of the page before; with serial, its last serialNumber'),
  q: search.describe('only names that begin so'),
});
const PAGE_QUERIES = {
  partners: pageQuery,
  accounts: pageQuery.extend({ partner: search }),
  boxes: pageQuery.extend({
    serial: search.describe('only serialNumbers that begin so'),
    account: bankAccount.optional(),
  }),
  sources: pageQuery,
};
type Page = z.output<typeof pageQuery> & { serial?: string; account?: string; partner?: string };
const auditQuery = listQuery.extend({
  before: z.coerce.number().int().optional().describe('only changes before this seq'),
  target: search.describe('as boxes/VVB000001'),
});

const DONE = z.strictObject({ status: z.literal('SUCCESS'), message: z.literal('') });
const ONCE = 'shown once: nobody can read it later';
const WITH_PASSWORD = DONE.extend({ password: z.string().describe(ONCE) });
const WITH_KEY = DONE.extend({ key: z.string().optional().describe(`if the gateway has made it; ${ONCE}`) });
const WITH_SECRET = DONE.extend({ secret: z.string().optional().describe(`left out: the box enrols; ${ONCE}`) });
const SUCCESS = { status: 'SUCCESS', message: '' } as const;

/** The registry for admins, below `/admin/v1` (PROTOCOL.md, clauses REG-4 to REG-9). */
export function registryRoutes(scope: FastifyInstance, api: AdminApi, open: OpenGateway): void {
  const { registry } = open.stored.store;
  findNamesAsPrinted(scope, TABLES, registry);
  for (const table of TABLES) readRoutes(scope, api, table, open);
  for (const table of TABLES) commonRoutes(scope, api, table, open);
  addRoutes(scope, api, open.access);
  changeRoutes(scope, api, open.access);
  linkRoutes(scope, api, open.access);
  rotateRoutes(scope, api, open.access);
  api.route(scope, {
    method: 'GET',
    path: '/audit',
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
    summary: `List the ${table}, in the order of their names`,
    query: PAGE_QUERIES[table] as z.ZodType<Page>,
    answer: z.array<z.ZodType>(VIEWS[table]),
    run: async ({ query, caller: { role } }) => {
      const rows = await registry.page(table, pageOf(table, query));
      return accept(await Promise.all(rows.map((it) => viewOf(it, role))));
    },
  });
  api.route(scope, {
    method: 'GET',
    path: `/${table}/:name`,
    summary: `Read ${ONE[table]}`,
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

/** Disable, enable and remove. */
function commonRoutes(
  scope: FastifyInstance,
  api: AdminApi,
  table: RegistryTable,
  { access: { registry, sourceRows } }: OpenGateway,
): void {
  const disable = (by: Admin, name: string, disabled: boolean) =>
    table === 'sources' ? sourceRows.disable(by, name, disabled) : registry.disable(by, table, name, disabled);
  for (const [what, disabled] of [
    ['disable', true],
    ['enable', false],
  ] as const) {
    api.route(scope, {
      method: 'POST',
      path: `/${table}/:name/${what}`,
      summary: `${disabled ? 'Disable' : 'Enable'} ${ONE[table]}`,
      answer: DONE,
      refusals: CHANGE_REFUSALS,
      run: async ({ by, name }) => doneOf(await disable(by, name, disabled)),
    });
  }
  api.route(scope, {
    method: 'DELETE',
    path: `/${table}/:name`,
    summary: `Remove ${ONE[table]}`,
    answer: DONE,
    refusals: [...CHANGE_REFUSALS, 'STILL_IN_USE'],
    run: async ({ by, name }) =>
      doneOf(await (table === 'sources' ? sourceRows.remove(by, name) : registry.remove(by, table, name))),
  });
}

function addRoutes(scope: FastifyInstance, api: AdminApi, { registry, sourceRows }: Access): void {
  const add = (table: RegistryTable) =>
    ({
      method: 'POST',
      path: `/${table}`,
      summary: `Add ${ONE[table]}`,
      status: 201,
      refusals: ['NAME_TAKEN'],
    }) as const;
  api.route(scope, {
    ...add('partners'),
    body: NEW_ROWS.partners,
    answer: WITH_PASSWORD,
    run: async ({ by, body }) => {
      const added = await registry.addPartner(by, body);
      return added.ok ? accept({ ...SUCCESS, password: added.value }) : added;
    },
  });
  api.route(scope, {
    ...add('accounts'),
    body: NEW_ROWS.accounts,
    answer: DONE,
    run: async ({ by, body }) => doneOf(await registry.addAccount(by, body)),
  });
  api.route(scope, {
    ...add('boxes'),
    body: NEW_ROWS.boxes,
    answer: DONE,
    run: async ({ by, body }) => doneOf(await registry.addBox(by, body)),
  });
  api.route(scope, {
    ...add('sources'),
    body: NEW_ROWS.sources,
    answer: DONE,
    run: async ({ by, body }) => doneOf(await sourceRows.add(by, body)),
  });
}

function changeRoutes(scope: FastifyInstance, api: AdminApi, { registry, sourceRows }: Access): void {
  const change = <Body>(
    table: RegistryTable,
    body: z.ZodType<Body>,
    run: (by: Admin, name: string, body: Body) => Promise<Result<undefined>>,
  ) =>
    api.route(scope, {
      method: 'PATCH',
      path: `/${table}/:name`,
      summary: `Change ${ONE[table]}: what is left out stays as it is`,
      body,
      answer: DONE,
      refusals: table === 'boxes' ? [...CHANGE_REFUSALS, 'NAME_TAKEN'] : CHANGE_REFUSALS,
      run: async ({ by, name, body }) => doneOf(await run(by, name, body)),
    });
  change('partners', CHANGES.partners, (by, name, body) => registry.changePartner(by, name, body));
  change('accounts', CHANGES.accounts, (by, name, body) => registry.changeAccount(by, name, body));
  change('boxes', CHANGES.boxes, (by, name, body) => registry.changeBox(by, name, body));
  change('sources', CHANGES.sources, (by, name, body) => sourceRows.change(by, name, body));
}

function linkRoutes(scope: FastifyInstance, api: AdminApi, { registry }: Access): void {
  const routes = { accounts: 'partner', boxes: 'account' } as const;
  for (const table of ['accounts', 'boxes'] as const) {
    const common = { method: 'POST', answer: DONE, refusals: CHANGE_REFUSALS } as const;
    const to = routes[table];
    api.route(scope, {
      ...common,
      path: `/${table}/:name/link`,
      summary: `Link ${ONE[table]} to ${to === 'partner' ? 'a partner' : 'an account'}`,
      body: LINKS[table] as z.ZodType<Record<string, string>>,
      run: async ({ by, name, body }) => doneOf(await registry.link(by, table, name, body[to] ?? null)),
    });
    api.route(scope, {
      ...common,
      path: `/${table}/:name/unlink`,
      summary: `Unlink ${ONE[table]}`,
      run: async ({ by, name }) => doneOf(await registry.link(by, table, name, null)),
    });
  }
}

function rotateRoutes(scope: FastifyInstance, api: AdminApi, { registry, sourceRows }: Access): void {
  const rotate = (table: keyof typeof ROTATIONS) =>
    ({ method: 'POST', path: `/${table}/:name/rotate`, refusals: CHANGE_REFUSALS }) as const;
  api.route(scope, {
    ...rotate('partners'),
    summary: 'Give a partner a new password; the old one is refused at once',
    body: ROTATIONS.partners,
    answer: WITH_PASSWORD,
    run: async ({ by, name, body }) => {
      const rotated = await registry.rotatePartner(by, name, body.password);
      return rotated.ok ? accept({ ...SUCCESS, password: rotated.value }) : rotated;
    },
  });
  api.route(scope, {
    ...rotate('boxes'),
    summary: 'Give a box a new secret, or have it enrol again; its session ends',
    body: ROTATIONS.boxes,
    answer: WITH_SECRET,
    run: async ({ by, name, body }) => {
      const rotated = await registry.rotateBox(by, name, body.enrol ?? false);
      return rotated.ok ? accept({ ...SUCCESS, ...given(rotated.value) }) : rotated;
    },
  });
  api.route(scope, {
    ...rotate('sources'),
    summary: 'Give a source a new key; with kind casso the old one is still taken',
    body: ROTATIONS.sources,
    answer: WITH_KEY,
    run: async ({ by, name, body }) => {
      const rotated = await sourceRows.rotate(by, name, body.key);
      return rotated.ok ? accept({ ...SUCCESS, ...given({ key: rotated.value }) }) : rotated;
    },
  });
}

/** Without what is undefined. */
function given<T extends object>(value: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  return Object.fromEntries(Object.entries(value).filter(([, it]) => it !== undefined)) as never;
}

function doneOf(result: Result<undefined>): Result<typeof SUCCESS> {
  return result.ok ? accept(SUCCESS) : result;
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
