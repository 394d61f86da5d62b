import { ConfigError } from '../../lib/errors.ts';
import { partnerFrom, SECRET_OF } from '../common/directory.ts';
import type { Vault } from '../common/vault.ts';
import type { GatewayConfig } from '../config/config.ts';
import { DEMO, type LiveRow, rowProblems, takesMoney } from '../config/mode.ts';
import { nameOf, type RegistryRow, type RegistryStore } from '../store/repositories/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';
import { optionsOf } from './source-rows.ts';

const ROWS_AT_ONCE = 500;

type Mode = Pick<GatewayConfig, 'mode' | 'sandbox'>;

/**
 * Refuses the start of a gateway for money whose store has what only a sandbox may have, as a sandbox may have added it
 * (PROTOCOL.md, clauses MOD-1 and MOD-4). Throws ConfigError.
 */
export async function assertRows(registry: RegistryStore, vault: Vault, mode: Mode): Promise<void> {
  if (!takesMoney(mode)) return;
  const check = (table: RegistryTable, name: string, row: LiveRow) => assertRow(mode, table, name, row);
  const account = await registry.find('accounts', DEMO.bankAccount);
  if (account !== undefined) check('accounts', account.bank_account, { bankAccount: account.bank_account });
  await eachPage(registry, 'partners', (row) => {
    const partner = partnerFrom(row, undefined, vault);
    // One of the file is checked with the file.
    if (partner !== undefined) check('partners', row.username, partner);
  });
  await eachPage(registry, 'sources', (row) => {
    const options: LiveRow | undefined = optionsOf(row, vault);
    if (options !== undefined) check('sources', row.name, options);
  });
  for (let after = ''; ; ) {
    const rows = await registry.boxesWithSecret(ROWS_AT_ONCE, after);
    for (const { terminal_code: terminalCode, secret } of rows) {
      const row = { terminalCode, secret: vault.unwrap(SECRET_OF.box(terminalCode), secret ?? '') };
      check('boxes', terminalCode, row);
    }
    after = rows.at(-1)?.terminal_code ?? '';
    if (rows.length < ROWS_AT_ONCE) return;
  }
}

async function eachPage<Table extends RegistryTable>(
  registry: RegistryStore,
  table: Table,
  see: (row: RegistryRow<Table>) => void,
): Promise<void> {
  for (let after = ''; ; ) {
    const rows = await registry.page(table, { limit: ROWS_AT_ONCE, after });
    for (const row of rows) see(row);
    after = nameOf(table, rows.at(-1) ?? {});
    if (rows.length < ROWS_AT_ONCE) return;
  }
}

function assertRow(mode: Mode, table: RegistryTable, name: string, row: LiveRow): void {
  const [first] = rowProblems(mode, table, row);
  if (first === undefined) return;
  const at = [table, name, ...first.path].join('.');
  const fix = `start it once as a sandbox, and change it there, or run: paybox admin ${table} remove ${name}`;
  throw new ConfigError(`the registry in the store: ${at}: ${first.message}`, fix);
}
