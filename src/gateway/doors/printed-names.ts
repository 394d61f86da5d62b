import type { FastifyInstance } from 'fastify';
import { withUnseen } from '../../lib/text.ts';
import type { RegistryReader } from '../store/repositories/registry.ts';
import type { RegistryTable } from '../store/schema/tables.ts';

/**
 * Rows of before may have a name that nobody can type: where no row has the name in a path, it is read as commands and logs
 * print it, with what nobody sees in JSON notation (PROTOCOL.md, clause REG-4).
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
