import { CommanderError } from 'commander';
import { conformanceCommand } from '../../src/commands/bench-conformance.ts';
import { ConfigError } from '../../src/lib/errors.ts';

/** Why `paybox bench conformance` refuses these arguments, read in this process: with such an error a program ends with 2. */
export async function refusalOf(...args: string[]): Promise<string> {
  const error: unknown = await conformanceCommand()
    .configureOutput({ writeErr: () => undefined })
    .parseAsync(args, { from: 'user' })
    .catch((reason: unknown) => reason);
  if (error instanceof ConfigError || error instanceof CommanderError) return String(error);
  throw error ?? new Error('nothing was refused');
}
