import { inputsOf, type NamedInput, put } from '../../gateway/registry/inputs.ts';
import { nameField, RESOURCES } from '../../gateway/registry/resources.ts';
import type { RegistryTable } from '../../gateway/store/schema/registry-rows.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { table as columns, withoutUnseen } from '../../lib/text.ts';
import { parseYaml } from '../../lib/yaml-text.ts';
import { isObject } from '../../protocol/codec.ts';
import { AdminClient, type AdminOptions } from '../shared/admin-client.ts';
import { readGivenText } from '../shared/given-text.ts';
import { remark, say } from '../shared/output.ts';
import { secretFrom } from '../shared/secrets.ts';

const API = '/admin/v1';
const ALL_AT_ONCE = 500;
const FIELDS_BYTES_MAX = 65_536;

/** A row in an answer of the gateway. */
type Row = Record<string, unknown>;

interface Options extends AdminOptions {
  json?: boolean;
}

/** Options that the table of the registry makes, by their names. */
type FieldOptions = Options & Readonly<Record<string, unknown>>;

type ListOptions = FieldOptions & { limit: number; after?: string; all?: boolean };

/** Prints the rows of `paybox admin … list`: a page, or with `all` every one. */
export async function list(table: RegistryTable, options: ListOptions): Promise<void> {
  const { limit, q, all = false, json = false } = options;
  const gateway = await AdminClient.open(options);
  const size = all ? ALL_AT_ONCE : limit;
  const { fields, linkTo = '', status = [] } = RESOURCES[table];
  const [searched, { search = '' } = {}] =
    Object.entries(fields).find(([, { search }]) => search !== undefined && options[search] !== undefined) ?? [];
  const given = (key: string) => key !== '' && { [key]: options[key] };
  const chosen = { limit: size, q, ...given(search), ...given(linkTo) };
  const columns = Object.entries(fields).flatMap(([name, { head }]) =>
    head === undefined ? [] : [[head, name] as const],
  );
  const shown = [...columns, ...status, ['STATE', 'state'] as const];
  for (let after = options.after, isFirst = true; ; isFirst = false) {
    const query = queryOf({ ...chosen, after });
    const rows = await gateway.get<Row[]>(`${API}/${table}?${query}`);
    if (json) for (const row of rows) say(JSON.stringify(row));
    else
      printTable(
        shown.map(([head]) => head),
        rows.map((row) => shown.map(([, name]) => cellOf(row, name))),
        isFirst,
      );
    if (rows.length < size) {
      if (isFirst && rows.length === 0 && !json) say(`no ${table}`);
      return;
    }
    after = String(rows.at(-1)?.[searched ?? nameField(table)]);
    if (all) continue;
    if (!json) remark(`there may be more: --after ${after}, or --all`);
    return;
  }
}

export async function show(table: RegistryTable, name: string, options: Options): Promise<void> {
  const row = await (await AdminClient.open(options)).get<Row>(pathOf(table, name));
  if (options.json === true) {
    say(JSON.stringify(row));
    return;
  }
  const width = Math.max(...Object.keys(row).map((key) => key.length));
  for (const [key, value] of Object.entries(row)) say(`${key.padEnd(width)}  ${textOf(value)}`);
}

export async function add(table: RegistryTable, name: string, options: FieldOptions): Promise<void> {
  const body = { ...fieldsOf(inputsOf(table, 'add'), options), [nameField(table)]: name };
  const made = await (await AdminClient.open(options)).change<Row>('POST', `${API}/${table}`, body);
  told(options, made, `${name} is added`);
  if (options.json !== true && table === 'sources') say(`it is heard at /hooks/${name}`);
}

/** Changes a row. When two people change one row at the same time, the second receives an error. */
export async function change(table: RegistryTable, name: string, options: FieldOptions): Promise<void> {
  const gateway = await AdminClient.open(options);
  const body = fieldsOf(inputsOf(table, 'change'), options);
  if (Object.keys(body).length === 0) {
    throw new ConfigError(`${name}: expected what to change`, `run: paybox admin ${table} change --help`);
  }
  const { changedAt } = await gateway.get<{ changedAt: string }>(pathOf(table, name));
  const headers = { 'if-match': `"${changedAt}"` };
  told(options, await gateway.change<Row>('PATCH', pathOf(table, name), body, headers), `${name} is changed`);
}

/** Runs `link`, `unlink`, `disable`, `enable` or `remove`. */
export async function act(
  table: RegistryTable,
  verb: string,
  name: string,
  options: Options & { body?: object },
): Promise<void> {
  const gateway = await AdminClient.open(options);
  const done =
    verb === 'remove'
      ? await gateway.change<Row>('DELETE', pathOf(table, name))
      : await gateway.change<Row>('POST', `${pathOf(table, name)}/${verb}`, options.body ?? {});
  told(options, done, `${name} is ${PAST[verb] ?? `${verb}d`}`);
}

const PAST: Partial<Record<string, string>> = { link: 'linked', unlink: 'unlinked' };

export async function rotate(table: RegistryTable, name: string, options: FieldOptions): Promise<void> {
  const body = fieldsOf(inputsOf(table, 'rotate'), options);
  const done = await (await AdminClient.open(options)).change<Row>('POST', `${pathOf(table, name)}/rotate`, body);
  const enrols = table === 'boxes' && done.secret === undefined;
  told(options, done, enrols ? `${name} must enrol again: paybox enrol` : `${name} has a new secret`);
}

export async function audit(options: Options & { limit: number; target?: string; before?: string }): Promise<void> {
  const { limit, target, before, json = false } = options;
  const rows = await (await AdminClient.open(options)).get<Row[]>(`${API}/audit?${queryOf({ limit, target, before })}`);
  if (json) for (const row of rows) say(JSON.stringify(row));
  else if (rows.length === 0) say('no changes');
  else {
    const cells = rows.map((it) => [it.at, it.who, it.address, it.what, it.target, it.detail]);
    printTable(['AT', 'WHO', 'FROM', 'WHAT', 'ROW', 'DETAIL'], cells, true);
    const last = rows.at(-1)?.seq;
    if (rows.length === limit) remark(`there may be more: --before ${textOf(last)}`);
  }
}

/** Returns the path of a row. A name that nobody can type is sent in the spelling of the printed list. */
function pathOf(table: RegistryTable, name: string): string {
  return `${API}/${table}/${encodeURIComponent(withoutUnseen(name))}`;
}

function queryOf(query: Record<string, unknown>): URLSearchParams {
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) asked.set(key, withoutUnseen(String(value)));
  return asked;
}

/** Returns the body of a call: what the file has, and over it the options. Throws ConfigError. */
function fieldsOf(inputs: readonly NamedInput[], { file, ...options }: FieldOptions): Row {
  const given: Row = {};
  for (const { option = '', path, field, none, secret } of inputs) {
    const flag = option.split(' ')[0] ?? '';
    const value = options[optionName(flag)];
    if (typeof value === 'string') put(given, path, secret === true ? secretFrom(flag, value) : value);
    else if (value === true) put(given, path, true);
    if (none !== undefined && options[field] === false) given[field] = null;
  }
  return { ...(typeof file === 'string' && readFields(file)), ...given };
}

/** Returns the name under which commander has the value of a flag. */
function optionName(flag: string): string {
  return flag.slice(2).replaceAll(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
}

function readFields(file: string): Row {
  let text: string;
  try {
    text = readGivenText(file, FIELDS_BYTES_MAX);
  } catch (error) {
    throw new ConfigError(`--file ${file} cannot be read: ${reasonOf(error)}`, 'name a file with YAML or JSON');
  }
  const { value } = parseYaml(text, file);
  if (isObject(value)) return value;
  throw new ConfigError(`--file ${file}: expected fields, as kind: sepay`);
}

/** Reports the change, and prints a new secret this one time. */
function told({ json = false }: Options, answer: Row, line: string): void {
  say(json ? JSON.stringify(answer) : line);
  if (json) return;
  for (const name of ['password', 'secret', 'key']) {
    if (answer[name] !== undefined)
      say(`${name}: ${textOf(answer[name])}\n  shown once: keep it now, nobody can read it later`);
  }
}

/** Returns a cell of a list. Most are a value of the row as it is. */
function cellOf(row: Row, name: string): unknown {
  const { callback, online, hasSecret, disabled, list, managed } = row;
  if (name === 'callback') return isObject(callback) ? callback.url : undefined;
  if (name === 'online') return online === true ? 'yes' : hasSecret === true || disabled === true ? 'no' : 'must enrol';
  if (name === 'agreedUpTo' && list !== true) return 'no list';
  if (name !== 'state') return row[name];
  return [...(disabled === true ? ['disabled'] : []), ...(managed === 'file' ? ['of the file'] : [])].join(', ');
}

/** Columns as wide as their widest cell. */
function printTable(heads: readonly string[], rows: readonly (readonly unknown[])[], isFirst: boolean): void {
  if (rows.length > 0) say(columns([...(isFirst ? [heads] : []), ...rows.map((cells) => cells.map(textOf))]));
}

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
