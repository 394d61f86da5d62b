import type { Command } from 'commander';
import { LIMITS } from '../protocol/fields.ts';
import { dong, withAuthority, withGateway } from './shared/arguments.ts';

const PAID = `${LIMITS.testCallbackContentMax} letters, digits and spaces`;
/** Clauses GEN-2 and CBK-2. */
const PUSHED_CONTENT = `content of the QR, at most ${LIMITS.contentMax} letters without accents, digits, spaces and . , - _ / : #; \`paybox pay\` takes at most ${PAID}`;
const PAID_CONTENT = `content of the order, as push printed it: at most ${PAID}`;

/** Adds `paybox push` and `paybox pay`, a partner's side of the service. */
export function addPartner(root: Command): void {
  withPartnerAccess(
    root
      .command('push')
      .description('what a partner does: token, generate, send-qr; prints each answer')
      .requiredOption('--amount <dong>', 'amount in whole đồng', dong)
      .requiredOption('--content <text>', PUSHED_CONTENT)
      .option('--order <id>', 'order id (default: a new one)')
      .option('--box <code>', 'terminalCode of the box', 'VVB000001')
      .option('--holder <name>', 'account holder', 'NGUYEN VAN A'),
  ).action(async (options) => (await import('./actions/partner.ts')).push(options));
  withPartnerAccess(
    root
      .command('pay')
      .description("the sandbox's test callback: a simulated payment of an order")
      .requiredOption('--amount <dong>', 'amount in whole đồng', dong)
      .requiredOption('--content <text>', PAID_CONTENT)
      .option('--debit', 'a debit (transType D) instead of a credit'),
  ).action(async (options) => (await import('./actions/partner.ts')).pay(options));
}

function withPartnerAccess(command: Command): Command {
  return withAuthority(withGateway(command))
    .option('--username <name>', "the partner's user name", 'demo')
    .option('--password-file <file>', 'a file with its password, - for standard input (or PAYBOX_PASSWORD)')
    .option('--account <number>', 'bank account', '0123456789')
    .option('--bank <code>', 'bank code', 'MB')
    .option('--json', 'print the answers as JSON lines');
}
