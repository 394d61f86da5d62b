import { createDirectory, type Directory, VirtualAccountTable } from '../../src/gateway/common/directory.ts';
import type { GatewayConfig } from '../../src/gateway/config/config.ts';
import { rowsOfFile } from '../../src/gateway/registry/seed.ts';
import { NAME_OF, type RegistryReader, type RegistryRow } from '../../src/gateway/store/repositories/registry.ts';
import type { RegistryTable } from '../../src/gateway/store/schema/tables.ts';
import { NO_VAULT, worldOf } from './stage-records.ts';

/** The directory of a configuration, without a store. */
export function directoryOf(
  config: GatewayConfig,
  enrolled: { get(terminalCode: string, serialNumber: string): Promise<string | undefined> } = new NobodyEnrolled(),
): Directory {
  const rows = rowsOfFile(config, 0);
  const listed = <Table extends RegistryTable>(table: Table) => rows[table] as unknown as RegistryRow<Table>[];
  const columnOf = (row: object, column: string) => (row as Record<string, unknown>)[column];
  const registry: RegistryReader = {
    find: async (table, name) => listed(table).find((row) => columnOf(row, NAME_OF[table]) === name),
    boxBy: async (column, value) => rows.boxes.find((row) => row[column] === value),
    boxesOf: async (bankAccount) => rows.boxes.filter((row) => row.account === bankAccount),
    page: async (table, { limit, where }) => {
      const fits = (row: object) => where === undefined || columnOf(row, where.column) === where.value;
      return listed(table).filter(fits).slice(0, limit);
    },
    linkedBoxes: async (limit) => rows.boxes.filter((row) => row.account !== null).slice(0, limit),
    boxesNamed: async (codes) => rows.boxes.filter((row) => codes.includes(row.terminal_code)),
    boxCount: async () => rows.boxes.length,
    dialectBoxes: async (limit) => rows.boxes.filter((row) => row.dialect === 'vietqr').slice(0, limit),
  };
  const sources = { registry, enrolled, vault: NO_VAULT, virtualAccounts: new VirtualAccountTable() };
  return createDirectory(worldOf({ config }), sources);
}

class NobodyEnrolled {
  async get(): Promise<undefined> {
    return undefined;
  }
}
