import { isStorable } from '../../lib/text.ts';
import { type Bank, findBank } from '../../protocol/banks.ts';
import type { LinkedAccount } from '../../protocol/messages.ts';
import type { VirtualAccounts } from '../../protocol/virtual-accounts.ts';
import { callback } from '../config/callback-config.ts';
import type { AccountConfig, BoxConfig, GatewayConfig, PartnerConfig } from '../config/config.ts';
import { contentPrefix } from '../config/partners-config.ts';
import type { BoxSecretStore } from '../store/repositories/credentials.ts';
import type { RegistryReader } from '../store/repositories/registry.ts';
import type { AccountRow, BoxRow, PartnerRow } from '../store/schema/tables.ts';
import { RowCache } from './row-cache.ts';
import type { Vault } from './vault.ts';
import type { World } from './world.ts';

export type Partner = Omit<PartnerConfig, 'accounts'>;

/** A partner. A disabled one has no access, but still receives its callbacks. */
export interface KnownPartner extends Partner {
  disabled: boolean;
}

/** An account with its bank and its partner, if any. */
export interface Account extends LinkedAccount {
  bank: Bank;
  partner: string | undefined;
  /** The prefix of the contents of its QRs. Undefined means the one of the gateway's file. */
  contentPrefix: AccountConfig['contentPrefix'];
  disabled: boolean;
}

/** A box. The gateway sends nothing to a disabled one. */
export interface KnownBox extends Omit<BoxConfig, 'secret'> {
  disabled: boolean;
}

/** A box with its secret. */
export interface Box extends KnownBox {
  /**
   * The secret from the registry or from enrolment. Without one the box cannot log in, as none of the dialect can. A
   * disabled box logs in and receives the reason.
   */
  secret: string | undefined;
  /** True if its secret comes from enrolment. */
  enrols: boolean;
}

/** A page of the list of boxes, in the order of their codes. */
export interface BoxPage {
  limit: number;
  after?: string | undefined;
}

/** Looks up partners, accounts and boxes of the registry. Each call may read the store, and rejects when that fails. */
export interface Directory {
  partner(username: string): Promise<KnownPartner | undefined>;
  account(bankAccount: string): Promise<Account | undefined>;
  accountsOf(partner: string, limit: number): Promise<Account[]>;
  /** Returns the names of partners, sorted. */
  partners(limit: number): Promise<string[]>;
  box(terminalCode: string): Promise<Box | undefined>;
  /** Returns the box with this terminalCode or serialNumber. If both are given, they must name the same box. */
  boxNamed(terminalCode: string, serialNumber: string): Promise<Box | undefined>;
  /** Returns the boxes that are linked to an account, including disabled ones. */
  boxesOf(bankAccount: string): Promise<KnownBox[]>;
  boxes(page: BoxPage): Promise<Box[]>;
  /** Returns some boxes that are linked to an account. */
  linkedBoxes(limit: number): Promise<KnownBox[]>;
  /** Returns the boxes with these codes from the store. */
  boxesNamed(terminalCodes: readonly string[]): Promise<KnownBox[]>;
  /** Returns boxes of the dialect vietqr. */
  dialectBoxes(limit: number): Promise<KnownBox[]>;
  /** Returns the number of boxes, including disabled ones. */
  boxCount(): Promise<number>;
  /** Returns the account in the welcome of a box, or null without one (PROTOCOL.md, clause MSG-4). */
  accountOf(box: { account?: string | undefined }): Promise<LinkedAccount | null>;
  /**
   * Returns the accounts and partners that decide about money in a transaction, which reads `registry`. Another gateway
   * may have changed a cached row a moment ago.
   */
  within(registry: RegistryReader): MoneyDirectory;
  /** Grows with each change. A caller that caches an answer asks again after one. */
  readonly version: number;
  /** Must be called after each change of the registry or of a box's secret. */
  changed(): void;
  /** Clears the cache, because another gateway has changed the registry. */
  refresh(): void;
}

/** The part of a directory that decides who gets money. */
export type MoneyDirectory = Pick<Directory, 'account' | 'partner'>;

/** The parts that a directory reads. */
export interface DirectorySources {
  registry: RegistryReader;
  /** The secrets that boxes got at enrolment. */
  enrolled: { get: BoxSecretStore['get'] };
  /** Opens the secrets of rows that the file does not manage. */
  vault: Vault;
  virtualAccounts: VirtualAccountTable;
}

/** Returns a directory that caches the rows that were read last. */
export function createDirectory(
  { config, place }: World,
  { registry, enrolled, vault, virtualAccounts }: DirectorySources,
): Directory {
  const isShared = place.sharing !== undefined;
  const cache = new RowCache();
  const partnersOfFile = new Map(config.partners.map((it) => [it.username, it]));
  const partnerOf = (row: PartnerRow) => partnerFrom(row, partnersOfFile.get(row.username), vault);
  const boxesOfFile = new Map(config.boxes.map((it) => [it.terminalCode, it]));
  let version = 0;

  /** No store can hold such a text, so no row has it as a name and the store is not asked. */
  const named = async <T>(what: string, name: string, load: () => Promise<T | undefined>) =>
    isStorable(name) ? cache.get(`${what} ${name}`, load) : undefined;
  const withSecret = async (row: BoxRow): Promise<Box> => {
    const box = boxFrom(row);
    const { terminalCode, serialNumber, dialect } = box;
    const kept = row.secret === null ? undefined : vault.unwrap(SECRET_OF.box(terminalCode), row.secret);
    const own = row.managed === 'file' ? boxesOfFile.get(terminalCode)?.secret : kept;
    const enrols = dialect === 'paybox' && own === undefined;
    const secret = enrols ? await enrolled.get(terminalCode, serialNumber) : own;
    return { ...box, secret, enrols };
  };
  const readFrom = (rows: RegistryReader) => uncached(rows, config, partnerOf);
  const cachedFrom = (rows: RegistryReader): MoneyDirectory => ({
    partner: (username) => named('partner', username, () => readFrom(rows).partner(username)),
    account: (bankAccount) => named('account', bankAccount, () => readFrom(rows).account(bankAccount)),
  });
  const directory: Directory = {
    ...cachedFrom(registry),
    account: async (bankAccount) => {
      const kept = await cachedFrom(registry).account(bankAccount);
      // Another gateway may have added the account since: a credit that finds no account is paid to nobody.
      return kept === undefined && isShared && isStorable(bankAccount) ? readFrom(registry).account(bankAccount) : kept;
    },
    // A gateway alone reads its cache, but never the store outside of the transaction, which would wait for itself.
    within: (rows) => (isShared ? readFrom(rows) : cachedFrom(rows)),
    accountsOf: async (partner, limit) => {
      const rows = await registry.page('accounts', { limit, where: { column: 'partner', value: partner } });
      return rows.flatMap((row) => accountFrom(row, config) ?? []);
    },
    partners: async (limit) => (await registry.page('partners', { limit })).map((row) => row.username),
    box: (terminalCode) =>
      named('box', terminalCode, async () => {
        const row = await registry.find('boxes', terminalCode);
        return row && withSecret(row);
      }),
    boxNamed: async (terminalCode, serialNumber) => {
      const code =
        terminalCode !== ''
          ? terminalCode
          : await named('serial', serialNumber, async () => {
              return (await registry.boxBy('serial_number', serialNumber))?.terminal_code;
            });
      const box = code === undefined ? undefined : await directory.box(code);
      return serialNumber === '' || box?.serialNumber === serialNumber ? box : undefined;
    },
    boxesOf: async (bankAccount) =>
      (await named('boxes of', bankAccount, async () => (await registry.boxesOf(bankAccount)).map(boxFrom))) ?? [],
    boxes: async (page) => Promise.all((await registry.page('boxes', page)).map(withSecret)),
    linkedBoxes: async (limit) => (await registry.linkedBoxes(limit)).map(boxFrom),
    boxesNamed: async (codes) => (await registry.boxesNamed(codes)).map(boxFrom),
    boxCount: () => registry.boxCount(),
    dialectBoxes: async (limit) => (await registry.dialectBoxes(limit)).map(boxFrom),
    accountOf: async (box) => {
      const account = box.account === undefined ? undefined : await directory.account(box.account);
      return account === undefined ? null : linkTo(account, virtualAccounts.of(account.bankAccount));
    },
    get version() {
      return version;
    },
    changed: () => {
      directory.refresh();
      void place.tell({ about: 'registry' });
    },
    refresh: () => {
      version += 1;
      cache.clear();
    },
  };
  return directory;
}

/** Reads accounts and partners without a cache. */
function uncached(
  registry: RegistryReader,
  config: GatewayConfig,
  partnerOf: (row: PartnerRow) => KnownPartner | undefined,
): MoneyDirectory {
  return {
    partner: async (username) => {
      const row = await registry.find('partners', username);
      return row && partnerOf(row);
    },
    account: async (bankAccount) => {
      const row = await registry.find('accounts', bankAccount);
      return row && accountFrom(row, config);
    },
  };
}

/** The names of wrapped secrets. */
export const SECRET_OF = {
  box: (terminalCode: string) => `boxes/${terminalCode}/secret`,
  password: (username: string) => `partners/${username}/password`,
  callback: (username: string) => `partners/${username}/callback`,
  source: (name: string) => `sources/${name}/options`,
  enrolled: (terminalCode: string) => `box_secrets/${terminalCode}`,
};

/** Reads a partner from its row. The secrets of one that the file manages are in the file. */
export function partnerFrom(
  row: PartnerRow,
  listed: PartnerConfig | undefined,
  vault: Vault,
): KnownPartner | undefined {
  const { username } = row;
  const disabled = row.disabled === 1;
  if (row.managed === 'file')
    return listed && { username, password: listed.password, callback: listed.callback, disabled };
  if (row.password === null) return undefined;
  const password = vault.unwrap(SECRET_OF.password(username), row.password);
  const kept = row.callback === null ? undefined : vault.unwrap(SECRET_OF.callback(username), row.callback);
  return { username, password, callback: kept === undefined ? undefined : callback.parse(JSON.parse(kept)), disabled };
}

/** Returns an account as the welcome contains it. */
function linkTo(account: Account, virtualAccounts: readonly VirtualAccounts[]): LinkedAccount {
  const { bankAccount, bankCode, userBankName, walletIds } = account;
  return {
    bankAccount,
    bankCode,
    userBankName,
    ...(virtualAccounts.length > 0 && { virtualAccounts: [...virtualAccounts] }),
    ...(walletIds && { walletIds }),
  };
}

function accountFrom(row: AccountRow, { walletIds: named }: GatewayConfig): Account | undefined {
  const { bank_account: bankAccount, bank_code: bankCode, user_bank_name: userBankName } = row;
  const bank = findBank(bankCode);
  const { partner, content_prefix: prefix } = row;
  const rest = {
    partner: partner ?? undefined,
    contentPrefix: prefix === null ? undefined : contentPrefix.parse(prefix),
    disabled: row.disabled === 1,
  };
  const walletIds = named.get(bankAccount);
  return bank && { bankAccount, bankCode, userBankName, bank, ...(walletIds && { walletIds }), ...rest };
}

function boxFrom(row: BoxRow): KnownBox {
  return {
    terminalCode: row.terminal_code,
    serialNumber: row.serial_number,
    account: row.account ?? undefined,
    dialect: row.dialect === 'vietqr' ? 'vietqr' : 'paybox',
    macAddr: row.mac_addr ?? undefined,
    confirm: row.confirm ?? undefined,
    disabled: row.disabled === 1,
  };
}

/** Holds the virtual accounts that QRs may pay to. The open sources write the table, and a welcome reads it. */
export class VirtualAccountTable {
  #byAccount: ReadonlyMap<string, readonly VirtualAccounts[]> = new Map();

  of(bankAccount: string): readonly VirtualAccounts[] {
    return this.#byAccount.get(bankAccount) ?? [];
  }

  replace(byAccount: ReadonlyMap<string, readonly VirtualAccounts[]>): void {
    this.#byAccount = byAccount;
  }
}
