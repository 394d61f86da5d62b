import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from '../../lib/errors.ts';
import { macDigits } from '../../protocol/dialect.ts';
import { partnerFrom, SECRET_OF } from '../common/directory.ts';
import type { Vault } from '../common/vault.ts';
import type { GatewayConfig } from '../config/config.ts';
import { DEMO, type LiveRow, rowProblems, takesMoney } from '../config/mode.ts';
import { nameOf, type RegistryRow, type RegistryStore } from '../store/repositories/registry.ts';
import type { BoxRow, RegistryTable } from '../store/schema/tables.ts';
import { rowOf, type Wrap } from './columns.ts';
import { optionsOf } from './source-rows.ts';

/** The audit list has this many names of one change of the file. */
const NAMES_LISTED_MAX = 100;

type Listed = Pick<GatewayConfig, 'partners' | 'accounts' | 'boxes' | 'sources'>;

/** Brings the store up to date with the gateway's file at its start. Throws ConfigError. */
export async function seedRegistry(
  registry: RegistryStore,
  config: Listed & Pick<GatewayConfig, 'registry' | 'mode' | 'sandbox'>,
  how: { vault: Vault; atMs: number },
): Promise<void> {
  if (config.registry === 'file') await writeFileRows(registry, config, how.atMs);
  else await adoptFileRows(registry, config, how);
  await writeFileSources(registry, config, how.atMs);
  await assertRows(registry, how.vault, config);
}

/** Returns the rows of the gateway's file without their secrets, which stay there; with `wrap`, as the store's own rows. */
export function rowsOfFile({ partners, accounts, boxes, sources }: Listed, atMs: number, wrap?: Wrap) {
  const partnerOf = new Map(partners.flatMap((it) => it.accounts.map((account) => [account, it.username])));
  const managed = wrap === undefined ? 'file' : 'store';
  const registered = { managed, disabled: 0, changed_at_ms: atMs } as const;
  const withPartner = accounts.map((it) => ({ ...it, partner: partnerOf.get(it.bankAccount) }));
  const withDigits = boxes.map((it) => ({ ...it, macAddr: it.macAddr && macDigits(it.macAddr) }));
  return {
    partners: partners.map((it) => ({ ...rowOf('partners', it, wrap), ...registered })),
    accounts: withPartner.map((it) => ({ ...rowOf('accounts', it, wrap), ...registered })),
    boxes: withDigits.map((it) => ({ ...rowOf('boxes', it, wrap), ...registered })),
    sources: sources.map(({ name, kind }) => ({ name, kind, options: null, ...registered })),
  };
}

/**
 * Makes the rows that the gateway's file manages equal to the file (PROTOCOL.md, clause REG-2). A row of this name that
 * an admin added becomes the file's. Throws ConfigError where a box of the file has the serialNumber or MAC address of
 * another box.
 */
export async function writeFileRows(registry: RegistryStore, listed: Listed, atMs: number): Promise<void> {
  const rows = rowsOfFile(listed, atMs);
  await registry.transaction(async (trx) => {
    await sync(trx, 'partners', rows.partners, atMs);
    await sync(trx, 'accounts', rows.accounts, atMs);
    await sync(trx, 'boxes', rows.boxes, atMs);
  });
}

/**
 * Makes the sources that the file manages equal to the file, also with `registry: store`. Throws ConfigError where the
 * source of a name has another kind now (PROTOCOL.md, clause REG-8).
 */
export async function writeFileSources(registry: RegistryStore, listed: Listed, atMs: number): Promise<void> {
  const { sources } = rowsOfFile(listed, atMs);
  await registry.transaction(async (trx) => {
    for (const { name, kind } of sources) {
      const before = await trx.kindOfSource(name);
      if (before !== undefined && before !== kind) {
        const what = `sources: ${name} was of kind ${before} before: ids of ${kind} could be taken for its credits`;
        throw new ConfigError(what, 'give the source another name');
      }
      if (before === undefined) await trx.keepKindOfSource(name, kind);
    }
    await sync(trx, 'sources', sources, atMs);
  });
}

/**
 * Fills an empty store with the rows of the file, with `registry: store`. In any other store, rows that the file
 * managed become the store's own (PROTOCOL.md, clause REG-3).
 */
export async function adoptFileRows(
  registry: RegistryStore,
  listed: Listed,
  { vault, atMs }: { vault: Vault; atMs: number },
): Promise<void> {
  const isUnused = await registry.isUnused();
  const isListed = TABLES.some((table) => listed[table].length > 0);
  const managed = {
    partners: await namesOfFile(registry, 'partners'),
    accounts: await namesOfFile(registry, 'accounts'),
    boxes: await namesOfFile(registry, 'boxes'),
  };
  const isManaging = TABLES.some((table) => managed[table].size > 0);
  if (!isManaging && !(isUnused && isListed)) return;
  await vault.prepare(registry);
  const own = rowsOfFile(listed, atMs, (name, secret) => vault.wrap(name, secret));
  await registry.transaction(async (trx) => {
    for (const table of TABLES) {
      for (const name of managed[table]) await trx.remove(table, name);
      const taken = own[table].filter((row) => isUnused || managed[table].has(nameOf(table, row)));
      for (const row of taken) {
        if ('serial_number' in row) await assertFree(trx, row);
        await trx.put(table, row);
      }
      const adopted = new Set(taken.map((row) => nameOf(table, row)));
      await note(trx, table, { adopted: [...adopted] }, atMs);
      const removed = [...managed[table]].filter((name) => !adopted.has(name));
      if (table === 'boxes') await takeOutOfTokens(trx, removed, atMs);
    }
  });
}

async function namesOfFile(registry: RegistryStore, table: RegistryTable): Promise<ReadonlySet<string>> {
  return new Set((await registry.managedByFile(table)).map((row) => nameOf(table, row)));
}

const TABLES = ['partners', 'accounts', 'boxes'] as const;

async function note(
  registry: RegistryStore,
  target: RegistryTable,
  changes: Record<string, readonly string[]>,
  atMs: number,
): Promise<void> {
  for (const [what, names] of Object.entries(changes)) {
    if (names.length === 0) continue;
    const detail = JSON.stringify({ count: names.length, names: names.slice(0, NAMES_LISTED_MAX) });
    await registry.note({ at_ms: atMs, who: 'file', address: null, what, target, detail });
  }
}

async function sync<Table extends RegistryTable>(
  registry: RegistryStore,
  table: Table,
  rows: readonly RegistryRow<Table>[],
  atMs: number,
): Promise<void> {
  const named = (row: RegistryRow<Table>) => nameOf(table, row);
  const before = new Map((await registry.managedByFile(table)).map((row) => [named(row), row]));
  const listed = new Set(rows.map(named));
  const removed = [...before.keys()].filter((name) => !listed.has(name));
  const other = rows.filter((row) => {
    const known = before.get(named(row));
    return known === undefined || !isDeepStrictEqual({ ...known, changed_at_ms: atMs }, { ...row });
  });
  const added = other.filter((row) => !before.has(named(row))).map(named);
  const changed = other.filter((row) => before.has(named(row))).map(named);
  // Rows are removed first, because boxes may have swapped a value that only one may have.
  for (const name of [...removed, ...changed]) await registry.remove(table, name);
  for (const row of other) {
    if ('serial_number' in row) await assertFree(registry, row);
    await registry.put(table, row);
  }
  await note(registry, table, { added, changed, removed }, atMs);
  if (table === 'boxes') await takeOutOfTokens(registry, removed, atMs);
}

async function takeOutOfTokens(registry: RegistryStore, removed: readonly string[], at_ms: number): Promise<void> {
  for (const name of removed) await registry.takeOutOfTokens(name, { at_ms, who: 'file', address: null });
}

async function assertFree(registry: RegistryStore, row: BoxRow): Promise<void> {
  for (const column of ['serial_number', 'mac_addr'] as const) {
    const value = row[column];
    const other = value === null ? undefined : await registry.boxBy(column, value);
    if (other === undefined || other.terminal_code === row.terminal_code) continue;
    throw new ConfigError(
      `boxes: ${row.terminal_code} has the ${column === 'serial_number' ? 'serialNumber' : 'macAddr'} ${value} of ` +
        `${other.terminal_code}, which is not in the file`,
      `correct it in the file, or start without this box and run: paybox admin boxes remove ${other.terminal_code}`,
    );
  }
}

type Mode = Pick<GatewayConfig, 'mode' | 'sandbox'>;

/**
 * Refuses the start of a gateway for money whose store has what only a sandbox may have (PROTOCOL.md, clauses MOD-1 and
 * MOD-4). A sandbox may have added it. Throws ConfigError.
 */
export async function assertRows(registry: RegistryStore, vault: Vault, mode: Mode): Promise<void> {
  if (!takesMoney(mode)) return;
  const check = (table: RegistryTable, name: string, row: LiveRow) => assertRow(mode, table, name, row);
  const account = await registry.find('accounts', DEMO.bankAccount);
  if (account !== undefined) check('accounts', account.bank_account, { bankAccount: account.bank_account });
  for await (const row of registry.each('partners')) {
    const partner = partnerFrom(row, undefined, vault);
    // A row of the file is checked with the file.
    if (partner !== undefined) check('partners', row.username, partner);
  }
  for await (const row of registry.each('sources')) {
    const options: LiveRow | undefined = optionsOf(row, vault);
    if (options !== undefined) check('sources', row.name, options);
  }
  for await (const { terminal_code: terminalCode, secret } of registry.each('boxes', { has: 'secret' })) {
    const row = { terminalCode, secret: vault.unwrap(SECRET_OF.box(terminalCode), secret ?? '') };
    check('boxes', terminalCode, row);
  }
}

function assertRow(mode: Mode, table: RegistryTable, name: string, row: LiveRow): void {
  const [first] = rowProblems(mode, table, row);
  if (first === undefined) return;
  const at = [table, name, ...first.path].join('.');
  const fix = `start it once as a sandbox, and change it there, or run: paybox admin ${table} remove ${name}`;
  throw new ConfigError(`the registry in the store: ${at}: ${first.message}`, fix);
}
