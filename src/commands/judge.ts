import type { Command } from 'commander';
import { ConfigError } from '../lib/errors.ts';
import { portOrAny, whole, withAuthority } from './shared/arguments.ts';

/** Registers `paybox judge service`, `paybox judge box` and `paybox judge dialect`. */
export function addJudge(root: Command): void {
  const judge = root.command('judge').description('judges a service or a box by PROTOCOL.md, clause by clause');
  addService(judge);
  addBox(judge);
  addDialect(judge);
  for (const command of judge.commands) command.exitOverride();
}

function addService(judge: Command): void {
  const command = withRunOptions(judge.command('service'), 'token expiry, every retry of a callback')
    .description('judges a payment QR service, or our own gateway')
    .argument('[url]', 'the service to judge, as with --service')
    .option('--guess-passwords', 'also send wrong passwords until the service limits them')
    .optionsGroup('Options about the service:')
    .option('--service <url>', 'the service to judge, with its path prefix, as https://dev.example.com/vqr')
    .option('--username <name>', "the partner's user name")
    .option('--password-file <file>', 'a file with its password, - for standard input (or PAYBOX_PASSWORD)')
    .option('--account <number>', "the partner's bank account")
    .option('--bank <code>', 'its bank: short name or BIN')
    .option('--holder <name>', 'its holder')
    .option('--no-sandbox', 'the service is not a sandbox: it must refuse the test callback')
    .option('--box-code <code>', 'terminalCode of a box that is linked to the account; pushes go to it')
    .option('--serial <code>', 'its serialNumber')
    .option(...BOX_PAGE)
    .option(...BOX_TOKEN)
    .option(
      '--box-secret-file <file>',
      'the secret of that box, which must be off: the bench simulates it (gateways of paybox only)',
    )
    .option('--confirm <what>', 'what the service waits for before SUCCESS: displayed or accepted', 'displayed')
    .option('--unlinked-box <code>', 'terminalCode of a box without an account')
    .option('--second-username <name>', 'a second partner, who does not own the account')
    .option('--second-password-file <file>', 'a file with its password')
    .option('--second-account <number>', 'its account, if it has no endpoint for callbacks')
    .option('--second-bank <code>', 'the bank of that account (default: that of --bank)')
    .option(
      '--callback-listen <host:port[/path]>',
      "the bench receives callbacks here; set the service's callback endpoint to it",
    )
    .option(
      '--callback-auth-file <file>',
      'how callbacks are authorized: none, bearer:TOKEN, or token:USERNAME:PASSWORD',
    )
    .option('--callback-signing-secret-file <file>', 'the whsec_ secret that callbacks are signed with')
    .addHelpText('after', SERVICE_EXAMPLES + VERDICTS);
  command.action(async (url, options) => {
    const given = withTarget(command, '--service', url, options);
    await (await import('./actions/judge-service.ts')).judgeService(given);
  });
}

function addBox(judge: Command): void {
  const command = withRunOptions(judge.command('box'), 'signs of life, several payments, restarts')
    .description('judges a box of any maker, or our own agent')
    .argument('[codes]', 'the box to judge, as with --await-box')
    .optionsGroup(ABOUT_THE_BOX)
    .option('--await-box <codes>', 'the box to judge, as VVB000001:VVB900001; the bench is its gateway')
    .option('--box-secret-file <file>', 'a file with the secret of the box')
    .option('--http-port <port>', 'the port of HTTP (default: 8840)', portOrAny)
    .addHelpText('after', BOX_EXAMPLES + VERDICTS);
  withAwaitedBox(command).action(async (codes, options) => {
    const given = withTarget(command, '--await-box', codes, options);
    await (await import('./actions/judge-box.ts')).judgeBox(given);
  });
}

function addDialect(judge: Command): void {
  const command = withRunOptions(judge.command('dialect'), 'an order that nobody ends')
    .description('judges a box that speaks the public MQTT dialect (vietqr), or our own agent in that dialect')
    .argument('[mac]', 'the box to judge, as with --await-box')
    .optionsGroup(ABOUT_THE_BOX)
    .option('--await-box <mac>', 'the box to judge, as 02:00:5E:10:00:01; the bench is the public service towards it')
    .option('--check-sum-salt-file <file>', 'a file with the salt of the checkSum')
    .option('--username <name>', 'the user name that all boxes share (default: every login counts)')
    .option('--password-file <file>', 'a file with the password of that name, - for standard input')
    .option('--box-code <code>', 'the code that begins its boxId (default: VVB000001)')
    .addHelpText('after', DIALECT_EXAMPLES + VERDICTS);
  withAwaitedBox(command).action(async (mac, options) => {
    const given = withTarget(command, '--await-box', mac, options);
    await (await import('./actions/judge-dialect.ts')).judgeDialect(given);
  });
}

const ABOUT_THE_RUN = 'Options:';
const ABOUT_THE_BOX = 'Options about the box:';

/**
 * Returns the options with the target. The target is an argument, or the option of this name. Throws ConfigError for
 * two targets. Also throws for an option about a target if there is none, because our own would be judged instead.
 */
function withTarget<Options extends object>(
  command: Command,
  name: '--service' | '--await-box',
  argument: string | undefined,
  options: Options,
): Options {
  const given = command.options.filter((it) => command.getOptionValueSource(it.attributeName()) === 'cli');
  const option = given.find(({ long }) => long === name);
  if (option !== undefined && argument !== undefined) {
    throw new ConfigError(`${argument}: expected one target, and ${name} is there too`, 'leave one of them out');
  }
  if (option !== undefined) return options;
  if (argument !== undefined) return { ...options, [name === '--service' ? 'service' : 'awaitBox']: argument };
  const stray = given.find(({ helpGroupHeading }) => helpGroupHeading !== ABOUT_THE_RUN);
  if (stray === undefined) return options;
  const target = name === '--service' ? 'the address of the service' : 'the box';
  throw new ConfigError(`${stray.long} belongs to ${name}`, `give ${target} to judge`);
}

function withRunOptions(command: Command, slow: string): Command {
  return withAuthority(command.optionsGroup(ABOUT_THE_RUN))
    .option('--slow', `also checks that take minutes: ${slow}`)
    .option('--strict', 'fail where the target differs in a gap of the specification')
    .option('--baseline <file>', 'accept the deviations in this file: they differ, whatever --strict says')
    .option('--update-baseline', 'with --baseline: write the file again, with every deviation of this run')
    .option('--only <clauses>', 'judge these only, as TOK,SND-4')
    .option('--junit <file>', 'write the verdicts as JUnit XML')
    .option('--tap <file>', 'write the verdicts as TAP 14')
    .option('--report <dir>', 'write index.html, clause by clause, with requests and answers')
    .option('--seed <n>', 'repeats the random choices of a run (default: random, and printed)', whole(999_999_999))
    .option('--json', 'print the verdicts as JSON lines and nothing else');
}

function withAwaitedBox(command: Command): Command {
  return command
    .option('--listen <host>', 'the address of this machine that the box connects to (default: 127.0.0.1)')
    .option('--mqtt-port <port>', 'the port of MQTT (default: 18840)', portOrAny)
    .option('--tls <folder>', 'TLS, by the authority in a folder that `paybox provision` made')
    .option('--within <seconds>', 'how long the box may take to connect (default: 120)', whole(86_400))
    .option('--probe <how>', 'how its screen is seen, as in `bench run` (default: --box-page, if given)')
    .option('--restart-command <command>', 'a shell command that power-cycles the box')
    .option(...BOX_PAGE)
    .option(...BOX_TOKEN);
}

const BOX_PAGE = ['--box-page <url>', 'origin of its pages, to see its screen'] as const;
const BOX_TOKEN = [
  '--box-token-file <file>',
  'a file with http.token of that box, - for standard input (or PAYBOX_BOX_TOKEN)',
] as const;

const SERVICE_EXAMPLES = `
Without a URL it judges our own gateway, in this process. With one it judges any service: it creates orders, pushes and
simulated payments there, so use a sandbox. These options are needed then: --username, --password-file, --account,
--bank and --holder. Each option more opens more checks.

  $ paybox judge service --strict                               our own gateway
  $ paybox judge service https://dev.example.com/vqr --username shop --password-file pw \\
      --account 0123456789 --bank MB --holder 'NGUYEN VAN A' --report out
  $ … --strict --baseline accepted.json --update-baseline       accept all that deviates now
  $ … --strict --baseline accepted.json                         from then on: whatever else deviates fails
  $ … --box-code VVB000001 --serial VVB900001                   with a box that is on; it shows the orders
  $ … --callback-listen 0.0.0.0:8900                            with callbacks to /bank/api/transaction-sync there
`;

const BOX_EXAMPLES = `
Without codes it judges our own agent, in this process, over MQTT and then over HTTP. With codes the bench is the
gateway of that box: it prints where the box has to connect, and waits.

  $ paybox judge box --strict                                   our own agent
  $ paybox judge box VVB000001:VVB900001 --box-secret-file secret --listen 0.0.0.0 \\
      --box-page http://192.168.1.20:8810
  $ … --tls pki                                                 over TLS; the box trusts pki/ca.pem of \`provision\`
  $ … --probe 'rpicam-still -n -o -' --slow                     a camera sees its screen
  $ … --restart-command 'usbrelay BOX=0; sleep 2; usbrelay BOX=1'
`;

const DIALECT_EXAMPLES = `
Without a MAC address it judges our own agent in the dialect, in this process. With one the bench is the public service
towards that box: it prints where the box has to connect, and waits. At a terminal it asks you what you see and hear.

  $ paybox judge dialect                                        our own agent
  $ paybox judge dialect 02:00:5E:10:00:01 --check-sum-salt-file salt \\
      --username boxes --password-file pw --listen 0.0.0.0
`;

const VERDICTS = `
A check that lacks an option is skipped, and its reason names the option.

  passed     as the clause says
  failed     against the specification, or it accepts what it must refuse
  differs    another choice in a gap of the specification; --strict fails it
  skipped    not judged, with the reason
  missing    no answer; after three in a row the rest is not tried

NODE_EXTRA_CA_CERTS names a CA of your own. No report contains a secret.

Exit codes: 0 nothing failed, 1 something did, 2 usage, 3 nobody answered, 130 interrupted`;
