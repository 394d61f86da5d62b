import type { Command } from 'commander';
import { withGatewayOrigin } from './shared/arguments.ts';

/** Adds `paybox enrol`. */
export function addEnrol(root: Command): void {
  withGatewayOrigin(root.command('enrol'))
    .description(
      'lists the boxes that ask the gateway for a secret, accepts one by the code on its screen, or forgets one',
    )
    .option('--box <code>', 'terminalCode of the box to accept')
    .option('--code <code>', 'the code on its screen, as 7K2M-Q0XA-94TZ, valid once; - reads it from standard input')
    .option('--reject <code>', 'terminalCode of a box to reject')
    .option('--forget <code>', 'terminalCode of a box whose secret becomes invalid; it must enrol again')
    .option('--json', 'print the list as JSON lines')
    .action(async (options) => (await import('./actions/enrol.ts')).enrol(options));
}
