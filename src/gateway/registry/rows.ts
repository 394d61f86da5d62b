import { accept, type Result } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { LiveRow } from '../config/mode.ts';
import type { RegistryRow } from '../store/repositories/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';
import type { Rotation, Values } from './bodies.ts';
import { type Admin, RegistryChanges } from './changes.ts';
import { columnsOf, plainOf, rowOf, type Wrap } from './columns.ts';
import { RESOURCES } from './resources.ts';

/** A secret that a change has made. Nobody can read it later. */
export type Made = Partial<Record<'password' | 'secret' | 'key', string | undefined>>;

/**
 * Changes of the rows of one table by admins (PROTOCOL.md, clauses REG-4 to REG-6). A refused one changes nothing. A table
 * whose changes do more has a class of its own.
 */
export class Rows<Table extends RegistryTable = RegistryTable> {
  protected readonly world: World;
  protected readonly stored: Stored;
  protected readonly changes: RegistryChanges;
  readonly #table: Table;

  constructor(world: World, stored: Stored, table: Table) {
    this.world = world;
    this.stored = stored;
    this.changes = new RegistryChanges(world, stored);
    this.#table = table;
  }

  /** Adds a row with these values. */
  async add(by: Admin, values: Values): Promise<Result<Made>> {
    const problem = this.changes.modeProblem(this.#table, liveRowOf(values));
    if (problem !== undefined) return problem;
    const row = rowOf(this.#table, values, await this.#wrapping(values));
    const added = await this.changes.add(by, this.#table, { ...row, ...this.changes.fresh() } as RegistryRow<Table>);
    return added.ok ? accept({}) : added;
  }

  /** Changes the values that are given, and writes `what` into the audit list. */
  async change(by: Admin, name: string, values: Values, what = 'changed'): Promise<Result<Made>> {
    const problem = this.changes.modeProblem(this.#table, liveRowOf(values));
    if (problem !== undefined) return problem;
    const columns = columnsOf(this.#table, name, values, await this.#wrapping(values));
    const detail = this.detailOf(values);
    const changed = await this.changes.change(by, this.#table, name, () => accept({ what, columns, detail }));
    if (!changed.ok) return changed;
    await this.changed(name, changed.value, values);
    return accept({});
  }

  /** Links a row to another one; with null it unlinks it. */
  link(by: Admin, name: string, to: string | null): Promise<Result<Made>> {
    const { linkTo = '' } = RESOURCES[this.#table];
    return this.change(by, name, { [linkTo]: to }, to === null ? 'unlinked' : 'linked');
  }

  /** Gives a row a new secret. */
  rotate(_by: Admin, name: string, _rotation: Rotation): Promise<Result<Made>> {
    throw new Error(`${this.#table}/${name}: expected a table whose rows have a secret`);
  }

  /** Disables a row, or enables it again. */
  async disable(by: Admin, name: string, disabled: boolean): Promise<Result<Made>> {
    const change = { what: disabled ? 'disabled' : 'enabled', columns: { disabled: disabled ? 1 : 0 }, detail: {} };
    const changed = await this.changes.change(by, this.#table, name, () => accept(change));
    if (!changed.ok) return changed;
    await this.disabled(name, disabled);
    return accept({});
  }

  /** Removes a row to which nothing is linked. */
  async remove(by: Admin, name: string): Promise<Result<Made>> {
    const removed = await this.changes.remove(by, this.#table, name);
    if (!removed.ok) return removed;
    await this.removed(name);
    return accept({});
  }

  /** Returns what the audit list has of a change: no secret. */
  protected detailOf(values: Values): object {
    return plainOf(this.#table, values);
  }

  /** Called after a change; `before` is the row as it was. */
  protected async changed(_name: string, _before: RegistryRow<Table>, _values: Values): Promise<void> {}

  protected async disabled(_name: string, _disabled: boolean): Promise<void> {}

  protected async removed(_name: string): Promise<void> {}

  /** Returns what wraps the secrets among these values. */
  async #wrapping(values: object): Promise<Wrap> {
    const { vault, store } = this.stored;
    const { fields } = RESOURCES[this.#table];
    const hasSecret = Object.entries(values).some(([field, value]) => value != null && fields[field]?.secret === true);
    if (hasSecret) await vault.prepare(store.registry);
    return (secretName: string, secret: string) => vault.wrap(secretName, secret);
  }
}

/** Returns the values without those that are removed. */
function liveRowOf(values: Values): LiveRow {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
