import type { FastifyInstance } from 'fastify';
import { withUnseen } from '../../lib/text.ts';
import type { RegistryReader } from '../store/repositories/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';

/**
 * Finds a row by its name as commands and logs print it, with invisible characters in JSON notation (PROTOCOL.md,
 * clause REG-4). Older stores may have such names, which nobody can type. A row that has the name as it is written
 * comes first.
 */
export function findNamesAsPrinted(
  scope: FastifyInstance,
  tables: readonly RegistryTable[],
  registry: Pick<RegistryReader, 'find'>,
): void {
  scope.addHook<{ Params: { name?: string } }>('preHandler', async ({ params, routeOptions }) => {
    const table = tables.find((it) => routeOptions.url?.startsWith(`/admin/v1/${it}/`));
    const { name } = params;
    if (table === undefined || name === undefined) return;
    const read = withUnseen(name);
    if (read !== name && (await registry.find(table, name)) === undefined) params.name = read;
  });
}
