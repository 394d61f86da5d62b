import type { Command } from 'commander';

/** `paybox agent`, and `paybox first-boot`, which prepares its configuration. */
export function addAgent(root: Command): void {
  root
    .command('agent')
    .description('the box daemon alone, as on a device')
    .requiredOption('--config <file>', 'configuration, see device-config/laptop.yaml')
    .option('--ready-file <file>', 'written once its own pages answer')
    .option(
      '--setup-report <file>',
      'what first-boot has written; a configuration that is missing or wrong is then told on the screen, and waited for',
    )
    .action(async (options) => (await import('./actions/agent.ts')).agent(options));
  root
    .command('first-boot')
    .description('takes paybox.yaml on the boot partition over as the configuration of the agent, at each boot')
    .option('--boot <dir>', 'the boot partition', '/boot/firmware')
    .option('--config <dir>', 'where the configuration is written', '/etc/paybox')
    .option('--state <dir>', "the agent's dataDir", '/var/lib/paybox')
    .option('--report <file>', 'what the agent shows of it', '/run/paybox-first-boot/report.json')
    .option('--root <dir>', 'the folder that holds etc, usr and var, for Wi-Fi', '/')
    .action(async (options) => (await import('./actions/first-boot.ts')).firstBoot(options));
}
