import type { Command } from 'commander';

/** Adds `paybox takeover`. */
export function addTakeover(root: Command): void {
  root
    .command('takeover')
    .description('moves the database of a cluster with shards to the tables of this version, once, all or nothing')
    .requiredOption('--config <file>', 'configuration of a gateway of this version, with databaseUrl')
    .option('--check', 'do all of it and check the result, then change nothing')
    .option('--drop', 'delete the old schemas; they are renamed otherwise')
    .addHelpText('after', TAKEOVER_EXAMPLE)
    .action(async (options) => (await import('./actions/takeover.ts')).takeover(options));
}

const TAKEOVER_EXAMPLE = `
With all gateways of the earlier version ended, and a backup made:
  $ paybox takeover --config gateway.yaml --check      says what it would move, and changes nothing
  $ paybox takeover --config gateway.yaml
  $ systemctl start paybox-gateway
The old schemas are then named before_takeover_…; delete them once you do not need them.`;
