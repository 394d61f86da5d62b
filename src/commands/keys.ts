import type { Command } from 'commander';
import { withGatewayOrigin } from './shared/arguments.ts';

/** Adds `paybox keys`. */
export function addKeys(root: Command): void {
  withGatewayOrigin(root.command('keys'))
    .description('shows the key that the gateway signs with, or makes a new one; boxes switch without interruption')
    .option('--rotate', 'make a new key: every box learns it with its next message, then refuses the old one')
    .option('--json', 'print it as JSON')
    .action(async (options) => (await import('./actions/keys.ts')).keys(options));
}
