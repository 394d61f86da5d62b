import { z } from 'zod';
import { isStorable, withUnseen } from '../../lib/text.ts';
import type { Code } from '../../protocol/codes.ts';
import { bankAccount } from '../../protocol/fields.ts';
import type { Access } from '../access/open-access.ts';
import { listQuery } from '../access/requests.ts';
import { accept, type Result } from '../common/result.ts';
import { CHANGES, LINKS, NEW_ROWS, ROTATIONS } from '../registry/bodies.ts';
import type { Admin } from '../registry/changes.ts';
import type { RegistryTable } from '../store/schema/tables.ts';

const SEARCH_CHARS_MAX = 64;

/** As commands print names: with what nobody sees in JSON notation. */
export const search = z
  .string()
  .max(SEARCH_CHARS_MAX)
  .transform((it) => (isStorable(withUnseen(it)) ? withUnseen(it) : it))
  .optional();
/** `q`: the beginning of a name; `serial`: that of a serialNumber. The next page begins after the last row of this one. */
const pageQuery = listQuery.omit({ before: true }).extend({
  after: search.describe('the last name of the page before; with serial, its last serialNumber'),
  q: search.describe('only names that begin so'),
});
export type Page = z.output<typeof pageQuery> & { serial?: string; account?: string; partner?: string };

/** A secret that a change has made: its answer is the only one that shows it. */
type Made = Partial<Record<'password' | 'secret' | 'key', string | undefined>>;

/** One change of a resource: what it takes and answers, and who does it. */
export interface Act<Body> {
  /** Undefined: the call has no body. */
  body?: z.ZodType<Body>;
  /** Undefined: the answer says only that it is done. */
  answer?: z.ZodType;
  run(access: Access, by: Admin, name: string, body: Body): Promise<Result<Made | undefined>>;
}

/** A change that has no body but one value. */
type With<Value> = (access: Access, by: Admin, name: string, value: Value) => Promise<Result<undefined>>;

/** A kind of rows of the registry, from which its routes and their description are made. */
export interface Resource {
  /** One row, with its article. */
  one: string;
  query: z.ZodType<Page>;
  add: Act<unknown>;
  change: Act<unknown>;
  /** Refusals of a change beside those of every resource. */
  changeRefusals?: readonly Code[];
  rotate?: Act<unknown> & { summary: string };
  /** Links a row to the one that the field `to` names, or unlinks it from it with null. */
  link?: { to: string; one: string; body: z.ZodType<Record<string, string>>; run: With<string | null> };
  disable: With<boolean>;
  remove: With<void>;
}

export const DONE = z.strictObject({ status: z.literal('SUCCESS'), message: z.literal('') });
const ONCE = 'shown once: nobody can read it later';
const WITH_PASSWORD = DONE.extend({ password: z.string().describe(ONCE) });
const WITH_KEY = DONE.extend({ key: z.string().optional().describe(`if the gateway has made it; ${ONCE}`) });
const WITH_SECRET = DONE.extend({ secret: z.string().optional().describe(`left out: the box enrols; ${ONCE}`) });

type Own = Exclude<RegistryTable, 'sources'>;
const common = (table: Own): Pick<Resource, 'disable' | 'remove'> => ({
  disable: ({ registry }, by, name, disabled) => registry.disable(by, table, name, disabled),
  remove: ({ registry }, by, name) => registry.remove(by, table, name),
});
const linkOf =
  (table: 'accounts' | 'boxes'): With<string | null> =>
  ({ registry }, by, name, to) =>
    registry.link(by, table, name, to);

/** The resources of the registry, in the order of their routes. */
export const RESOURCES: Readonly<Record<RegistryTable, Resource>> = {
  partners: {
    ...common('partners'),
    one: 'a partner',
    query: pageQuery,
    add: act(
      NEW_ROWS.partners,
      async ({ registry }, by, _name, body) => made('password', await registry.addPartner(by, body)),
      WITH_PASSWORD,
    ),
    change: act(CHANGES.partners, ({ registry }, by, name, body) => registry.changePartner(by, name, body)),
    rotate: {
      summary: 'Give a partner a new password; the old one is refused at once',
      ...act(
        ROTATIONS.partners,
        async ({ registry }, by, name, body) => made('password', await registry.rotatePartner(by, name, body.password)),
        WITH_PASSWORD,
      ),
    },
  },
  accounts: {
    ...common('accounts'),
    one: 'an account',
    query: pageQuery.extend({ partner: search }) as z.ZodType<Page>,
    add: act(NEW_ROWS.accounts, ({ registry }, by, _name, body) => registry.addAccount(by, body)),
    change: act(CHANGES.accounts, ({ registry }, by, name, body) => registry.changeAccount(by, name, body)),
    link: { to: 'partner', one: 'a partner', body: LINKS.accounts, run: linkOf('accounts') },
  },
  boxes: {
    ...common('boxes'),
    one: 'a box',
    query: pageQuery.extend({
      serial: search.describe('only serialNumbers that begin so'),
      account: bankAccount.optional(),
    }) as z.ZodType<Page>,
    add: act(NEW_ROWS.boxes, ({ registry }, by, _name, body) => registry.addBox(by, body)),
    change: act(CHANGES.boxes, ({ registry }, by, name, body) => registry.changeBox(by, name, body)),
    changeRefusals: ['NAME_TAKEN'],
    rotate: {
      summary: 'Give a box a new secret, or have it enrol again; its session ends',
      ...act(
        ROTATIONS.boxes,
        ({ registry }, by, name, body) => registry.rotateBox(by, name, body.enrol ?? false),
        WITH_SECRET,
      ),
    },
    link: { to: 'account', one: 'an account', body: LINKS.boxes, run: linkOf('boxes') },
  },
  sources: {
    one: 'a source',
    disable: ({ sourceRows }, by, name, disabled) => sourceRows.disable(by, name, disabled),
    remove: ({ sourceRows }, by, name) => sourceRows.remove(by, name),
    query: pageQuery,
    add: act(NEW_ROWS.sources, ({ sourceRows }, by, _name, body) => sourceRows.add(by, body)),
    change: act(CHANGES.sources, ({ sourceRows }, by, name, body) => sourceRows.change(by, name, body)),
    rotate: {
      summary: 'Give a source a new key; with kind casso the old one is still taken',
      ...act(
        ROTATIONS.sources,
        async ({ sourceRows }, by, name, body) => made('key', await sourceRows.rotate(by, name, body.key)),
        WITH_KEY,
      ),
    },
  },
};

function act<Body>(body: z.ZodType<Body>, run: Act<Body>['run'], answer: z.ZodType = DONE): Act<Body> {
  return { body, answer, run };
}

function made(name: keyof Made, result: Result<string | undefined>): Result<Made> {
  return result.ok ? accept({ [name]: result.value }) : result;
}
