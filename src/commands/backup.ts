import type { Command } from 'commander';
import { withGatewayOrigin } from './shared/arguments.ts';

/** Adds `paybox backup` and `paybox restore`. */
export function addBackup(root: Command): void {
  withGatewayOrigin(root.command('backup'), 'for databaseUrl, which pg_dump copies, and for its adminToken')
    .argument('<file>', 'the file to make, for you only; it is as secret as the gateway')
    .description('copies the store of a gateway while it works, and checks the copy')
    .option('--replace', 'replace an existing file, once the new one is complete')
    .addHelpText('after', BACKUP_EXAMPLES)
    .action(async (file, options) => (await import('./actions/backup.ts')).backup(file, options));
  root
    .command('restore')
    .argument('<file>', 'a file that paybox backup made')
    .description('checks a backup and puts it in the place of the store of a stopped gateway')
    .option('--config <file>', 'configuration of the gateway')
    .option('--data <dir>', "the gateway's dataDir, in place of --config (of paybox up: its --data and /gateway)")
    .option('--replace', 'rename an existing store, and print its new name; nothing is deleted')
    .action(async (file, options) => (await import('./actions/backup.ts')).restore(file, options));
}

const BACKUP_EXAMPLES = `
A backup each night, and a restore:
  $ paybox backup /backup/paybox-$(date +%F)                        the gateway keeps working meanwhile
  $ systemctl stop paybox-gateway
  $ paybox restore /backup/paybox-2026-01-31 --config gateway.yaml --replace
  $ systemctl start paybox-gateway
Boxes and partners then get the notices and callbacks that were pending at the backup, with the same ids.
Keep registry.key of dataDir, if there is one, beside the backup: only it opens the secrets of the registry.`;
