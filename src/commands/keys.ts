import type { Command } from 'commander';
import { withGatewayOrigin } from './shared/arguments.ts';

/** `paybox keys`. */
export function addKeys(root: Command): void {
  withGatewayOrigin(root.command('keys'))
    .description('tells the key that the gateway signs with, or makes a new one; boxes follow without a break')
    .option('--rotate', 'make a new key: every box hears of it with its next message, and refuses the old one')
    .option('--json', 'print it as JSON')
    .action(async (options) => (await import('./actions/keys.ts')).keys(options));
}
