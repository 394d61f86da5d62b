import { Command } from 'commander';
import { withAdminToken, withBoxToken } from './arguments.ts';

/** `paybox bench record …`. */
export function recordCommand(): Command {
  const several = (value: string, before: string[]) => [...before, value];
  const record = new Command('record')
    .description('turns a session at a gateway, what partners did and what boxes then showed, into a scenario file')
    .requiredOption('--gateway <url>', 'origin of the gateway, as http://127.0.0.1:8800')
    .requiredOption('--out <file>', 'the scenario file to write, as session.yaml')
    .option('--box <url>', 'origin of the pages of a box whose screen is watched; may be repeated', several, [])
    .option('--once', 'write what the gateway remembers, and do not go on recording')
    .option('--replace', 'write over a file that is there')
    .option('--probe <how>', 'where screens are seen, as for paybox bench run', 'screen');
  return withBoxToken(withAdminToken(record))
    .addHelpText('after', RECORD_EXAMPLES)
    .action(async (options) => (await import('./bench-record.ts')).record(options));
}

const RECORD_EXAMPLES = `
  $ paybox up &
  $ paybox bench record --gateway http://127.0.0.1:8800 --box http://127.0.0.1:8810 --out session.yaml
  $ paybox push --amount 50000 --content DH001      elsewhere, or any partner's program, and the console
  $ paybox pay --amount 50000 --content DH001       Ctrl-C in the first terminal then writes the file
  $ paybox bench run session.yaml                   the same screens, reports and callbacks, on an emulated box

What the gateway remembers is part of it: recording may begin after the session, with --once too. Of a box that is
named with --box the file expects what its screen showed, of others what they reported. Pauses are kept to the second.
Pushes to one box that met while faults stood are made at one time again, as branches of a step parallel; others one
after the other, as the box was told of them, which comes to the same screens, reports and callbacks.
What no step can do again stands in the file as a comment. No password, token or checkSum is recorded.
Exit codes: 0 written, 1 nothing was done, 2 usage or a gateway that cannot be recorded, 3 gateway or box not there`;
