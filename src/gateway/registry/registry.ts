import { z } from 'zod';
import { bankAccount, boxCode } from '../../protocol/fields.ts';
import type { BoxSecretStore } from '../../store/repositories/credentials.ts';
import {
  BOXES_OF_ACCOUNT_MAX,
  NAME_OF,
  type RegistryRow,
  type RegistryStore,
} from '../../store/repositories/registry.ts';
import type { RegistryTable } from '../../store/schema/tables.ts';
import { password, username } from '../boxes-config.ts';
import { callback } from '../callback-config.ts';
import type { Context } from '../context.ts';
import { account } from '../partners-config.ts';
import { accept, type Result, refuse } from '../result.ts';
import type { Vault } from '../vault.ts';
import { partnerSecrets } from './seed.ts';

const PASSWORD_BYTES = 24;

/** Bodies of new rows. A box enrols; it has no secret of its own. */
export const NEW_ROWS = {
  partners: z.strictObject({ username, password: password.optional(), callback: callback.optional() }),
  accounts: account.extend({ partner: username.optional() }),
  boxes: z.strictObject({ terminalCode: boxCode, serialNumber: boxCode, account: bankAccount.optional() }),
};

type NewRow<Table extends RegistryTable> = z.output<(typeof NEW_ROWS)[Table]>;

export interface RegistryDeps extends Pick<Context, 'directory' | 'clock' | 'random' | 'changes' | 'log'> {
  registry: RegistryStore;
  secrets: Pick<BoxSecretStore, 'forget'>;
  vault: Vault;
  /** Has a box say hello again. */
  renew(terminalCode: string, reason: string): Promise<void>;
  /** Ends the session of a box, which takes its QR away. */
  expel(terminalCode: string, reason: string): Promise<void>;
}

/** Changes of partners, accounts and boxes by admins (PROTOCOL.md, clauses REG-4 to REG-6). A refused one changes nothing. */
export class Registry {
  readonly #deps: RegistryDeps;

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
  }

  /** Returns the partner's password, which nobody can read later. */
  async addPartner(who: string, row: NewRow<'partners'>): Promise<Result<string>> {
    const { random, registry, vault } = this.#deps;
    const secret = row.password ?? random.secret(PASSWORD_BYTES);
    await vault.prepare(registry);
    const secrets = partnerSecrets(vault, row.username, { password: secret, callback: row.callback });
    const added = await this.#add(who, 'partners', { username: row.username, ...secrets, ...this.#fresh() });
    return added.ok ? accept(secret) : added;
  }

  addAccount(who: string, row: NewRow<'accounts'>): Promise<Result<undefined>> {
    const { bankAccount: bank_account, bankCode: bank_code, userBankName: user_bank_name, partner = null } = row;
    return this.#add(who, 'accounts', { bank_account, bank_code, user_bank_name, partner, ...this.#fresh() });
  }

  addBox(who: string, row: NewRow<'boxes'>): Promise<Result<undefined>> {
    const names = { terminal_code: row.terminalCode, serial_number: row.serialNumber, account: row.account ?? null };
    const kind = { dialect: 'paybox', mac_addr: null, confirm: null, secret: null };
    return this.#add(who, 'boxes', { ...names, ...kind, ...this.#fresh() });
  }

  /** Links a box to an account, or an account to a partner; with `to` null it unlinks it. */
  async link(who: string, table: 'accounts' | 'boxes', name: string, to: string | null): Promise<Result<undefined>> {
    const change = table === 'boxes' ? { account: to } : { partner: to };
    const changed = await this.#change(who, table, name, to === null ? 'unlinked' : 'linked', change);
    if (changed.ok && table === 'boxes') await this.#deps.renew(name, 'the box was linked anew');
    return changed;
  }

  /** Disables a row, or enables it again. */
  async disable(who: string, table: RegistryTable, name: string, disabled: boolean): Promise<Result<undefined>> {
    const what = disabled ? 'disabled' : 'enabled';
    const changed = await this.#change(who, table, name, what, { disabled: disabled ? 1 : 0 });
    if (changed.ok && table === 'boxes' && disabled) await this.#deps.expel(name, 'the box was disabled');
    return changed;
  }

  /** Replaces the password of a partner, and returns the new one. */
  async rotate(who: string, name: string): Promise<Result<string>> {
    const { directory, registry, random, vault } = this.#deps;
    const partner = await directory.partner(name);
    if (partner === undefined) return unknown('partners');
    const secret = random.secret(PASSWORD_BYTES);
    await vault.prepare(registry);
    const secrets = partnerSecrets(vault, name, { ...partner, password: secret });
    const changed = await this.#change(who, 'partners', name, 'rotated', secrets);
    return changed.ok ? accept(secret) : changed;
  }

  /** Removes a row to which nothing is linked. */
  async remove(who: string, table: RegistryTable, name: string): Promise<Result<undefined>> {
    const { registry, clock, secrets, expel } = this.#deps;
    const removed = await registry.transaction(async (trx): Promise<Result<undefined>> => {
      const row = await trx.find(table, name);
      const problem = problemOf(table, row) ?? (await useOf(trx, table, name, clock.wallMs()));
      if (problem !== undefined) return problem;
      await trx.remove(table, name);
      await trx.note(this.#noteOf(who, 'removed', `${table}/${name}`, {}));
      return accept(undefined);
    });
    this.#tell();
    if (removed.ok && table === 'boxes') {
      await secrets.forget(name);
      this.#tell();
      await expel(name, 'the box was removed');
    }
    return removed;
  }

  async #add<Table extends RegistryTable>(
    who: string,
    table: Table,
    row: RegistryRow<Table>,
  ): Promise<Result<undefined>> {
    const name = String(Object.entries(row).find(([key]) => key === NAME_OF[table])?.[1]);
    const added = await this.#deps.registry.transaction(async (trx): Promise<Result<undefined>> => {
      const isTaken = (await trx.find(table, name)) !== undefined;
      const serial = 'serial_number' in row ? await trx.boxBy('serial_number', row.serial_number) : undefined;
      if (isTaken || serial !== undefined)
        return refuse('NAME_TAKEN', `${name}: expected a name that no other row has`);
      const problem = await linkProblem(trx, row);
      if (problem !== undefined) return problem;
      await trx.put(table, row);
      await trx.note(this.#noteOf(who, 'added', `${table}/${name}`, {}));
      return accept(undefined);
    });
    this.#tell();
    return added;
  }

  async #change<Table extends RegistryTable>(
    who: string,
    table: Table,
    name: string,
    what: string,
    change: object,
  ): Promise<Result<undefined>> {
    const changed = await this.#deps.registry.transaction(async (trx): Promise<Result<undefined>> => {
      const row = await trx.find(table, name);
      const problem = problemOf(table, row) ?? (await linkProblem(trx, change));
      if (problem !== undefined || row === undefined) return problem ?? unknown(table);
      await trx.put(table, { ...row, ...change, changed_at_ms: this.#deps.clock.wallMs() });
      await trx.note(this.#noteOf(who, what, `${table}/${name}`, what === 'rotated' ? {} : change));
      return accept(undefined);
    });
    this.#tell();
    return changed;
  }

  #fresh() {
    return { managed: 'store', disabled: 0, changed_at_ms: this.#deps.clock.wallMs() } as const;
  }

  #noteOf(who: string, what: string, target: string, detail: object) {
    this.#deps.log.info('registry-changed', { who, what, target });
    return { at_ms: this.#deps.clock.wallMs(), who, what, target, detail: JSON.stringify(detail) };
  }

  #tell(): void {
    this.#deps.directory.changed();
    this.#deps.changes.publish('boxes');
  }
}

function unknown(table: RegistryTable) {
  return refuse('E96', `expected one of the ${table} in the registry`);
}

function problemOf(table: RegistryTable, row: { managed: string; dialect?: string } | undefined) {
  if (row === undefined) return unknown(table);
  if (row.managed === 'file')
    return refuse('MANAGED_BY_FILE', "expected a row that the gateway's file does not manage");
  const isForeign = row.dialect !== undefined && row.dialect !== 'paybox';
  return isForeign ? refuse('E46', 'expected a box of dialect paybox: others change in the file') : undefined;
}

/** Why a row cannot be linked as asked. */
async function linkProblem(registry: RegistryStore, row: object) {
  const { account: toAccount, partner: toPartner }: { account?: unknown; partner?: unknown } = row;
  if (typeof toPartner === 'string' && (await registry.find('partners', toPartner)) === undefined) {
    return refuse('E46', `partner: expected one in the registry, not ${toPartner}`);
  }
  if (typeof toAccount !== 'string') return undefined;
  if ((await registry.find('accounts', toAccount)) === undefined) {
    return refuse('E46', `account: expected one in the registry, not ${toAccount}`);
  }
  const isFull = (await registry.boxesOf(toAccount)).length >= BOXES_OF_ACCOUNT_MAX;
  return isFull ? refuse('E46', `account: expected one of fewer than ${BOXES_OF_ACCOUNT_MAX} boxes`) : undefined;
}

/** Why a row cannot be removed. */
async function useOf(registry: RegistryStore, table: RegistryTable, name: string, atMs: number) {
  const [column, linked] = table === 'partners' ? (['partner', 'accounts'] as const) : (['account', 'boxes'] as const);
  if (table === 'boxes') return undefined;
  const [first] = await registry.page(linked, { limit: 1, where: { column, value: name } });
  if (first !== undefined) return refuse('STILL_IN_USE', `${linked} are still linked to it: unlink them first`);
  const isShown = table === 'accounts' && (await registry.isOnBox(name, atMs));
  return isShown ? refuse('STILL_IN_USE', 'an order of it is on a box: cancel it first') : undefined;
}
