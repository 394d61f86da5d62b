export type AdminTable = 'partners' | 'accounts' | 'boxes' | 'sources';

/** A row in an answer of the gateway. */
export type Row = Record<string, unknown>;

/** A kind of rows of the registry, as `paybox admin` offers and prints it. */
export interface AdminResource {
  about: string;
  /** The field with the name of a row. */
  name: string;
  /** The columns of a list. */
  columns: readonly (readonly [head: string, of: (row: Row) => unknown])[];
  filters: readonly (readonly [flags: string, about: string])[];
  fields: readonly (readonly [flags: string, about: string])[];
  /** Only for new rows. */
  added: readonly (readonly [flags: string, about: string])[];
  rotate?: readonly [about: string, option: string, optionAbout: string];
  linkTo?: 'partner' | 'account';
  examples: string;
}

export const RESOURCES: Record<AdminTable, AdminResource> = {
  partners: {
    about: 'programs of shops, which call the service and get callbacks',
    name: 'username',
    columns: [
      ['PARTNER', (it) => it.username],
      ['CALLBACK', (it) => (it.callback as { url?: unknown } | null)?.url],
    ],
    filters: [],
    fields: [
      ['--callback-url <url>', 'where it gets its callbacks; authorization and signature in --file'],
      ['--no-callback', 'it gets no callbacks'],
    ],
    added: [['--password-file <file>', 'a file with its password (default: a new one, shown once)']],
    rotate: ['gives a partner a new password, shown once', '--password-file <file>', 'a file with the new password'],
    examples: `
  $ paybox admin partners add shop --callback-url https://shop.example/sync
  $ paybox admin partners change shop --file shop.yaml    callback: { url: https://shop.example/sync, auth: { kind: bearer, token: … } }
  $ paybox admin partners rotate shop                     the old password is refused at once`,
  },
  accounts: {
    about: 'bank accounts, which get the money',
    name: 'bankAccount',
    columns: [
      ['ACCOUNT', (it) => it.bankAccount],
      ['BANK', (it) => it.bankCode],
      ['HOLDER', (it) => it.userBankName],
      ['PARTNER', (it) => it.partner],
    ],
    filters: [['--partner <username>', 'only accounts of this partner']],
    fields: [
      ['--bank <code>', 'its bank, as MB or 970422'],
      ['--holder <name>', 'its holder, as the bank has it'],
      ['--content-prefix <kind>', "code, vietqr or none, in place of the gateway's contentPrefix"],
    ],
    added: [['--partner <username>', 'the partner that sells to it']],
    linkTo: 'partner',
    examples: `
  $ paybox admin accounts add 0123456789 --bank MB --holder "NGUYEN VAN A" --partner shop
  $ paybox admin accounts link 0123456789 other-shop`,
  },
  boxes: {
    about: 'payment boxes, each linked to an account',
    name: 'terminalCode',
    columns: [
      ['BOX', (it) => it.terminalCode],
      ['SERIAL', (it) => it.serialNumber],
      ['ACCOUNT', (it) => it.account],
      [
        'ONLINE',
        (it) => (it.online === true ? 'yes' : it.hasSecret === true || it.disabled === true ? 'no' : 'must enrol'),
      ],
    ],
    filters: [
      ['--serial <text>', 'only serial numbers that begin so'],
      ['--account <number>', 'only boxes of this account'],
    ],
    fields: [['--serial <code>', 'its serialNumber']],
    added: [
      ['--account <number>', 'the account that it is linked to'],
      ['--secret-file <file>', 'a file with its secret (default: it enrols)'],
    ],
    rotate: ['gives a box a new secret, or has it enrol again', '--enrol', 'a box with a secret of its own enrols too'],
    linkTo: 'account',
    examples: `
  $ paybox admin boxes add VVB000002 --serial VVB900002 --account 0123456789
  $ paybox admin boxes list --q VVB0000 --limit 10
  $ paybox admin boxes link VVB000002 0987654321          it says so on its screen at once
  $ paybox admin boxes disable VVB000002                  its QR goes, and it has no session`,
  },
  sources: {
    about: 'who tells of real money, at /hooks/{name}',
    name: 'name',
    columns: [
      ['SOURCE', (it) => it.name],
      ['KIND', (it) => it.kind],
      ['HOOK', (it) => it.hook],
      ['LAST WEBHOOK', (it) => it.lastWebhook],
      ['AGREES UP TO', (it) => (it.list === true ? it.agreedUpTo : 'no list')],
      ['PROBLEM', (it) => it.problem],
    ],
    filters: [],
    fields: [],
    added: [],
    rotate: ['gives a source a new key', '--key-file <file>', 'a file with the key that the provider made'],
    examples: `
  $ cat sepay.yaml
  kind: sepay
  auth: { kind: hmac, secret: … }
  api: { token: … }                                       for catch-up
  $ paybox admin sources add till --file sepay.yaml       heard at once at /hooks/till
  $ paybox admin sources rotate till --key-file new.key   casso: the key of before is still taken`,
  },
};
