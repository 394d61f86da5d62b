import { z } from 'zod';
import { bankAccount, boxCode } from '../../protocol/fields.ts';
import { strongSecret } from '../../protocol/secret.ts';
import { password, username } from '../config/boxes-config.ts';
import { callback } from '../config/callback-config.ts';
import { account, contentPrefix } from '../config/partners-config.ts';
import { sourceSecret } from '../money/sources/fields.ts';
import { sourceOptions } from '../money/sources/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';
import type { Field, FieldType } from './resource.ts';
import { RESOURCES, type TABLE } from './resources.ts';

/** The schemas that the fields of the table name. */
const TYPES = {
  bankAccount,
  bankCode: account.shape.bankCode,
  boxCode,
  callback,
  contentPrefix,
  flag: z.boolean(),
  password,
  sourceKey: sourceSecret,
  strongSecret,
  text: z.string(),
  userBankName: account.shape.userBankName,
  username,
} satisfies Record<FieldType, z.ZodType>;

/** Returns the schema of a value of this field. */
export function typeOf({ type }: Field): z.ZodType {
  return TYPES[type];
}

type Fields = (typeof TABLE)[RegistryTable]['fields'];
type Name = Fields extends infer Each ? (Each extends unknown ? keyof Each : never) : never;
type FieldOf<Of extends Name> = Fields extends infer Each
  ? Each extends Record<Of, infer Found>
    ? Found
    : never
  : never;
type ValueOf<Of> = Of extends { type: infer Type extends keyof typeof TYPES } ? z.output<(typeof TYPES)[Type]> : never;

/** Values of the fields of a row. In a change, a field that is left out stays as it is, and null removes a value. */
export type Values = { [Of in Name]?: ValueOf<FieldOf<Of>> | null | undefined };

/** The body of a call of `rotate`. */
export interface Rotation {
  password?: string | undefined;
  enrol?: boolean | undefined;
  key?: string | undefined;
}

/** Returns the body of a new row. */
export function newRowOf(table: RegistryTable): z.ZodType<Values> {
  if (table === 'sources') return sourceOptions.describe("as an entry of sources in the gateway's file");
  const fields = Object.entries(RESOURCES[table].fields).filter(([, it]) => it.fileOnly !== true);
  return objectOf(fields, (it) => (it.required === true ? typeOf(it) : leftOut(it)));
}

/** Returns the body of a change. */
export function changeOf(table: RegistryTable): z.ZodType<Values> {
  if (table === 'sources') {
    const change = z.record(z.string(), z.unknown());
    return change.describe('keys of its kind but kind and name, each replaced as a whole; null takes one away');
  }
  const { fields } = RESOURCES[table];
  const changed = Object.entries(fields).filter(([, it]) => it.only !== 'new' && it.fileOnly !== true);
  return objectOf(changed, (it) => (it.required === true ? typeOf(it) : typeOf(it).nullable()).optional());
}

/** Returns the body that names the row to which a row is linked. */
export function linkOf(table: RegistryTable, to: string): z.ZodType<Values> {
  const named = Object.entries(RESOURCES[table].fields).filter(([name]) => name === to);
  return objectOf(named, typeOf);
}

/** Returns the body of a call that gives a row a new secret. */
export function rotationOf(fields: Readonly<Record<string, Field>>): z.ZodType<Rotation> {
  return objectOf(Object.entries(fields), leftOut);
}

function objectOf<T>(fields: [string, Field][], schemaOf: (field: Field) => z.ZodType): z.ZodType<T> {
  const shape = Object.fromEntries(fields.map(([name, it]) => [name, schemaOf(it)]));
  // The type that is made of the table's literals has the same names.
  return z.strictObject(shape) as unknown as z.ZodType<T>;
}

function leftOut(field: Field): z.ZodType {
  const about = field.leftOut === undefined ? field.label : `left out: ${field.leftOut}`;
  return typeOf(field).optional().describe(about);
}
