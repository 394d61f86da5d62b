import type { Command } from 'commander';
import { dong } from './shared/arguments.ts';

/** `paybox push` and `paybox pay`: a partner's side of the service. */
export function addPartner(root: Command): void {
  withPartnerAccess(
    root
      .command('push')
      .description('what a partner does: token, generate, send-qr; prints each answer')
      .requiredOption('--amount <dong>', 'amount in whole đồng', dong)
      .requiredOption(
        '--content <text>',
        'payment content, at most 25 letters, digits and spaces; `paybox pay` takes at most 19',
      )
      .option('--order <id>', 'order id (default: a new one)')
      .option('--box <code>', 'terminalCode of the box', 'VVB000001')
      .option('--holder <name>', 'account holder', 'NGUYEN VAN A'),
  ).action(async (options) => (await import('./actions/partner.ts')).push(options));
  withPartnerAccess(
    root
      .command('pay')
      .description("the sandbox's test callback: a simulated payment of an order")
      .requiredOption('--amount <dong>', 'amount in whole đồng', dong)
      .requiredOption('--content <text>', 'payment content of the order, at most 19 letters, digits and spaces')
      .option('--debit', 'a debit (transType D) instead of a credit'),
  ).action(async (options) => (await import('./actions/partner.ts')).pay(options));
}

function withPartnerAccess(command: Command): Command {
  return command
    .option('--service <url>', 'the service, with its path prefix', 'http://127.0.0.1:8800/vqr')
    .option('--username <name>', "the partner's user name", 'demo')
    .option('--password-file <file>', 'a file with its password, - for standard input (or PAYBOX_PASSWORD)')
    .option('--account <number>', 'bank account', '0123456789')
    .option('--bank <code>', 'bank code', 'MB')
    .option('--json', 'print the answers as JSON lines');
}
