import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { issuesOf } from '../../protocol/codec.ts';
import { bankAccount } from '../../protocol/fields.ts';
import { NAME_OF, type PageQuery } from '../../store/repositories/registry.ts';
import type { RegistryTable } from '../../store/schema/tables.ts';
import { listQuery, logRefusal, readBody } from '../access/requests.ts';
import { username } from '../boxes-config.ts';
import type { Context } from '../context.ts';
import { NEW_ROWS, type Registry } from '../registry/registry.ts';
import { accept, type Refusal, type Result, refuse } from '../result.ts';

const CHANGE_BYTES_MAX = 16_384;
const SEARCH_CHARS_MAX = 64;
const TABLES = ['partners', 'accounts', 'boxes'] as const;
const STATUS_OF: Partial<Record<Refusal['code'], number>> = {
  E96: 404,
  MANAGED_BY_FILE: 409,
  NAME_TAKEN: 409,
  STILL_IN_USE: 409,
};

/** `q`: the beginning of a name; `serial`: that of a serialNumber. The next page begins after the last row of this one. */
const pageQuery = listQuery.omit({ before: true }).extend({
  after: z.string().max(SEARCH_CHARS_MAX).optional(),
  q: z.string().max(SEARCH_CHARS_MAX).optional(),
  serial: z.string().max(SEARCH_CHARS_MAX).optional(),
  account: bankAccount.optional(),
  partner: username.optional(),
});
const auditQuery = listQuery.extend({
  before: z.coerce.number().int().optional(),
  target: z.string().max(SEARCH_CHARS_MAX).optional(),
});
const linkTo = {
  accounts: z.strictObject({ partner: username }).transform((it) => it.partner),
  boxes: z.strictObject({ account: bankAccount }).transform((it) => it.account),
};

export interface RegistryRoutesDeps extends Pick<Context, 'store' | 'log' | 'config'> {
  registry: Registry;
}

type OfRow = { Params: { name: string } };

/** The registry for admins, below `/admin/v1` (PROTOCOL.md, clauses REG-4 and REG-5). */
export function registryRoutes(scope: FastifyInstance, deps: RegistryRoutesDeps): void {
  const { store, registry, log, config } = deps;
  const who = () => (config.adminToken === undefined ? 'loopback' : 'adminToken');
  /** The answer contains the reason, because only admins get it. */
  const answer = (request: FastifyRequest, reply: FastifyReply, result: Result<object>, status = 200) => {
    if (result.ok) return reply.code(status).send(result.value);
    const { code, reason } = result;
    logRefusal(request, log, result, STATUS_OF[code] ?? 400);
    return reply.code(STATUS_OF[code] ?? 400).send({ status: 'FAILED', message: code, reason });
  };
  const done = (result: Result<string | undefined>, name: 'password' | undefined): Result<object> => {
    if (!result.ok) return result;
    return accept({ status: 'SUCCESS', message: '', ...(name && { [name]: result.value }) });
  };
  const bodyOf = <T>(request: FastifyRequest, schema: z.ZodType<T>): Result<T> => {
    const json = readBody(request, log);
    if (!json.ok) return json;
    const parsed = schema.safeParse(json.value);
    return parsed.success ? accept(parsed.data) : refuse('E46', issuesOf(parsed.error));
  };
  const limit = { bodyLimit: CHANGE_BYTES_MAX };

  for (const table of TABLES) {
    const one = `/${table}/:name`;
    scope.get(`/${table}`, async (request, reply) => {
      const query = pageQuery.safeParse(request.query);
      if (!query.success) return answer(request, reply, refuse('E46', issuesOf(query.error)));
      const rows = await store.registry.page(table, pageOf(table, query.data));
      return rows.map((row) => viewOf(row));
    });
    scope.get<OfRow>(one, async (request, reply) => {
      const row = await store.registry.find(table, request.params.name);
      return answer(request, reply, row === undefined ? refuse('E96', 'no such row') : accept(viewOf(row)));
    });
    scope.delete<OfRow>(one, async (request, reply) =>
      answer(request, reply, done(await registry.remove(who(), table, request.params.name), undefined)),
    );
    for (const [path, disabled] of [
      ['disable', true],
      ['enable', false],
    ] as const) {
      scope.post<OfRow>(`${one}/${path}`, limit, async (request, reply) =>
        answer(request, reply, done(await registry.disable(who(), table, request.params.name, disabled), undefined)),
      );
    }
  }
  scope.post('/partners', limit, async (request, reply) => {
    const body = bodyOf(request, NEW_ROWS.partners);
    return answer(request, reply, body.ok ? done(await registry.addPartner(who(), body.value), 'password') : body, 201);
  });
  scope.post('/accounts', limit, async (request, reply) => {
    const body = bodyOf(request, NEW_ROWS.accounts);
    return answer(request, reply, body.ok ? done(await registry.addAccount(who(), body.value), undefined) : body, 201);
  });
  scope.post('/boxes', limit, async (request, reply) => {
    const body = bodyOf(request, NEW_ROWS.boxes);
    return answer(request, reply, body.ok ? done(await registry.addBox(who(), body.value), undefined) : body, 201);
  });
  for (const table of ['accounts', 'boxes'] as const) {
    scope.post<OfRow>(`/${table}/:name/link`, limit, async (request, reply) => {
      const to = bodyOf<string>(request, linkTo[table]);
      const linked = to.ok ? await registry.link(who(), table, request.params.name, to.value) : to;
      return answer(request, reply, done(linked, undefined));
    });
    scope.post<OfRow>(`/${table}/:name/unlink`, limit, async (request, reply) =>
      answer(request, reply, done(await registry.link(who(), table, request.params.name, null), undefined)),
    );
  }
  scope.post<OfRow>('/partners/:name/rotate', limit, async (request, reply) =>
    answer(request, reply, done(await registry.rotate(who(), request.params.name), 'password')),
  );
  scope.get('/audit', async (request, reply) => {
    const query = auditQuery.safeParse(request.query);
    if (!query.success) return answer(request, reply, refuse('E46', issuesOf(query.error)));
    const { limit: rows, before, target } = query.data;
    return (await store.registry.changes(rows, { before, target })).map(({ at_ms, detail, ...it }) => ({
      ...it,
      at: new Date(at_ms).toISOString(),
      detail: JSON.parse(detail) as unknown,
    }));
  });
}

function pageOf(
  table: RegistryTable,
  { limit, after, q, serial, account, partner }: z.output<typeof pageQuery>,
): PageQuery {
  const ofSerial = table === 'boxes' && serial !== undefined;
  const begins = ofSerial
    ? ({ column: 'serial_number', text: serial } as const)
    : q === undefined
      ? undefined
      : { column: NAME_OF[table], text: q };
  const where =
    table === 'boxes' && account !== undefined
      ? ({ column: 'account', value: account } as const)
      : table === 'accounts' && partner !== undefined
        ? ({ column: 'partner', value: partner } as const)
        : undefined;
  return { limit, after, begins, where };
}

/** A row without its secrets. */
function viewOf(row: { changed_at_ms: number; disabled: number; managed: string }): object {
  const { changed_at_ms, disabled, ...rest }: Record<string, unknown> & typeof row = { ...row };
  const names = Object.entries(rest).filter(([key]) => !['password', 'callback', 'secret'].includes(key));
  const camel = names.map(([key, value]) => [
    key.replaceAll(/_(\w)/g, (_all, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return { ...Object.fromEntries(camel), disabled: disabled === 1, changedAt: new Date(changed_at_ms).toISOString() };
}
