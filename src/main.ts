import { Command, CommanderError } from 'commander';
import { dong, port, withAdminToken } from './commands/arguments.ts';
import { withConformance } from './commands/bench-conformance-options.ts';
import { addBench } from './commands/bench-options.ts';
import { addFleet } from './commands/fleet-options.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from './lib/errors.ts';
import { version } from './lib/version.ts';

/** Exit codes of every command. */
const EXIT = { done: 0, no: 1, usage: 2, missing: 3 } as const;

/** Runs one command and sets the process's exit code: 0 done, 1 the answer is no, 2 usage, 3 a peer is missing. */
export async function main(args: readonly string[]): Promise<void> {
  outliveReaders();
  try {
    await program().parseAsync(withConformance(args), { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** Whoever read the output may have gone, as `head` does; what runs goes on to its end, and cleans up behind it. */
function outliveReaders(): void {
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', () => undefined);
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    process.stderr.write(`paybox: standard output cannot be written: ${reasonOf(error)}\n`);
    // What could not be told must not pass for done.
    process.once('exit', () => {
      process.exitCode ||= EXIT.no;
    });
  });
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  const fix = error instanceof PayboxError && error.fix !== '' ? `\n  ${error.fix}` : '';
  const what = error instanceof PayboxError ? error.message : reasonOf(error);
  process.stderr.write(`paybox: ${what}${fix}\n`);
  if (error instanceof ConfigError) return EXIT.usage;
  if (error instanceof MissingPeerError) return EXIT.missing;
  return EXIT.no;
}

function program(): Command {
  const root = new Command('paybox')
    .description('The software inside a payment QR box, a mock of its payment service, and the bench that tests both.')
    .version(version(), '--version')
    .showHelpAfterError('(run the command with --help to see what it takes)')
    .exitOverride()
    .addHelpText('after', EXAMPLES);
  addUp(root);
  addDaemons(root);
  addPartner(root);
  addConfig(root);
  addProvision(root);
  addEnrol(root);
  addKeys(root);
  addBackup(root);
  addBench(root);
  addFleet(root);
  for (const command of root.commands) command.exitOverride();
  return root;
}

const EXAMPLES = `
A first walk, in two terminals:
  $ paybox up                                     the whole loop; open the box page that it names
  $ paybox push --amount 50000 --content DH001    a QR appears on the box
  $ paybox pay --amount 50000 --content DH001     the box says that it is paid

Exit codes: 0 done, 1 it ran and the answer is no, 2 usage or configuration, 3 a device or peer is not there, 130 interrupted`;

function addUp(root: Command): void {
  root
    .command('up')
    .description('gateway, broker, one emulated box and its pages, ready in one line; Ctrl-C ends all')
    .option('--data <dir>', "where state is kept (default: paybox in the user's state folder)")
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
    .option('--ready-file <file>', 'written once everything answers: addresses and demo identities as JSON')
    .option('--display <name>', 'the display that confirms: browser, terminal or png (default: browser)')
    .option('--transport <name>', 'how the box reaches the gateway: mqtt or http', 'mqtt')
    .option('--no-open', 'do not open the box page in a browser')
    .action(async (options) => (await import('./commands/up.ts')).up(options));
}

function addDaemons(root: Command): void {
  root
    .command('gateway')
    .description('the mock of the payment QR service alone')
    .requiredOption('--config <file>', 'configuration, see device-config/gateway.yaml')
    .option('--ready-file <file>', 'written once it answers')
    .action(async (options) => (await import('./commands/gateway.ts')).gateway(options));
  root
    .command('agent')
    .description('the box daemon alone, as on a device')
    .requiredOption('--config <file>', 'configuration, see device-config/laptop.yaml')
    .option('--ready-file <file>', 'written once its own pages answer')
    .option(
      '--setup-report <file>',
      'what first-boot has written; a configuration that is missing or wrong is then told on the screen, and waited for',
    )
    .action(async (options) => (await import('./commands/agent.ts')).agent(options));
  root
    .command('first-boot')
    .description('takes paybox.yaml on the boot partition over as the configuration of the agent, at each boot')
    .option('--boot <dir>', 'the boot partition', '/boot/firmware')
    .option('--config <dir>', 'where the configuration is written', '/etc/paybox')
    .option('--state <dir>', "the agent's dataDir", '/var/lib/paybox')
    .option('--report <file>', 'what the agent shows of it', '/run/paybox-first-boot/report.json')
    .option('--root <dir>', 'the folder that holds etc, usr and var, for Wi-Fi', '/')
    .action(async (options) => (await import('./commands/first-boot.ts')).firstBoot(options));
}

function addPartner(root: Command): void {
  const access = (command: Command) =>
    command
      .option('--service <url>', 'the service, with its path prefix', 'http://127.0.0.1:8800/vqr')
      .option('--username <name>', "the partner's user name", 'demo')
      .option('--password-file <file>', 'a file with its password, - for standard input (or PAYBOX_PASSWORD)')
      .option('--account <number>', 'bank account', '0123456789')
      .option('--bank <code>', 'bank code', 'MB')
      .option('--json', 'print the answers as JSON lines');
  access(
    root
      .command('push')
      .description('what a partner does: token, generate, send-qr; prints each answer')
      .requiredOption('--amount <dong>', 'amount in whole đồng', dong)
      .requiredOption('--content <text>', 'payment content, at most 25 letters, digits and spaces')
      .option('--order <id>', 'order id (default: a new one)')
      .option('--box <code>', 'terminalCode of the box', 'VVB000001')
      .option('--holder <name>', 'account holder', 'NGUYEN VAN A'),
  ).action(async (options) => (await import('./commands/push.ts')).push(options));
  access(
    root
      .command('pay')
      .description("the sandbox's test callback: a simulated payment of an order")
      .requiredOption('--amount <dong>', 'amount in whole đồng', dong)
      .requiredOption('--content <text>', 'payment content of the order, at most 19 letters, digits and spaces')
      .option('--debit', 'a debit (transType D) instead of a credit'),
  ).action(async (options) => (await import('./commands/pay.ts')).pay(options));
}

function addConfig(root: Command): void {
  const config = root.command('config').description('checks, describes and prints configuration files');
  config
    .command('check <file>')
    .description('says whether an agent or gateway configuration is valid, and what is wrong where')
    .action(async (file) => (await import('./commands/config.ts')).check(file));
  config
    .command('schema <agent|box|gateway|scenario>')
    .description('prints the JSON schema, for editors')
    .action(async (kind) => (await import('./commands/config.ts')).schema(kind));
  config
    .command('print <file>')
    .description('prints the effective configuration with defaults filled in and secrets masked')
    .action(async (file) => (await import('./commands/config.ts')).print(file));
  for (const command of config.commands) command.exitOverride();
  root
    .command('doctor')
    .description('checks what a box needs and says what to do: display, storage, clock, ports, gateway')
    .requiredOption('--config <file>', 'configuration of the agent')
    .option('--json', 'print the findings as JSON')
    .action(async (options) => (await import('./commands/doctor.ts')).doctor(options));
}

function addProvision(root: Command): void {
  const several = (value: string, before: string[]) => [...before, value];
  root
    .command('provision')
    .description('makes a local CA, and certificates, secrets and configurations for gateway, broker and boxes')
    .requiredOption('--out <dir>', 'the folder; run again with the same one, it adds boxes and changes nothing else')
    .option(
      '--host <name>',
      'name or IP address of gateway and broker; may be repeated, boxes use the first',
      several,
      [],
    )
    .option(
      '--box <codes>',
      'a box to add, as VVB000001:VVB900001 (terminalCode:serialNumber); may be repeated',
      several,
      [],
    )
    .option('--rotate <name>', 'terminalCode of a box, or gateway, for new secrets and certificates', several, [])
    .option('--http-port <port>', "port of the gateway's HTTPS", port, 8443)
    .option('--mqtt-port <port>', 'port of MQTT over TLS', port, 8883)
    .option('--boot <dir>', 'the mounted boot partition of the one --box: writes its paybox.yaml there')
    .option('--gateway <url>', 'a gateway or broker that is there already: --out is then a boot partition, and')
    .option('--enrolment <url>', '… where the box enrols, if --gateway is a broker')
    .option('--ca <file>', '… the CA of its certificate, PEM, if it is no well-known one')
    .option('--wifi <ssid>', 'the Wi-Fi network of the box')
    .option('--wifi-password-file <file>', 'a file that holds its password, - for standard input')
    .option('--wifi-country <code>', 'the country of the box, as VN')
    .option('--replace', 'write over the paybox.yaml of another box')
    .action(async (options) => (await import('./commands/provision.ts')).provision(options));
}

/** A command that asks a gateway for what only its owner may. */
function ofGateway(root: Command, name: string): Command {
  const command = root
    .command(name)
    .option('--gateway <url>', 'origin of the gateway', 'http://127.0.0.1:8800')
    .option('--ca <file>', "the CA of the gateway's certificate, PEM, if it is no well-known one");
  return withAdminToken(command);
}

function addEnrol(root: Command): void {
  ofGateway(root, 'enrol')
    .description(
      'lists the boxes that ask the gateway for a secret, accepts one by the code on its screen, or forgets one',
    )
    .option('--box <code>', 'terminalCode of the box to accept')
    .option('--code <code>', 'what stands on its screen, as 7K2M-Q0XA-94TZ, good once; - reads it from standard input')
    .option('--reject <code>', 'terminalCode of a box to turn down')
    .option('--forget <code>', 'terminalCode of a box whose secret is to be worthless; it has to enrol anew')
    .option('--json', 'print the list as JSON lines')
    .action(async (options) => (await import('./commands/enrol.ts')).enrol(options));
}

function addKeys(root: Command): void {
  ofGateway(root, 'keys')
    .description('tells the key that the gateway signs with, or makes a new one; boxes follow without a break')
    .option('--rotate', 'make a new key: every box hears of it with its next message, and refuses the old one')
    .option('--json', 'print it as JSON')
    .action(async (options) => (await import('./commands/keys.ts')).keys(options));
}

function addBackup(root: Command): void {
  ofGateway(root, 'backup')
    .argument('<file>', 'the file to make, for you only; it is as secret as the gateway')
    .description('copies the store of a gateway while it works, and checks the copy')
    .option('--config <file>', 'its configuration: for the adminToken, and for databaseUrl, which pg_dump copies')
    .option('--replace', 'write over a file that is there, once the new one is whole')
    .addHelpText('after', BACKUP_EXAMPLES)
    .action(async (file, options) => (await import('./commands/backup.ts')).backup(file, options));
  root
    .command('restore')
    .argument('<file>', 'what paybox backup has made')
    .description('checks a backup and puts it in the place of the store of a gateway that is off')
    .option('--config <file>', 'configuration of the gateway')
    .option('--data <dir>', "the gateway's dataDir, in place of --config (of paybox up: its --data and /gateway)")
    .option('--replace', 'move a store that is there aside, under the name that is told; nothing is deleted')
    .action(async (file, options) => (await import('./commands/backup.ts')).restore(file, options));
}

const BACKUP_EXAMPLES = `
Each night, and back again:
  $ paybox backup /backup/paybox-$(date +%F)                        the gateway goes on meanwhile
  $ systemctl stop paybox-gateway
  $ paybox restore /backup/paybox-2026-01-31 --config gateway.yaml --replace
  $ systemctl start paybox-gateway
Boxes and partners are then told what was owed when the backup was made, with the ids that they know.`;
