import { accept, type Refusal, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { type LiveRow, rowProblems } from '../config/mode.ts';
import { BOXES_OF_ACCOUNT_MAX, nameOf, type RegistryRow, type RegistryStore } from '../store/repositories/registry.ts';
import type { NewAudit, RegistryTable } from '../store/schema/tables.ts';

/** The admin who changes a row. */
export interface Admin {
  /** The name of the admin's token, as the audit list has it. */
  who: string;
  /** The IP address of the caller. */
  address: string;
  /** The `changedAt` of the row that this admin has read. Undefined to change the row whatever it is now. */
  seen?: string | undefined;
}

/** One change of a row. */
export interface RowChange {
  /** Its name in the audit list. */
  what: string;
  /** The columns with their new values. */
  columns: object;
  /** Names of what is changed, and values that are no secrets, for the audit list. */
  detail: object;
}

/** The result of a change, and its line in the audit list. */
interface Changed<T> {
  value: T;
  note: NewAudit;
}

/**
 * Changes rows of the registry, each in one transaction with its line in the audit list. A refused change changes
 * nothing (PROTOCOL.md, clauses REG-4 and REG-9).
 */
export class RegistryChanges {
  readonly #world: World;
  readonly #stored: Stored;

  constructor(world: World, stored: Stored) {
    this.#world = world;
    this.#stored = stored;
  }

  /** Adds a row. `more` may refuse it, in its transaction. */
  async add<Table extends RegistryTable>(
    by: Admin,
    table: Table,
    row: RegistryRow<Table>,
    more?: (registry: RegistryStore) => Promise<Refusal | undefined>,
  ): Promise<Result<undefined>> {
    const name = nameOf(table, row);
    return this.#inTransaction(async (trx) => {
      const problem = (await more?.(trx)) ?? (await linkProblem(trx, row));
      if (problem !== undefined) return problem;
      if (!(await trx.add(table, row))) return (await serialProblem(trx, name, row)) ?? nameTaken(table, name);
      const note = this.#noteOf(by, { what: 'added', target: `${table}/${name}`, detail: {} });
      await trx.note(note);
      return accept({ value: undefined, note });
    });
  }

  /**
   * Changes a row and returns what it was. `changeOf` gets the row, which nobody else changes meanwhile, and may
   * refuse. It is called again if the transaction must be repeated.
   */
  async change<Table extends RegistryTable>(
    by: Admin,
    table: Table,
    name: string,
    changeOf: (row: RegistryRow<Table>) => Result<RowChange>,
  ): Promise<Result<RegistryRow<Table>>> {
    return this.#inTransaction(async (trx) => {
      const row = await trx.find(table, name);
      if (row === undefined) return unknownRow(table, name);
      const problem = problemOf(table, row) ?? staleProblem(row, by.seen);
      const change = problem ?? changeOf(row);
      if (!change.ok) return change;
      const { what, columns, detail } = change.value;
      const taken = (await linkProblem(trx, columns)) ?? (await serialProblem(trx, name, columns));
      if (taken !== undefined) return taken;
      // The time is later than before, so that it distinguishes two changes.
      const changed_at_ms = Math.max(this.#world.clock.wallMs(), row.changed_at_ms + 1);
      await trx.put(table, { ...row, ...columns, changed_at_ms });
      const note = this.#noteOf(by, { what, target: `${table}/${name}`, detail });
      await trx.note(note);
      return accept({ value: row, note });
    });
  }

  /** Removes a row to which nothing is linked. */
  async remove(by: Admin, table: RegistryTable, name: string): Promise<Result<undefined>> {
    return this.#inTransaction(async (trx) => {
      const row = await trx.find(table, name);
      if (row === undefined) return unknownRow(table, name);
      const problem = problemOf(table, row) ?? staleProblem(row, by.seen) ?? (await this.#useOf(trx, table, name));
      if (problem !== undefined) return problem;
      await trx.remove(table, name);
      const note = this.#noteOf(by, { what: 'removed', target: `${table}/${name}`, detail: {} });
      await trx.note(note);
      if (table === 'boxes') await trx.takeOutOfTokens(name, note);
      return accept({ value: undefined, note });
    });
  }

  /** Returns the columns of a new row that the store manages. */
  fresh() {
    return { managed: 'store', disabled: 0, changed_at_ms: this.#world.clock.wallMs() } as const;
  }

  /** Returns why a gateway in this mode must not have the new values (PROTOCOL.md, clauses MOD-1 and MOD-4). */
  modeProblem(table: RegistryTable, row: LiveRow): Refusal | undefined {
    const [first] = rowProblems(this.#world.config, table, row);
    return first && refuse('E46', `${first.path.join('.') || 'username'}: ${first.message}`);
  }

  /**
   * Informs listeners of a change. Must be called after a change that is not of a row, such as of an enrolled secret.
   */
  tell(): void {
    this.#stored.directory.changed();
    this.#world.changes.publish('registry', 'boxes');
  }

  /** Returns why a row cannot be removed. */
  async #useOf(registry: RegistryStore, table: RegistryTable, name: string): Promise<Refusal | undefined> {
    if (table === 'boxes' || table === 'sources') return undefined;
    const [column, linked] =
      table === 'partners' ? (['partner', 'accounts'] as const) : (['account', 'boxes'] as const);
    const [first] = await registry.page(linked, { limit: 1, where: { column, value: name } });
    if (first !== undefined) return refuse('STILL_IN_USE', `${linked} are still linked to it: unlink them first`);
    const isShown = table === 'accounts' && (await registry.isOnBox(name, this.#world.clock.wallMs()));
    return isShown ? refuse('STILL_IN_USE', 'an order of it is on a box: cancel it first') : undefined;
  }

  async #inTransaction<T>(work: (registry: RegistryStore) => Promise<Result<Changed<T>>>): Promise<Result<T>> {
    const done = await this.#stored.store.registry.transaction(work);
    if (!done.ok) return done;
    const { value, note } = done.value;
    const { who, address, what, target } = note;
    this.#world.log.info('registry-changed', { who, address, what, target });
    this.tell();
    return accept(value);
  }

  #noteOf({ who, address }: Admin, { what, target, detail }: { what: string; target: string; detail: object }) {
    return { at_ms: this.#world.clock.wallMs(), who, address, what, target, detail: JSON.stringify(detail) };
  }
}

export function unknownRow(table: RegistryTable, name: string): Refusal {
  return refuse('E96', `expected one of the ${table} in the registry, not ${name}`);
}

function nameTaken(table: RegistryTable, name: string): Refusal {
  return refuse('NAME_TAKEN', `${name}: expected a name that none of the ${table} in the registry has`);
}

function problemOf(table: RegistryTable, row: { managed: string; dialect?: string }): Refusal | undefined {
  if (row.managed === 'file') {
    const elsewhere = table === 'sources' ? '' : ', or set registry: store there';
    const cure = `change it there and restart the gateway${elsewhere}`;
    return refuse('MANAGED_BY_FILE', `expected a row that the gateway's file does not manage: ${cure}`);
  }
  const isForeign = row.dialect !== undefined && row.dialect !== 'paybox';
  return isForeign ? refuse('E46', 'expected a box of dialect paybox: others change in the file') : undefined;
}

function staleProblem({ changed_at_ms }: { changed_at_ms: number }, seen: string | undefined): Refusal | undefined {
  const changedAt = new Date(changed_at_ms).toISOString();
  if (seen === undefined || seen === changedAt) return undefined;
  return refuse('ROW_CHANGED', `somebody changed it at ${changedAt}: read it again, and change it then`);
}

/** Returns why a row cannot be linked as asked. */
async function linkProblem(registry: RegistryStore, row: object): Promise<Refusal | undefined> {
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

async function serialProblem(registry: RegistryStore, name: string, columns: object): Promise<Refusal | undefined> {
  const { serial_number: serial }: { serial_number?: unknown } = columns;
  const other = typeof serial === 'string' ? await registry.boxBy('serial_number', serial) : undefined;
  if (other === undefined || other.terminal_code === name) return undefined;
  return refuse('NAME_TAKEN', `serialNumber: expected one that no other box has, not that of ${other.terminal_code}`);
}
