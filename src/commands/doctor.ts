import type { Command } from 'commander';

/** Adds `paybox doctor`. */
export function addDoctor(root: Command): void {
  root
    .command('doctor')
    .description(
      'checks what a box needs and says what to do: display, storage, clock, ports, gateway; or what a gateway needs: TLS, storage, clock, backup, hooks and sources',
    )
    .option('--config <file>', 'configuration of the agent')
    .option('--gateway <file>', 'configuration of a gateway, in place of an agent')
    .option('--setup-report <file>', 'the report of first-boot', '/run/paybox-first-boot/report.json')
    .option('--json', 'print the findings as JSON')
    .action(async (options) => (await import('./actions/doctor.ts')).doctor(options));
}
