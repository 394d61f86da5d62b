import type { Command } from 'commander';
import { STAYING } from './shared/arguments.ts';

/** Adds `paybox gateway`. */
export function addGateway(root: Command): void {
  root
    .command('gateway')
    .description('the mock of the payment QR service alone')
    .requiredOption('--config <file>', 'configuration, see device-config/gateway.yaml')
    .option('--ready-file <file>', 'a file that is written once the gateway answers')
    .option(...STAYING)
    .action(async (options) => (await import('./actions/gateway.ts')).gateway(options));
}
