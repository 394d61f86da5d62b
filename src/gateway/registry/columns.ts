import type { RegistryRow } from '../store/repositories/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';
import { nameField, RESOURCES } from './resources.ts';

/** Wraps a secret under its name, as `boxes/VVB000001/secret`. */
export type Wrap = (name: string, secret: string) => string;

/** Returns the column of a field. */
export function columnOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns the name of the row that has these values. */
export function rowName(table: RegistryTable, values: object): string {
  return String((values as Record<string, unknown>)[nameField(table)]);
}

/**
 * Returns the columns of these values, without those of fields that are left out. Without `wrap` secrets are null,
 * because the gateway's file keeps them.
 */
export function columnsOf(table: RegistryTable, name: string, values: object, wrap?: Wrap): Record<string, unknown> {
  const given = values as Readonly<Record<string, unknown>>;
  const columns: Record<string, unknown> = {};
  for (const [field, { secret }] of Object.entries(RESOURCES[table].fields)) {
    const value = given[field];
    if (value === undefined) continue;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    columns[columnOf(field)] =
      secret !== true || value === null ? value : (wrap?.(`${table}/${name}/${field}`, text) ?? null);
  }
  return columns;
}

/** Returns every column of a row with these values, null for one that is left out. */
export function rowOf<Table extends RegistryTable>(
  table: Table,
  values: object,
  wrap?: Wrap,
): Omit<RegistryRow<Table>, 'managed' | 'disabled' | 'changed_at_ms'> {
  const empty = Object.keys(RESOURCES[table].fields).map((field) => [columnOf(field), null]);
  const columns = { ...Object.fromEntries(empty), ...columnsOf(table, rowName(table, values), values, wrap) };
  // A column has the name of its field, which `registry-rows.ts` has too.
  return columns as unknown as RegistryRow<Table>;
}

/** Returns the values that are not secret. */
export function plainOf(table: RegistryTable, values: object): object {
  const { fields } = RESOURCES[table];
  return Object.fromEntries(Object.entries(values).filter(([field]) => fields[field]?.secret !== true));
}

/** Returns the values of a row that are not secret. */
export function valuesOf(table: RegistryTable, row: object): Record<string, unknown> {
  const columns = row as Readonly<Record<string, unknown>>;
  const fields = Object.entries(RESOURCES[table].fields).filter(([, { secret }]) => secret !== true);
  return Object.fromEntries(fields.map(([field]) => [field, columns[columnOf(field)]]));
}
