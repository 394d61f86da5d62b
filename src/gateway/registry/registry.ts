import { CODES } from '../../protocol/codes.ts';
import { newSecret } from '../../protocol/secret.ts';
import type { BoxReach } from '../common/box-reach.ts';
import { accept, type Result } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { withoutQuery } from '../config/callback-config.ts';
import type { BoxRow, RegistryTable } from '../store/schema/tables.ts';
import type { Rotation, Values } from './bodies.ts';
import type { Admin } from './changes.ts';
import { columnsOf } from './columns.ts';
import { type Made, Rows } from './rows.ts';
import { type Reload, SourceRows } from './source-rows.ts';

/** The rows of each table, as admins change them. */
export type Registry = { readonly [Table in RegistryTable]: Rows<Table> };

/** Opens the changes of every table. `reload` opens, closes or replaces a source as its row is now. */
export function openRegistry(world: World, stored: Stored, reach: BoxReach, reload: Reload): Registry {
  return {
    partners: new PartnerRows(world, stored, 'partners'),
    accounts: new AccountRows(world, stored, reach),
    boxes: new BoxRows(world, stored, reach),
    sources: new SourceRows(world, stored, reload),
  };
}

class PartnerRows extends Rows<'partners'> {
  override async add(by: Admin, values: Values): Promise<Result<Made>> {
    const password = values.password ?? newSecret(this.world.random);
    const added = await super.add(by, { ...values, password });
    return added.ok ? accept({ password }) : added;
  }

  override async rotate(by: Admin, name: string, rotation: Rotation): Promise<Result<Made>> {
    const password = rotation.password ?? newSecret(this.world.random);
    const changed = await this.change(by, name, { password }, 'rotated');
    return changed.ok ? accept({ password }) : changed;
  }

  protected override detailOf({ callback }: Values): object {
    return callback === undefined ? {} : { callback: callback && { url: withoutQuery(callback.url) } };
  }
}

class AccountRows extends Rows<'accounts'> {
  readonly #reach: BoxReach;

  constructor(world: World, stored: Stored, reach: BoxReach) {
    super(world, stored, 'accounts');
    this.#reach = reach;
  }

  /** Renews the QRs of its boxes, which have the old name or bank of the account. */
  protected override async changed(name: string, _before: object, { bankCode, userBankName }: Values): Promise<void> {
    if ((bankCode ?? userBankName) === undefined) return;
    for (const { terminal_code } of await this.stored.store.registry.boxesOf(name)) {
      await this.#reach.renew(terminal_code, 'the account of the box was changed');
    }
  }
}

class BoxRows extends Rows<'boxes'> {
  readonly #reach: BoxReach;

  constructor(world: World, stored: Stored, reach: BoxReach) {
    super(world, stored, 'boxes');
    this.#reach = reach;
  }

  override add(by: Admin, values: Values): Promise<Result<Made>> {
    return super.add(by, { dialect: 'paybox', ...values });
  }

  /**
   * Gives a box with a secret of its own another one, and returns it. Any other box, and with `enrol` this one too,
   * must enrol again. The session ends.
   */
  override async rotate(by: Admin, name: string, { enrol = false }: Rotation): Promise<Result<Made>> {
    const { store, vault } = this.stored;
    const fresh = newSecret(this.world.random);
    await vault.prepare(store.registry);
    const columns = columnsOf('boxes', name, { secret: fresh }, (...named) => vault.wrap(...named));
    const changed = await this.changes.change(by, 'boxes', name, (row) => {
      const enrols = row.secret === null || enrol;
      return accept({ what: 'rotated', columns: enrols ? { secret: null } : columns, detail: { enrols } });
    });
    if (!changed.ok) return changed;
    await this.#forgetSecret(name, 'the box has a new secret');
    return accept({ secret: changed.value.secret === null || enrol ? undefined : fresh });
  }

  protected override async changed(name: string, before: BoxRow, { serialNumber, account }: Values): Promise<void> {
    if (serialNumber !== undefined && serialNumber !== before.serial_number) {
      await this.#reach.expel(name, 'the serialNumber of the box was changed');
    } else if (account !== undefined) {
      await this.#reach.renew(name, 'the box was linked anew');
    }
  }

  protected override async disabled(name: string, disabled: boolean): Promise<void> {
    if (disabled) await this.#reach.expel(name, CODES.BOX_DISABLED, true);
  }

  protected override removed(name: string): Promise<void> {
    return this.#forgetSecret(name, 'the box was removed');
  }

  /** Removes the secret of its enrolment, and ends its session. */
  async #forgetSecret(name: string, why: string): Promise<void> {
    await this.stored.secrets.forget(name);
    this.changes.tell();
    await this.#reach.expel(name, why);
  }
}
