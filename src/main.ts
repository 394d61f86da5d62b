import { type Command, CommanderError } from 'commander';
import { addAdmin } from './commands/admin.ts';
import { addAgent } from './commands/agent.ts';
import { addBackup } from './commands/backup.ts';
import { addBench } from './commands/bench.ts';
import { addConfig } from './commands/config.ts';
import { addDoctor } from './commands/doctor.ts';
import { addEnrol } from './commands/enrol.ts';
import { addFleet } from './commands/fleet.ts';
import { addGateway } from './commands/gateway.ts';
import { addJudge } from './commands/judge.ts';
import { addKeys } from './commands/keys.ts';
import { addPartner } from './commands/partner.ts';
import { addProvision } from './commands/provision.ts';
import { addSell } from './commands/sell.ts';
import { remark } from './commands/shared/output.ts';
import { Program } from './commands/shared/program.ts';
import { addTakeover } from './commands/takeover.ts';
import { addUp } from './commands/up.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from './lib/errors.ts';
import { version } from './lib/version.ts';

/**
 * Commands, in the order of the help. A file in commands/ has the options of a command; its code in commands/actions/ is
 * loaded on demand, so that `--help` and every start are fast.
 */
const COMMANDS = [
  ...[
    addUp,
    addGateway,
    addAgent,
    addPartner,
    addSell,
    addAdmin,
    addConfig,
    addDoctor,
    addProvision,
    addEnrol,
    addKeys,
    addBackup,
    addTakeover,
  ],
  ...[addBench, addJudge, addFleet],
];

/** Exit codes of every command. */
const EXIT = { done: 0, no: 1, usage: 2, missing: 3 } as const;

/** Runs one command and sets the process's exit code: 0 success, 1 failure or refusal, 2 wrong usage, 3 a peer is missing. */
export async function main(args: readonly string[]): Promise<void> {
  outliveReaders();
  try {
    await program().parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** Lets the reader of the output end early, as `head` does. The command still finishes and cleans up. */
function outliveReaders(): void {
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', () => undefined);
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    process.stderr.write(`paybox: standard output cannot be written: ${reasonOf(error)}\n`);
    // A lost result must not look like success.
    process.once('exit', () => {
      process.exitCode ||= EXIT.no;
    });
  });
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  const fix = error instanceof PayboxError && error.fix !== '' ? `\n  ${error.fix}` : '';
  const what = error instanceof PayboxError ? error.message : reasonOf(error);
  remark(`paybox: ${what}${fix}`);
  if (error instanceof ConfigError) return EXIT.usage;
  if (error instanceof MissingPeerError) return EXIT.missing;
  return EXIT.no;
}

function program(): Command {
  const root = new Program('paybox')
    .description('The software inside a payment QR box, a mock of its payment service, and the bench that tests both.')
    .version(version(), '--version')
    .showHelpAfterError('(run the command with --help to see what it takes)')
    .exitOverride()
    .addHelpText('after', EXAMPLES);
  for (const add of COMMANDS) add(root);
  for (const command of root.commands) command.exitOverride();
  return root;
}

const EXAMPLES = `
A first walk, in two terminals:
  $ paybox up                                     the whole loop; open the box page that it names
  $ paybox push --amount 50000 --content DH001    a QR appears on the box
  $ paybox pay --amount 50000 --content DH001     the box says that it is paid

Exit codes: 0 done, 1 it ran and the answer is no, 2 usage or configuration, 3 a device or peer is not there, 130 interrupted`;
