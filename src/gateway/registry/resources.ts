import type { RegistryTable } from '../store/schema/registry-rows.ts';
import type { Resource } from './resource.ts';

/*
 * The one table of the registry: what its kinds of rows are called, which fields they have, and which of them are secrets.
 * Routes, OpenAPI, rows, `paybox admin` and the forms of the console are made from it. A column has the name of its field in
 * snake_case. The console gets the table as JSON and the command line starts with it, so it holds only plain data and loads
 * nothing.
 */

const PASSWORD = {
  type: 'password',
  secret: true,
  label: 'Password',
  option: '--password-file <file>',
  leftOut: 'the gateway makes one',
} as const;

/** The bodies of sources, by the kind and proof that a form offers. */
const PROOFS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'sepay hmac': { kind: 'sepay', 'auth.kind': 'hmac', key: 'auth.secret' },
  'sepay apikey': { kind: 'sepay', 'auth.kind': 'apikey', key: 'auth.key' },
  'casso signature': { kind: 'casso', 'auth.kind': 'signature', key: 'auth.key' },
  'casso secure-token': { kind: 'casso', 'auth.kind': 'secure-token', key: 'auth.token' },
  payos: { kind: 'payos', key: 'checksumKey' },
  vietqr: { kind: 'vietqr', key: 'password' },
};

/** The table with its literal types, from which `bodies.ts` makes the types of bodies. */
export const TABLE = {
  partners: {
    one: 'a partner',
    about: 'programs of shops, which call the service and get callbacks',
    hint: 'A change replaces the address and the secrets of its callbacks; without an address it gets none.',
    fields: {
      username: { type: 'username', only: 'new', required: true, label: 'User name', head: 'PARTNER' },
      password: { ...PASSWORD, only: 'new' },
      callback: {
        type: 'callback',
        secret: true,
        label: 'Callbacks',
        none: '--no-callback',
        leftOut: 'it gets no callbacks',
        inputs: {
          'callback.url': {
            label: 'Callback address',
            example: 'https://shop.example/sync',
            url: true,
            option: '--callback-url <url>',
          },
          'callback.auth.token': {
            label: 'Bearer token of its callbacks, if it wants one',
            secret: true,
            sets: { 'callback.auth.kind': 'bearer' },
          },
          'callback.signingSecret': {
            label: 'Signing secret, if it checks signatures',
            example: 'whsec_…',
            secret: true,
          },
          'callback.payload': { label: 'Form of callbacks', choices: ['public', 'camel', 'strings'] },
        },
      },
    },
    status: [['CALLBACK', 'callback']],
    makes: 'password',
    rotate: {
      gives: 'a new password',
      effect: 'the old one is refused at once',
      fields: { password: PASSWORD },
      makes: 'password',
    },
    disabled: 'It gets no token. Payments to its accounts are still announced and reported.',
  },
  accounts: {
    one: 'an account',
    about: 'bank accounts that receive the money',
    hint: 'A box shows a new bank or holder at once.',
    fields: {
      bankAccount: { type: 'bankAccount', only: 'new', required: true, label: 'Account number', head: 'ACCOUNT' },
      bankCode: {
        type: 'bankCode',
        required: true,
        label: 'Bank',
        example: 'MB or 970422',
        option: '--bank <code>',
        head: 'BANK',
      },
      userBankName: {
        type: 'userBankName',
        required: true,
        label: 'Holder at the bank',
        example: 'NGUYEN VAN A',
        option: '--holder <name>',
        head: 'HOLDER',
      },
      partner: { type: 'username', label: 'Partner that sells to it', option: '--partner <username>', head: 'PARTNER' },
      contentPrefix: {
        type: 'contentPrefix',
        label: 'Prefix of contents',
        choices: ['none', 'code', 'vietqr'],
        leftOut: 'as the gateway has it',
        option: '--content-prefix <kind>',
      },
    },
    linkTo: 'partner',
    disabled: 'Nothing more is pushed for it.',
  },
  boxes: {
    one: 'a box',
    about: 'payment boxes, each linked to an account',
    hint: 'A newly linked box shows that on its screen. Another serialNumber is another box: it must enrol.',
    fields: {
      terminalCode: {
        type: 'boxCode',
        only: 'new',
        required: true,
        label: 'terminalCode',
        example: 'VVB000001',
        head: 'BOX',
      },
      serialNumber: {
        type: 'boxCode',
        required: true,
        unique: true,
        search: 'serial',
        label: 'serialNumber',
        example: 'VVB900001',
        option: '--serial <code>',
        head: 'SERIAL',
      },
      account: {
        type: 'bankAccount',
        label: 'Account that it is linked to',
        option: '--account <number>',
        head: 'ACCOUNT',
      },
      dialect: { type: 'text', required: true, fileOnly: true, label: 'Dialect' },
      macAddr: { type: 'text', fileOnly: true, label: 'MAC address' },
      confirm: { type: 'text', fileOnly: true, label: 'Confirmation' },
      secret: {
        type: 'strongSecret',
        only: 'new',
        secret: true,
        noForm: true,
        label: 'Secret',
        leftOut: 'the box enrols',
        option: '--secret-file <file>',
      },
    },
    linkTo: 'account',
    status: [['ONLINE', 'online']],
    rotate: {
      gives: 'a new secret',
      effect: 'its session ends and its QR goes, and it enrols again unless it has a secret of its own',
      fields: {
        enrol: { type: 'flag', noForm: true, option: '--enrol', label: 'One with a secret of its own enrols too' },
      },
      makes: 'secret',
      madeIf: 'left out: the box enrols',
    },
    disabled: 'Its session ends and its QR is removed. Its screen says that it is disabled.',
  },
  sources: {
    one: 'a source',
    about: 'providers that report real money, at /hooks/{name}',
    hint: 'A change replaces each key that it names, and null removes one. Rotate changes the secret. Sources of the file change there.',
    fields: {
      name: {
        type: 'text',
        only: 'new',
        required: true,
        label: 'Name, in the address /hooks/{name}',
        example: 'till',
        head: 'SOURCE',
      },
      kind: {
        type: 'text',
        only: 'new',
        required: true,
        label: 'Kind',
        head: 'KIND',
        inputs: {
          proof: { label: 'Kind and proof', choices: Object.keys(PROOFS), bodies: PROOFS },
          key: { label: 'Its key, secret, token or password', required: true, secret: true },
          username: { label: 'User name', required: true, of: ['vietqr'] },
          'api.token': { label: 'Token of its list, for catch-up', secret: true, of: ['sepay', 'casso'] },
          clientId: { label: 'Client id, for catch-up', of: ['payos'] },
          apiKey: { label: 'API key, for catch-up', secret: true, of: ['payos'] },
        },
      },
    },
    status: [
      ['HOOK', 'hook'],
      ['LAST WEBHOOK', 'lastWebhook'],
      ['AGREES UP TO', 'agreedUpTo'],
      ['PROBLEM', 'problem'],
    ],
    rotate: {
      gives: 'a new key',
      effect: 'with kind casso the old one still works until the next change; for others, set it at the provider now',
      fields: {
        key: {
          type: 'sourceKey',
          secret: true,
          label: 'New key',
          option: '--key-file <file>',
          leftOut: 'the gateway makes one, but for casso V2 and payos',
        },
      },
      makes: 'key',
      madeIf: 'if the gateway has made it',
    },
    disabled: 'Its reports are answered 503, so that it repeats them. Its list is not fetched.',
  },
} as const satisfies Record<RegistryTable, Resource>;

/** The kinds of rows of the registry, in the order of their routes and lists. */
export const RESOURCES: Readonly<Record<RegistryTable, Resource>> = TABLE;

/** The names of the tables. */
export const TABLES = Object.keys(TABLE) as RegistryTable[];

/** Returns the field with the name of a row. */
export function nameField(table: RegistryTable): string {
  return Object.keys(RESOURCES[table].fields)[0] ?? '';
}
