import type { Command } from 'commander';
import { dong, withGatewayOrigin } from './shared/arguments.ts';

/** Adds `paybox sell`. */
export function addSell(root: Command): void {
  withGatewayOrigin(root.command('sell'))
    .description(
      'sells without a back end, as a cashier does: shows the QR of an amount on the box and waits for the money',
    )
    .option('--amount <dong>', 'amount in whole đồng', dong)
    .option('--box <code>', 'terminalCode of the box (default: the only one with an account that is connected)')
    .option(
      '--note <text>',
      'a few words behind the code in the content, at most 15 letters, digits and spaces; accents are dropped',
    )
    .option(
      '--no-wait',
      'end once the box shows the QR; otherwise Ctrl-C cancels a sale that is not paid, exit code 130',
    )
    .option('--cancel <code>', 'cancel the sale with this code, and take its QR off the box')
    .option('--list', 'the sales of a day, and their sum; money that no sale asked for is not among them')
    .option('--csv', 'the sales of a day as a CSV file, to standard output')
    .option('--day <date>', 'with --list and --csv: the day in Vietnam, as 2026-01-31 (default: today)')
    .option('--json', 'print answers as JSON lines')
    .action(async (options) => (await import('./actions/sell.ts')).sell(options));
}
