import type { Command } from 'commander';
import { STAYING } from './shared/arguments.ts';

/** Adds `paybox agent`, and `paybox first-boot`, which prepares its configuration. */
export function addAgent(root: Command): void {
  root
    .command('agent')
    .description('the box daemon alone, as on a device')
    .requiredOption('--config <file>', 'configuration, see device-config/laptop.yaml')
    .option('--ready-file <file>', 'a file that is written once the pages answer')
    .option(...STAYING)
    .option(
      '--setup-report <file>',
      'the report of first-boot; the screen then shows a missing or wrong configuration, and the agent waits',
    )
    .action(async (options) => (await import('./actions/agent.ts')).agent(options));
  root
    .command('first-boot')
    .description('makes paybox.yaml on the boot partition the configuration of the agent, at each boot')
    .option('--boot <dir>', 'the boot partition', '/boot/firmware')
    .option('--config <dir>', 'where the configuration is written', '/etc/paybox')
    .option('--state <dir>', "the agent's dataDir", '/var/lib/paybox')
    .option('--report <file>', 'the report for the agent', '/run/paybox-first-boot/report.json')
    .option('--root <dir>', 'the folder that holds etc, usr and var, for Wi-Fi', '/')
    .action(async (options) => (await import('./actions/first-boot.ts')).firstBoot(options));
}
