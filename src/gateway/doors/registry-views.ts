import { z } from 'zod';
import { withoutQuery } from '../config/callback-config.ts';
import { mayDo, type Role } from '../config/roles.ts';
import { shownOptions } from '../money/sources/registry.ts';
import { valuesOf } from '../registry/columns.ts';
import { RESOURCES } from '../registry/resources.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { RegistryRow } from '../store/repositories/registry.ts';
import type { AuditRow, RegistryTable } from '../store/schema/tables.ts';
import { sourceView } from './views.ts';

const time = z.string().describe('ISO 8601, UTC');
const registered = {
  managed: z.enum(['file', 'store']).describe("file: the row is the gateway's file's, and changes there only"),
  disabled: z.boolean(),
  changedAt: time.describe('names this state of the row: send it as If-Match, and a change of another one is refused'),
};

/** Values of a row that answers have beside its fields. */
const MORE = {
  partners: {
    callback: z
      .strictObject({
        url: z.string(),
        auth: z.string(),
        signed: z.boolean(),
        payload: z.string(),
        success: z.union([z.literal('any2xx'), z.literal(200)]),
        decimals: z.boolean(),
      })
      .nullable(),
  },
  accounts: {},
  boxes: {
    hasSecret: z.boolean().describe('false: it has to enrol'),
    enrols: z.boolean(),
    online: z.boolean(),
  },
  sources: {
    hook: z.string().describe('the path to which it reports'),
    options: z.record(z.string(), z.unknown()).describe('a secret is shown as true'),
    list: z.boolean(),
    lastWebhook: time.nullable(),
    lastCatchUp: time.nullable(),
    agreedUpTo: time.nullable(),
    found: z.int(),
    problem: z.string().nullable(),
  },
};

/** Returns the schema of answers about rows of a table. None has a secret. */
export function viewSchema(table: RegistryTable) {
  const fields = Object.entries(RESOURCES[table].fields).filter(([, { secret }]) => secret !== true);
  const shape = fields.map(([name, { required }]) => [name, required === true ? z.string() : z.string().nullable()]);
  return z.strictObject({ ...Object.fromEntries(shape), ...MORE[table], ...registered });
}

export const AUDIT_VIEW = z.strictObject({
  seq: z.int(),
  at: time,
  who: z.string().describe('the name of the token; config, admin-token, loopback, or file'),
  address: z.string().nullable().describe('from where; null for a change by the file'),
  what: z.string(),
  target: z.string(),
  detail: z.unknown(),
});

type View = z.output<ReturnType<typeof viewSchema>>;

/**
 * Returns a function that makes answers of rows. Callers who are not admins see addresses without their query, which
 * may be a key.
 */
export function createRegistryViews({ stored, boxes: { hub }, money: { sources } }: OpenGateway): {
  [Of in RegistryTable]: (row: RegistryRow<Of>, role: Role) => Promise<View>;
} {
  const { directory } = stored;
  return {
    partners: async (row, role) => {
      const callback = (await directory.partner(row.username))?.callback;
      const shown = callback && {
        url: mayDo(role, 'administer') ? callback.url : withoutQuery(callback.url),
        auth: callback.auth.kind,
        signed: callback.signingSecret !== undefined,
        payload: callback.payload,
        success: callback.success,
        decimals: callback.decimals,
      };
      return { ...valuesOf('partners', row), callback: shown ?? null, ...registeredOf(row) };
    },
    accounts: async (row) => ({ ...valuesOf('accounts', row), ...registeredOf(row) }),
    boxes: async (row) => {
      const box = await directory.box(row.terminal_code);
      const known = { hasSecret: box?.secret !== undefined, enrols: box?.enrols ?? false };
      const online = await hub.online(row.terminal_code);
      return { ...valuesOf('boxes', row), ...known, online, ...registeredOf(row) };
    },
    sources: async (row) => {
      const { name, kind } = row;
      const { kind: _kind, name: _name, ...options } = sources.optionsOf(row) ?? { kind, name };
      const status = (await sources.catchUp.status()).find((it) => it.name === name);
      const asked = sourceView(status ?? { ...NOT_OPEN, name, kind });
      return { hook: `/hooks/${name}`, options: shownOptions(options), ...asked, ...registeredOf(row) };
    },
  };
}

/** The state of a disabled source. */
const NOT_OPEN = { hasList: false, toldAtMs: null, agreedUpToMs: null, agreedAtMs: null, found: 0, problem: null };

function registeredOf(row: { managed: 'file' | 'store'; disabled: number; changed_at_ms: number }) {
  return { managed: row.managed, disabled: row.disabled === 1, changedAt: new Date(row.changed_at_ms).toISOString() };
}

export function auditView({ at_ms, detail, ...it }: AuditRow): z.output<typeof AUDIT_VIEW> {
  return { ...it, at: new Date(at_ms).toISOString(), detail: JSON.parse(detail) as unknown };
}
