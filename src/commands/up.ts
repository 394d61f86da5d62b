import type { Command } from 'commander';
import { port, STAYING } from './shared/arguments.ts';

/** Adds `paybox up`. */
export function addUp(root: Command): void {
  root
    .command('up')
    .description('gateway, broker, one emulated box and its pages, ready in one line; Ctrl-C ends all')
    .option('--data <dir>', "where state is kept (default: paybox in the user's state folder)")
    .option(
      '--host <address>',
      'where gateway and box page listen: 127.0.0.1 or, as in a container, 0.0.0.0; beyond this machine both ask for the token in DIR/admin-token, or PAYBOX_ADMIN_TOKEN',
      '127.0.0.1',
    )
    .option('--http-port <port>', 'port of the gateway and its console', port, 8800)
    .option('--mqtt-port <port>', 'port of the embedded MQTT broker', port, 18830)
    .option('--box-port <port>', "port of the box's own page", port, 8810)
    .option('--callback-url <url>', "the demo partner's transaction-sync endpoint (default: a bundled sample partner)")
    .option(
      '--callback-auth <how>',
      'none, bearer-file:FILE with a TOKEN in it, or token-file:FILE with USERNAME:PASSWORD@TOKEN-URL',
      'none',
    )
    .option('--callback-auth-file <file>', 'a file with bearer:TOKEN or token:… in it, - for standard input')
    .option(
      '--ready-file <file>',
      'a file that is written once everything answers: addresses and demo identities as JSON',
    )
    .option('--display <name>', 'the display that confirms pushes: browser, terminal or png (default: browser)')
    .option('--transport <name>', 'how the box reaches the gateway: mqtt (default) or http')
    .option('--live-demo', 'a live shop, and beside it the sandbox of the public service, which reports money to it')
    .option('--service-port <port>', 'with --live-demo: port of the public service', port, 8801)
    .option(...STAYING)
    .option('--no-open', 'do not open the box page in a browser')
    .action(async (options) => (await import('./actions/up.ts')).up(options));
}
