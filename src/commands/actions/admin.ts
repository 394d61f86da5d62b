import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { table as columns, withoutUnseen } from '../../lib/text.ts';
import { parseYaml } from '../../lib/yaml-text.ts';
import { isObject } from '../../protocol/codec.ts';
import { AdminClient, type AdminOptions } from '../shared/admin-client.ts';
import { type AdminTable, RESOURCES, type Row } from '../shared/admin-resources.ts';
import { readGivenText } from '../shared/given-text.ts';
import { remark, say } from '../shared/output.ts';
import { secretFrom } from '../shared/secrets.ts';

const API = '/admin/v1';
const ALL_AT_ONCE = 500;
const FIELDS_BYTES_MAX = 65_536;

interface Options extends AdminOptions {
  json?: boolean;
}

export interface ListOptions extends Options {
  limit: number;
  q?: string;
  after?: string;
  serial?: string;
  account?: string;
  partner?: string;
  all?: boolean;
}

/** Options of `add` and `change`; `callback` is false with `--no-callback`. */
export interface FieldOptions extends Options {
  callbackUrl?: string;
  callback?: boolean;
  passwordFile?: string;
  bank?: string;
  holder?: string;
  contentPrefix?: string;
  partner?: string;
  serial?: string;
  account?: string;
  secretFile?: string;
  file?: string;
}

interface RotateOptions extends Options {
  passwordFile?: string;
  keyFile?: string;
  enrol?: boolean;
}

/** Prints the rows of `paybox admin … list`: a page, or with `all` every one. */
export async function list(table: AdminTable, options: ListOptions): Promise<void> {
  const { limit, q, serial, account, partner, all = false, json = false } = options;
  const gateway = await AdminClient.open(options);
  const size = all ? ALL_AT_ONCE : limit;
  const { name, columns } = RESOURCES[table];
  const key = serial === undefined ? name : 'serialNumber';
  const shown = [...columns, ['STATE', stateOf] as const];
  for (let after = options.after, isFirst = true; ; isFirst = false) {
    const query = queryOf({ limit: size, q, serial, account, partner, after });
    const rows = await gateway.get<Row[]>(`${API}/${table}?${query}`);
    if (json) for (const row of rows) say(JSON.stringify(row));
    else
      printTable(
        shown.map(([head]) => head),
        rows.map((row) => shown.map(([, of]) => of(row))),
        isFirst,
      );
    if (rows.length < size) {
      if (isFirst && rows.length === 0 && !json) say(`no ${table}`);
      return;
    }
    after = String(rows.at(-1)?.[key]);
    if (all) continue;
    if (!json) remark(`there may be more: --after ${after}, or --all`);
    return;
  }
}

export async function show(table: AdminTable, name: string, options: Options): Promise<void> {
  const row = await (await AdminClient.open(options)).get<Row>(pathOf(table, name));
  if (options.json === true) {
    say(JSON.stringify(row));
    return;
  }
  const width = Math.max(...Object.keys(row).map((key) => key.length));
  for (const [key, value] of Object.entries(row)) say(`${key.padEnd(width)}  ${textOf(value)}`);
}

export async function add(table: AdminTable, name: string, options: FieldOptions): Promise<void> {
  const body = { ...fieldsOf(options), [RESOURCES[table].name]: name };
  const made = await (await AdminClient.open(options)).change<Row>('POST', `${API}/${table}`, body);
  told(options, made, `${name} is added`);
  if (options.json !== true && table === 'sources') say(`it is heard at /hooks/${name}`);
}

/** Changes a row. When two people change one row at the same time, the second receives an error. */
export async function change(table: AdminTable, name: string, options: FieldOptions): Promise<void> {
  const gateway = await AdminClient.open(options);
  const body = fieldsOf(options);
  if (Object.keys(body).length === 0) {
    throw new ConfigError(`${name}: expected what to change`, `run: paybox admin ${table} change --help`);
  }
  const { changedAt } = await gateway.get<{ changedAt: string }>(pathOf(table, name));
  const headers = { 'if-match': `"${changedAt}"` };
  told(options, await gateway.change<Row>('PATCH', pathOf(table, name), body, headers), `${name} is changed`);
}

/** Runs `link`, `unlink`, `disable`, `enable` or `remove`. */
export async function act(
  table: AdminTable,
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

export async function rotate(table: AdminTable, name: string, options: RotateOptions): Promise<void> {
  const { passwordFile, keyFile, enrol } = options;
  const body = {
    ...(passwordFile && { password: secretFrom('--password-file', passwordFile) }),
    ...(keyFile && { key: secretFrom('--key-file', keyFile) }),
    ...(enrol && { enrol }),
  };
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
function pathOf(table: AdminTable, name: string): string {
  return `${API}/${table}/${encodeURIComponent(withoutUnseen(name))}`;
}

function queryOf(query: Record<string, unknown>): URLSearchParams {
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) asked.set(key, withoutUnseen(String(value)));
  return asked;
}

/** Returns the body of a call: what the file has, and over it the options. Throws ConfigError. */
function fieldsOf(options: FieldOptions): Row {
  const { callbackUrl, callback, passwordFile, secretFile, file, ...texts } = options;
  const given: Row = {
    ...(callbackUrl !== undefined && { callback: { url: callbackUrl } }),
    ...(callback === false && { callback: null }),
    ...(passwordFile !== undefined && { password: secretFrom('--password-file', passwordFile) }),
    ...(secretFile !== undefined && { secret: secretFrom('--secret-file', secretFile) }),
    bankCode: texts.bank,
    userBankName: texts.holder,
    contentPrefix: texts.contentPrefix,
    partner: texts.partner,
    serialNumber: texts.serial,
    account: texts.account,
  };
  const own = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...(file === undefined ? {} : readFields(file)), ...Object.fromEntries(own) };
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

function stateOf({ managed, disabled }: Row): string {
  return [disabled === true ? 'disabled' : '', managed === 'file' ? 'of the file' : '']
    .filter((it) => it !== '')
    .join(', ');
}

/** Columns as wide as their widest cell. */
function printTable(heads: readonly string[], rows: readonly (readonly unknown[])[], isFirst: boolean): void {
  if (rows.length > 0) say(columns([...(isFirst ? [heads] : []), ...rows.map((cells) => cells.map(textOf))]));
}

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
