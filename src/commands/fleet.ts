import type { Command } from 'commander';
import { whole, withGatewayAccess } from './shared/arguments.ts';

const BOXES_MAX = 100_000;
const SECONDS_MAX = 86_400;
const PUSHES_MAX = 1_000_000;
const RATE_MAX = 10_000;
const SEED_MAX = 999_999_999;

const EXAMPLES = `
  $ paybox fleet --boxes 200 --rate 50                     200 boxes on a gateway of their own, for 30 s
  $ paybox fleet --boxes 20 --pushes 500 --transport http --json
  $ paybox fleet --boxes 10000 --light --rate 100          10,000 boxes, each a link and nothing else
  $ paybox fleet --boxes 50 --gateway https://gateway.example:8443 --identities provisioned --admin-token-file token

A payment is wrong if it was not shown, reported and announced exactly once; so are a QR on another box than its own, and a SUCCESS
without its QR on the screen. Other answers than SUCCESS are counted, and are not wrong by themselves.
Exit codes: 0 the money is right, 1 it is not, 2 usage or configuration, 3 the gateway is not there, 130 interrupted`;

/** Registers `paybox fleet` with its options. */
export function addFleet(root: Command): void {
  const fleet = root
    .command('fleet')
    .description('runs many boxes in one process, makes orders and payments, and judges whether every payment is right')
    .requiredOption('--boxes <n>', 'how many', whole(BOXES_MAX))
    .option('--light', 'boxes without display, journal and pages: thousands in one process')
    .option('--share <k/n>', 'with --gateway: this process has the k-th of n shares of the boxes, as 1/4')
    .option('--seconds <s>', 'how long orders are made (default: 30, or until --pushes are made)', whole(SECONDS_MAX))
    .option('--pushes <n>', 'how many orders in all', whole(PUSHES_MAX))
    .option('--rate <r>', 'pushes a second in all (default: one in 10 s for each box)', whole(RATE_MAX))
    .option('--transport <name>', 'how the boxes connect to their gateway: mqtt (default) or http')
    .option('--seed <n>', 'repeats the same orders (default: random, and printed)', whole(SEED_MAX))
    .option('--json', 'print each figure as a JSON line')
    .option('--log <file>', 'write the log of the boxes, and of its own gateway')
    .option('--gateway <url>', 'origin of a running gateway (default: one of its own, on free ports)')
    .option('--identities <path>', '… its boxes: a folder of `paybox provision`, or YAML with boxes and their secrets')
    .option('--broker <url>', '… where boxes of a YAML file find its broker (default: at its host, port 18830)');
  withGatewayAccess(fleet)
    .addHelpText('after', EXAMPLES)
    .action(async (options) => (await import('./actions/fleet.ts')).fleet(options));
}
