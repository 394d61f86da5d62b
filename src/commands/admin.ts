import { type Command, Option } from 'commander';
import { ROLE_NAMES } from '../gateway/config/roles.ts';
import { inputsOf } from '../gateway/registry/inputs.ts';
import type { Input } from '../gateway/registry/resource.ts';
import { nameField, RESOURCES, TABLES } from '../gateway/registry/resources.ts';
import type { RegistryTable } from '../gateway/store/schema/registry-rows.ts';
import { several, whole, withGatewayOrigin } from './shared/arguments.ts';

const PAGE_ROWS_MAX = 500;
const FILE = 'YAML or JSON with any fields, - for standard input; `paybox admin --help` has examples';

/** Makes the command `paybox admin`. */
export function addAdmin(root: Command): void {
  const admin = root
    .command('admin')
    .description('partners, accounts, boxes, sources and tokens of a running gateway: lists, adds and changes them')
    .addHelpText('after', EXAMPLES);
  for (const table of TABLES) addGroup(admin, table);
  addTokens(admin);
  withOrigin(admin.command('audit'))
    .description('who changed what, newest first')
    .option('--target <row>', 'only changes of one row, as boxes/VVB000001')
    .option('--limit <n>', 'how many', whole(PAGE_ROWS_MAX), 50)
    .option('--before <seq>', 'only older ones than this seq')
    .action(async (options) => (await import('./actions/admin.ts')).audit(options));
  for (const group of [admin, ...admin.commands]) {
    for (const command of group.commands) command.exitOverride();
  }
}

/** The flags of an option, and its help. */
type Flags = readonly [flags: string, about: string];

function addGroup(admin: Command, table: RegistryTable): void {
  const { one: kind, about, linkTo, rotate } = RESOURCES[table];
  const own = admin.command(table).description(about).addHelpText('after', `\nExamples:${EXAMPLES_OF[table]}`);
  const command = (said: string, what: string, options: readonly Flags[] = []) => {
    const made = withOrigin(own.command(said)).description(what);
    for (const [flags, told] of options) made.option(flags, told);
    return made;
  };
  const one = `<${nameField(table)}>`;
  command('list', `lists ${table} in the order of their names`, [
    ['--q <text>', 'only names that begin so'],
    ...filtersOf(table),
    ['--after <name>', 'the page after this name'],
    ['--all', 'every page'],
  ])
    .option('--limit <n>', 'rows of a page', whole(PAGE_ROWS_MAX), 50)
    .action(async (options) => (await import('./actions/admin.ts')).list(table, options));
  command(`show ${one}`, 'everything about one, but its secrets').action(async (named, options) =>
    (await import('./actions/admin.ts')).show(table, named, options),
  );
  command(`add ${one}`, 'adds one', [...optionsOf(table, 'add'), ['--file <file>', FILE]]).action(
    async (named, options) => (await import('./actions/admin.ts')).add(table, named, options),
  );
  command(`change ${one}`, 'changes the fields of these options', [
    ...optionsOf(table, 'change'),
    ['--file <file>', FILE],
  ]).action(async (named, options) => (await import('./actions/admin.ts')).change(table, named, options));
  if (linkTo !== undefined) {
    command(`link ${one} <${linkTo}>`, `links it to this ${linkTo}`).action(async (named, to, options) =>
      (await import('./actions/admin.ts')).act(table, 'link', named, { ...options, body: { [linkTo]: to } }),
    );
  }
  const verbs = [...(linkTo === undefined ? [] : ['unlink']), 'disable', 'enable', 'remove'] as const;
  for (const verb of verbs) {
    command(`${verb} ${one}`, `${verb}s it`).action(async (named, options) =>
      (await import('./actions/admin.ts')).act(table, verb, named, options),
    );
  }
  if (rotate === undefined) return;
  const given = `gives ${kind} ${rotate.gives}; ${rotate.effect}`;
  command(`rotate ${one}`, given, optionsOf(table, 'rotate')).action(async (named, options) =>
    (await import('./actions/admin.ts')).rotate(table, named, options),
  );
}

/** Returns the options of a call that takes values of a row. */
function optionsOf(table: RegistryTable, call: 'add' | 'change' | 'rotate'): Flags[] {
  return inputsOf(table, call).flatMap((input): Flags[] => {
    const { option, none } = input;
    if (option === undefined) return [];
    return [[option, helpOf(input)], ...(none === undefined ? [] : [none])];
  });
}

function helpOf({ label, example, choices, secret, leftOut }: Input): string {
  const about = `${label[0]?.toLowerCase()}${label.slice(1)}${secret === true ? ', in a file' : ''}`;
  const values = choices === undefined ? example && `, as ${example}` : `: ${choices.join(', ')}`;
  return `${about}${values ?? ''}${leftOut === undefined ? '' : ` (left out: ${leftOut})`}`;
}

/** Returns the options that choose rows of a list. */
function filtersOf(table: RegistryTable): Flags[] {
  const { fields, linkTo } = RESOURCES[table];
  return Object.entries(fields).flatMap(([name, { search, option }]): Flags[] => {
    if (search !== undefined) return [[`--${search} <text>`, `only ${name}s that begin so`]];
    return name === linkTo && option !== undefined ? [[option, `only ${table} of this ${name}`]] : [];
  });
}

function addTokens(admin: Command): void {
  const tokens = admin
    .command('tokens')
    .description('tokens of people who work with the gateway: admins, cashiers, viewers')
    .addHelpText('after', TOKEN_EXAMPLES);
  withOrigin(tokens.command('list'))
    .description('lists the tokens, when each was made and last used')
    .option('--revoked', 'the revoked ones in place of the others')
    .action(async (options) => (await import('./actions/admin-tokens.ts')).listTokens(options));
  withOrigin(tokens.command('add <name>'))
    .description('makes a token, and prints it, once')
    .addOption(
      new Option('--role <role>', 'admin: everything; cashier: sells, cancels, lists; viewer and support: read')
        .choices(ROLE_NAMES)
        .makeOptionMandatory(),
    )
    .option('--box <code>', 'a box at which a cashier may sell, repeatable (default: all)', several)
    .action(async (name, options) => (await import('./actions/admin-tokens.ts')).addToken(name, options));
  withOrigin(tokens.command('revoke <name>'))
    .description('revokes a token: it is refused at once')
    .action(async (name, options) => (await import('./actions/admin-tokens.ts')).revokeToken(name, options));
}

const TOKEN_EXAMPLES = `
Examples:
  $ paybox admin tokens add till-1 --role cashier --box VVB000001   keep what it prints in a file of the till
  $ paybox sell --amount 50000 --admin-token-file till-1.token
  $ paybox admin tokens add books --role viewer
  $ paybox admin tokens revoke till-1                               out at once, also in an open console`;

const EXAMPLES_OF: Readonly<Record<RegistryTable, string>> = {
  partners: `
  $ paybox admin partners add shop --callback-url https://shop.example/sync
  $ paybox admin partners change shop --file shop.yaml    callback: { url: https://shop.example/sync, auth: { kind: bearer, token: … } }
  $ paybox admin partners rotate shop                     the old password is refused at once`,
  accounts: `
  $ paybox admin accounts add 0123456789 --bank MB --holder "NGUYEN VAN A" --partner shop
  $ paybox admin accounts link 0123456789 other-shop`,
  boxes: `
  $ paybox admin boxes add VVB000002 --serial VVB900002 --account 0123456789
  $ paybox admin boxes list --q VVB0000 --limit 10
  $ paybox admin boxes link VVB000002 0987654321          it says so on its screen at once
  $ paybox admin boxes disable VVB000002                  its QR goes, and it has no session`,
  sources: `
  $ cat sepay.yaml
  kind: sepay
  auth: { kind: hmac, secret: … }
  api: { token: … }                                       for catch-up
  $ paybox admin sources add till --file sepay.yaml       heard at once at /hooks/till
  $ paybox admin sources rotate till --key-file new.key   casso: the key of before is still taken`,
};

function withOrigin(command: Command): Command {
  return withGatewayOrigin(command).option('--json', 'print JSON lines');
}

const EXAMPLES = `
Partners, accounts, boxes and sources have list, show, add, change, disable, enable and remove. --help of each lists its
options:
  $ paybox admin partners add shop                        prints its new password, once
  $ paybox admin accounts add 0123456789 --bank MB --holder "NGUYEN VAN A" --partner shop
  $ paybox admin boxes add VVB000002 --serial VVB900002 --account 0123456789
  $ paybox enrol                                          lists the boxes that ask for a secret, to accept one by its code
  $ paybox admin sources add till --file sepay.yaml
  $ paybox admin audit --target boxes/VVB000002

  $ paybox admin tokens add till-1 --role cashier         prints its token, once

Every call needs a token, except at a sandbox without adminToken on this machine: --admin-token-file, PAYBOX_ADMIN_TOKEN, or --config with
the gateway's file. A live gateway without adminToken makes its first token in admin-token of its dataDir.
Rows that the gateway's file manages change there; with registry: store in it, all but sources change here.`;
