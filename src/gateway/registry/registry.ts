import { CODES } from '../../protocol/codes.ts';
import { newSecret } from '../../protocol/secret.ts';
import type { BoxReach } from '../common/box-reach.ts';
import { SECRET_OF } from '../common/directory.ts';
import { accept, type Result } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { withoutQuery } from '../config/callback-config.ts';
import type { RegistryTable } from '../store/schema/tables.ts';
import type { Change, NewRow } from './bodies.ts';
import { type Admin, RegistryChanges } from './changes.ts';
import { partnerSecrets } from './seed.ts';

/** A secret that a box just got; undefined for a box that enrols. */
export type BoxSecret = { secret: string | undefined };

/** Changes of partners, accounts and boxes by admins (PROTOCOL.md, clauses REG-4 to REG-6). A refused one changes nothing. */
export class Registry {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #reach: BoxReach;
  readonly #changes: RegistryChanges;

  constructor(world: World, stored: Stored, reach: BoxReach) {
    this.#world = world;
    this.#stored = stored;
    this.#reach = reach;
    this.#changes = new RegistryChanges(world, stored);
  }

  /** Returns the partner's password, which nobody can read later. */
  async addPartner(by: Admin, row: NewRow<'partners'>): Promise<Result<string>> {
    const { random } = this.#world;
    const { store, vault } = this.#stored;
    const { username, callback } = row;
    const password = row.password ?? newSecret(random);
    const problem = this.#changes.modeProblem('partners', { username, password, callback });
    if (problem !== undefined) return problem;
    await vault.prepare(store.registry);
    const secrets = partnerSecrets(vault, username, { password, callback });
    const added = await this.#changes.add(by, 'partners', { username, ...secrets, ...this.#changes.fresh() });
    return added.ok ? accept(password) : added;
  }

  async addAccount(by: Admin, row: NewRow<'accounts'>): Promise<Result<undefined>> {
    const {
      bankAccount,
      bankCode: bank_code,
      userBankName: user_bank_name,
      partner = null,
      contentPrefix = null,
    } = row;
    const problem = this.#changes.modeProblem('accounts', { bankAccount });
    if (problem !== undefined) return problem;
    const columns = { bank_account: bankAccount, bank_code, user_bank_name, partner, content_prefix: contentPrefix };
    return this.#changes.add(by, 'accounts', { ...columns, ...this.#changes.fresh() });
  }

  async addBox(by: Admin, row: NewRow<'boxes'>): Promise<Result<undefined>> {
    const { terminalCode, serialNumber: serial_number, account = null, secret } = row;
    const problem = this.#changes.modeProblem('boxes', row);
    if (problem !== undefined) return problem;
    const columns = {
      terminal_code: terminalCode,
      serial_number,
      account,
      dialect: 'paybox',
      mac_addr: null,
      confirm: null,
    };
    const wrapped = secret === undefined ? null : await this.#wrap(terminalCode, secret);
    return this.#changes.add(by, 'boxes', { ...columns, secret: wrapped, ...this.#changes.fresh() });
  }

  async changePartner(by: Admin, name: string, { callback }: Change<'partners'>): Promise<Result<undefined>> {
    const { vault, store } = this.#stored;
    const problem = this.#changes.modeProblem('partners', { callback: callback ?? undefined });
    if (problem !== undefined) return problem;
    await vault.prepare(store.registry);
    const wrapped = callback && vault.wrap(SECRET_OF.callback(name), JSON.stringify(callback));
    const columns = callback === undefined ? {} : { callback: wrapped };
    const detail = callback === undefined ? {} : { callback: callback && { url: withoutQuery(callback.url) } };
    return done(await this.#changes.change(by, 'partners', name, () => accept({ what: 'changed', columns, detail })));
  }

  async changeAccount(by: Admin, name: string, change: Change<'accounts'>): Promise<Result<undefined>> {
    const { bankCode: bank_code, userBankName: user_bank_name, contentPrefix: content_prefix, partner } = change;
    const columns = given({ bank_code, user_bank_name, content_prefix, partner });
    const changed = await this.#changes.change(by, 'accounts', name, () =>
      accept({ what: 'changed', columns, detail: change }),
    );
    if (changed.ok && (bank_code ?? user_bank_name) !== undefined) await this.#renewBoxesOf(name);
    return done(changed);
  }

  async changeBox(by: Admin, name: string, change: Change<'boxes'>): Promise<Result<undefined>> {
    const { serialNumber: serial_number, account } = change;
    const columns = given({ serial_number, account });
    const changed = await this.#changes.change(by, 'boxes', name, () =>
      accept({ what: 'changed', columns, detail: change }),
    );
    if (!changed.ok) return changed;
    if (serial_number !== undefined && serial_number !== changed.value.serial_number) {
      await this.#reach.expel(name, 'the serialNumber of the box was changed');
    } else if (account !== undefined) {
      await this.#reach.renew(name, 'the box was linked anew');
    }
    return accept(undefined);
  }

  /** Links a box to an account, or an account to a partner; with `to` null it unlinks it. */
  async link(by: Admin, table: 'accounts' | 'boxes', name: string, to: string | null): Promise<Result<undefined>> {
    const columns = table === 'boxes' ? { account: to } : { partner: to };
    const what = to === null ? 'unlinked' : 'linked';
    const changed = await this.#changes.change(by, table, name, () => accept({ what, columns, detail: columns }));
    if (changed.ok && table === 'boxes') await this.#reach.renew(name, 'the box was linked anew');
    return done(changed);
  }

  /** Disables a row, or enables it again. */
  async disable(
    by: Admin,
    table: Exclude<RegistryTable, 'sources'>,
    name: string,
    disabled: boolean,
  ): Promise<Result<undefined>> {
    const what = disabled ? 'disabled' : 'enabled';
    const columns = { disabled: disabled ? 1 : 0 };
    const changed = await this.#changes.change(by, table, name, () => accept({ what, columns, detail: {} }));
    if (changed.ok && table === 'boxes' && disabled) await this.#reach.expel(name, CODES.BOX_DISABLED, true);
    return done(changed);
  }

  /** Replaces the password of a partner, and returns the new one. */
  async rotatePartner(by: Admin, name: string, chosen: string | undefined): Promise<Result<string>> {
    const { store, vault } = this.#stored;
    const { random } = this.#world;
    const password = chosen ?? newSecret(random);
    const problem = this.#changes.modeProblem('partners', { password });
    if (problem !== undefined) return problem;
    await vault.prepare(store.registry);
    const columns = { password: vault.wrap(SECRET_OF.password(name), password) };
    const changed = await this.#changes.change(by, 'partners', name, () =>
      accept({ what: 'rotated', columns, detail: {} }),
    );
    return changed.ok ? accept(password) : changed;
  }

  /**
   * Gives a box with a secret of its own another one, and returns it; any other box, and with `enrol` this one too,
   * has to enrol again. Its session ends.
   */
  async rotateBox(by: Admin, name: string, enrol: boolean): Promise<Result<BoxSecret>> {
    const { random } = this.#world;
    const { secrets } = this.#stored;
    const { expel } = this.#reach;
    const fresh = newSecret(random);
    const wrapped = await this.#wrap(name, fresh);
    const changed = await this.#changes.change(by, 'boxes', name, (row) => {
      const secret = row.secret === null || enrol ? null : wrapped;
      return accept({ what: 'rotated', columns: { secret }, detail: { enrols: secret === null } });
    });
    if (!changed.ok) return changed;
    await secrets.forget(name);
    this.#changes.tell();
    await expel(name, 'the box has a new secret');
    return accept({ secret: changed.value.secret === null || enrol ? undefined : fresh });
  }

  /** Removes a row to which nothing is linked. */
  async remove(by: Admin, table: Exclude<RegistryTable, 'sources'>, name: string): Promise<Result<undefined>> {
    const { secrets } = this.#stored;
    const { expel } = this.#reach;
    const removed = await this.#changes.remove(by, table, name);
    if (removed.ok && table === 'boxes') {
      await secrets.forget(name);
      this.#changes.tell();
      await expel(name, 'the box was removed');
    }
    return removed;
  }

  async #wrap(terminalCode: string, secret: string): Promise<string> {
    await this.#stored.vault.prepare(this.#stored.store.registry);
    return this.#stored.vault.wrap(SECRET_OF.box(terminalCode), secret);
  }

  /** Their QRs have the old name or bank of the account. */
  async #renewBoxesOf(bankAccount: string): Promise<void> {
    for (const { terminal_code } of await this.#stored.store.registry.boxesOf(bankAccount)) {
      await this.#reach.renew(terminal_code, 'the account of the box was changed');
    }
  }
}

function done(changed: Result<unknown>): Result<undefined> {
  return changed.ok ? accept(undefined) : changed;
}

/** The columns with a value. */
function given(columns: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined));
}
