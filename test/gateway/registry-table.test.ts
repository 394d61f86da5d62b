import { Command } from 'commander';
import { expect, it } from 'vitest';
import { addAdmin } from '../../src/commands/admin.ts';
import { viewSchema } from '../../src/gateway/doors/registry-views.ts';
import { SOURCE_KINDS } from '../../src/gateway/money/sources/registry.ts';
import { newRowOf } from '../../src/gateway/registry/bodies.ts';
import { columnOf } from '../../src/gateway/registry/columns.ts';
import { formsOf, inputsOf } from '../../src/gateway/registry/inputs.ts';
import { nameField, RESOURCES, TABLES } from '../../src/gateway/registry/resources.ts';
import { NAME_OF } from '../../src/gateway/store/repositories/registry.ts';
import type { RegistryTable } from '../../src/gateway/store/schema/tables.ts';
import { testGateway } from './harness.ts';

type Inputs = ReturnType<typeof inputsOf>;
type Values = Record<string, string>;

const FORMS = new URL('../../src/gateway/console/pages/registry-forms.js', import.meta.url).href;
const { bodyOf } = (await import(FORMS)) as { bodyOf: (inputs: Inputs, values: Values, isChange?: boolean) => object };

/** The flags that a command of `paybox admin` has for the fields of a row. */
function flagsOf(table: RegistryTable, verb: string): string[] {
  const root = new Command();
  addAdmin(root);
  const named = (parent: Command | undefined, name: string) => parent?.commands.find((it) => it.name() === name);
  const options = named(named(named(root, 'admin'), table), verb)?.options ?? [];
  const others = ['--gateway', '--ca', '--admin-token-file', '--config', '--json', '--file'];
  return options.flatMap(({ long }) => (long === undefined || others.includes(long) ? [] : [long]));
}

it('REG-4 the command line, OpenAPI and the form name the same fields of a new row', async () => {
  const { origin } = await testGateway();
  const { paths } = (await (await fetch(`${origin}/admin/openapi.json`)).json()) as {
    paths: Record<string, { post: { requestBody: { content: Record<string, { schema: { properties?: object } }> } } }>;
  };
  const script = await (await fetch(`${origin}/registry-table.js`)).text();
  const served = JSON.parse(script.replace('export const RESOURCES = ', '').replace(/;\n$/, '')) as object;
  expect(served).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(TABLES.map((it) => [it, formsOf(it)])))));
  expect(script).not.toMatch(/https?:\/\/(?!shop\.example)/);
  for (const table of ['partners', 'accounts', 'boxes'] as const) {
    const inputs = inputsOf(table, 'add');
    const fields = [...new Set(inputs.map(({ field }) => field))];
    const body = paths[`/admin/v1/${table}`]?.post.requestBody.content['application/json']?.schema.properties ?? {};
    expect([table, Object.keys(body)]).toEqual([table, fields]);
    const options = inputs.flatMap(({ option, none }) => [option, none?.[0]].filter((it) => it !== undefined));
    expect([table, flagsOf(table, 'add')]).toEqual([table, options.map((it) => it.split(' ')[0])]);
    const withOption = new Set(inputs.filter(({ option }) => option !== undefined).map(({ field }) => field));
    expect([table, fields.filter((it) => !withOption.has(it))]).toEqual([table, [nameField(table)]]);
  }
});

it('REG-4 answers every row as OpenAPI describes it', async () => {
  const callback = { url: 'http://127.0.0.1:9/', auth: { kind: 'none' } } as const;
  const sources = [{ kind: 'payos', name: 'till', checksumKey: 'sample-checksum-key' }];
  const { origin } = await testGateway({ callback, config: { sources } });
  for (const table of TABLES) {
    const rows = (await (await fetch(`${origin}/admin/v1/${table}`)).json()) as unknown[];
    expect(rows.length).toBeGreaterThan(0);
    const problems = rows.map((row) => viewSchema(table).safeParse(row).error?.issues);
    expect([table, problems.filter((it) => it !== undefined)]).toEqual([table, []]);
  }
});

it('REG-4 takes the name of a row from the first field of its kind', () => {
  expect(TABLES.map((table) => columnOf(nameField(table)))).toEqual(TABLES.map((table) => NAME_OF[table]));
});

it('REG-8 every kind and proof of the form of a source makes a body that the gateway takes', () => {
  const inputs = inputsOf('sources', 'add');
  const proofs = inputs.find(({ path }) => path === 'proof')?.choices ?? [];
  expect(new Set(proofs.map((proof) => proof.split(' ')[0]))).toEqual(new Set(SOURCE_KINDS.keys()));
  for (const proof of proofs) {
    const [kind = ''] = proof.split(' ');
    const asked = inputs.filter((it) => it.of?.includes(kind) ?? true);
    const values = Object.fromEntries(asked.map(({ path }) => [path, 'a-text-of-the-form']));
    const read = newRowOf('sources').safeParse(bodyOf(inputs, { ...values, name: 'till', proof }));
    expect([proof, read.error?.issues ?? read.data?.kind]).toEqual([proof, kind]);
    const bare = Object.fromEntries(asked.map(({ path, required }) => [path, required === true ? 'a-text' : '']));
    const least = newRowOf('sources').safeParse(bodyOf(inputs, { ...bare, name: 'till', proof }));
    expect([proof, least.error?.issues ?? least.data?.kind]).toEqual([proof, kind]);
  }
});

it.each<[what: string, table: RegistryTable, call: 'add' | 'change', values: Values, body: object]>([
  [
    'no callback of a new partner',
    'partners',
    'add',
    { username: 'a', 'callback.payload': 'public' },
    { username: 'a' },
  ],
  [
    'no callback any more',
    'partners',
    'change',
    { 'callback.url': '', 'callback.payload': 'camel' },
    { callback: null },
  ],
  [
    'the token of callbacks',
    'partners',
    'change',
    { 'callback.url': 'https://shop.example/', 'callback.auth.token': 'secret', 'callback.payload': 'public' },
    { callback: { url: 'https://shop.example/', auth: { kind: 'bearer', token: 'secret' }, payload: 'public' } },
  ],
  [
    'the prefix of the gateway',
    'accounts',
    'change',
    { bankCode: 'MB', userBankName: 'A', contentPrefix: '' },
    { bankCode: 'MB', userBankName: 'A', contentPrefix: null },
  ],
  [
    'a box without an account',
    'boxes',
    'add',
    { terminalCode: 'T', serialNumber: 'S', account: '' },
    { terminalCode: 'T', serialNumber: 'S' },
  ],
])('REG-4 a form sends %s', (_what, table, call, values, body) => {
  expect(bodyOf(inputsOf(table, call), values, call === 'change')).toEqual(body);
});

it('REG-7 marks every field as a secret that no answer may have', () => {
  const secrets = TABLES.flatMap((table) =>
    Object.entries(RESOURCES[table].fields).flatMap(([name, { secret }]) =>
      secret === true ? [`${table}.${name}`] : [],
    ),
  );
  expect(secrets).toEqual(['partners.password', 'partners.callback', 'boxes.secret']);
});
