import type { Command } from 'commander';

/** Adds `paybox config …`. */
export function addConfig(root: Command): void {
  const config = root.command('config').description('checks, describes and prints configuration files');
  config
    .command('check <file>')
    .description('says whether an agent or gateway configuration is valid, and what is wrong where')
    .action(async (file) => (await import('./actions/config.ts')).check(file));
  config
    .command('schema <agent|box|gateway|scenario>')
    .description('prints the JSON schema, for editors')
    .action(async (kind) => (await import('./actions/config.ts')).schema(kind));
  config
    .command('print <file>')
    .description('prints the effective configuration with defaults filled in and secrets masked')
    .action(async (file) => (await import('./actions/config.ts')).print(file));
  for (const command of config.commands) command.exitOverride();
}
