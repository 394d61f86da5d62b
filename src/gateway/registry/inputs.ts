import type { RegistryTable } from '../store/schema/registry-rows.ts';
import type { Field, Input } from './resource.ts';
import { nameField, RESOURCES } from './resources.ts';

/** One line of a form, or one option of the command line. */
export interface NamedInput extends Input {
  /** Its place in the body, as `callback.url`. */
  path: string;
  /** The field that it is a part of. */
  field: string;
  noForm?: true;
  /** The option that removes the whole field, and its help. */
  none?: readonly [flags: string, about: string];
}

/** The calls that take values of a row. */
export type FormCall = 'add' | 'change' | 'link' | 'rotate';

/** Returns the inputs that a call takes from a person. No change has a link, because linking is a call of its own. */
export function inputsOf(table: RegistryTable, call: FormCall): NamedInput[] {
  const { fields, linkTo, rotate } = RESOURCES[table];
  if (call === 'rotate') return Object.entries(rotate?.fields ?? {}).flatMap(inputsIn);
  const own = Object.entries(fields).filter(([, it]) => it.fileOnly !== true);
  if (call === 'add') return own.flatMap(inputsIn);
  const isLink = call === 'link';
  const taken = own.filter(([name, it]) => (name === linkTo) === isLink && it.only !== 'new');
  return taken.flatMap(inputsIn).map((it) => (isLink ? { ...it, required: true } : it));
}

function inputsIn([field, { inputs, noForm, none, ...own }]: [string, Field]): NamedInput[] {
  const parts: [string, Input][] = inputs === undefined ? [[field, own]] : Object.entries(inputs);
  const more = { ...(noForm && { noForm }), ...(none && { none: [none, own.leftOut ?? ''] as const }) };
  return parts.map(([path, input], i) => ({ ...input, path, field, ...(i === 0 && more) }));
}

/** Returns a kind of rows as the console needs it for its list and forms. */
export function formsOf(table: RegistryTable) {
  const { one, about, hint, linkTo, rotate, disabled } = RESOURCES[table];
  const calls = { add: inputsOf(table, 'add'), change: inputsOf(table, 'change'), link: inputsOf(table, 'link') };
  return {
    ...{ one: one.split(' ')[1], key: nameField(table), about: `${sentence(about)} ${hint}`, hint, linkTo, disabled },
    rotate: rotate && sentence(rotate.effect),
    calls: { ...calls, rotate: inputsOf(table, 'rotate') },
  };
}

function sentence(text: string): string {
  return `${text[0]?.toUpperCase()}${text.slice(1)}.`;
}

/** Puts a value at its path into a body. */
export function put(body: Record<string, unknown>, path: string, value: unknown): void {
  const [first = '', ...rest] = path.split('.');
  const part: Record<string, unknown> = { ...(body[first] as object | undefined) };
  if (rest.length > 0) put(part, rest.join('.'), value);
  body[first] = rest.length === 0 ? value : part;
}
