import { Command } from 'commander';
import { portOrAny, whole } from './arguments.ts';

/** `paybox bench run conformance`, which is `paybox bench conformance` too. */
export function conformanceCommand(): Command {
  return new Command('conformance')
    .description(
      'judges a payment QR service, a box, or our own gateway and agent, clause by clause against PROTOCOL.md',
    )
    .option('--service <url>', 'the service to judge, with its path prefix, as https://dev.example.com/vqr')
    .option('--username <name>', "the partner's user name")
    .option('--password-file <file>', 'a file with its password, - for standard input (or PAYBOX_PASSWORD)')
    .option('--account <number>', "the partner's bank account")
    .option('--bank <code>', 'its bank: short name or BIN')
    .option('--holder <name>', 'its holder')
    .option('--no-sandbox', 'the service is no sandbox: it must refuse the test callback')
    .option('--box-code <code>', 'terminalCode of a box that is linked to the account; pushes go to it')
    .option('--serial <code>', 'its serialNumber')
    .option('--box-page <url>', 'the origin of its pages, to see its screen')
    .option('--box-token-file <file>', 'a file with http.token of that box (or PAYBOX_BOX_TOKEN)')
    .option(
      '--box-secret-file <file>',
      'the secret of that box, which is off: the bench plays it (our kind of gateway); or of --await-box',
    )
    .option('--confirm <what>', 'what the service waits for before SUCCESS: displayed or accepted', 'displayed')
    .option('--unlinked-box <code>', 'terminalCode of a box without an account')
    .option('--second-username <name>', 'a second partner, who does not own the account')
    .option('--second-password-file <file>', 'a file with its password')
    .option('--second-account <number>', 'its account, if it has no endpoint for callbacks')
    .option('--second-bank <code>', 'the bank of that account (default: that of --bank)')
    .option(
      '--callback-listen <host:port>',
      "the bench is the partner's server here; point the service's endpoint at it",
    )
    .option(
      '--callback-auth-file <file>',
      'how callbacks are authorized: none, bearer:TOKEN, or token:USERNAME:PASSWORD',
    )
    .option('--callback-signing-secret-file <file>', 'the whsec_ secret that callbacks are signed with')
    .option('--await-box <codes>', 'the box to judge, as VVB000001:VVB900001: the bench is its gateway; with')
    .option('--listen <host>', '… the address of this machine that it connects to (default: 127.0.0.1),')
    .option('--mqtt-port <port>', '… the port of MQTT (default: 18840),', portOrAny)
    .option('--http-port <port>', '… the port of HTTP (default: 8840),', portOrAny)
    .option('--tls <folder>', '… over TLS, by the authority in a folder that `paybox provision` made,')
    .option('--within <seconds>', '… how long it may take to come (default: 120), and', whole(86_400))
    .option('--probe <how>', '… where its screen is seen, as in `bench run` (default: --box-page, if there is one)')
    .option('--restart-command <command>', '… a shell command that turns it off and on again')
    .option('--slow', 'also what takes minutes: the end of a token, every retry of a callback, reports that come again')
    .option('--guess-passwords', 'also send wrong passwords until the service has enough of them')
    .option('--strict', 'another choice in a gap of the specification is a failure')
    .option('--only <clauses>', 'judge these only, as TOK,SND-4')
    .option('--junit <file>', 'write the verdicts as JUnit XML')
    .option('--tap <file>', 'write the verdicts as TAP 14')
    .option('--report <dir>', 'write index.html, clause by clause, with requests and answers')
    .option('--seed <n>', 'makes the same choices again (default: by chance, and told)', whole(999_999_999))
    .option('--json', 'print the verdicts as JSON lines and nothing else')
    .addHelpText('after', EXAMPLES)
    .exitOverride()
    .action(async (options) => (await import('./bench-conformance.ts')).conformance(options));
}

/** Arguments in which `bench run conformance` is the command of that name: it has other options than `bench run`. */
export function withConformance(args: readonly string[]): string[] {
  const [first, second, third, ...rest] = args;
  const isConformance = first === 'bench' && second === 'run' && third === 'conformance';
  return isConformance ? ['bench', 'conformance', ...rest] : [...args];
}

const EXAMPLES = `
paybox bench run conformance and paybox bench conformance are the same.
Without --service it judges our own gateway and agent, in this process; with it, any service, by orders, pushes and
simulated payments of its own: give it a sandbox. What a check needs and was not given is skipped, with the option
that would bring it.

  $ paybox bench run conformance --strict                       what CI does
  $ paybox bench run conformance --service https://dev.example.com/vqr --username shop --password-file pw \\
      --account 0123456789 --bank MB --holder 'NGUYEN VAN A' --report out
  $ …  --box-code VVB000001 --serial VVB900001                  with a box that is on; you see it show the orders
  $ …  --callback-listen 0.0.0.0:8900                           with callbacks: their endpoint is
                                                                http://THIS-MACHINE:8900/bank/api/transaction-sync

  $ paybox bench run conformance --await-box VVB000001:VVB900001 --box-secret-file secret --listen 0.0.0.0 \\
      --box-page http://192.168.1.20:8810                       any box: it says where the box has to connect, waits
  $ …  --tls pki                                                  over TLS: pki is what \`paybox provision\` made,
                                                                the box trusts pki/ca.pem
  $ …  --probe 'rpicam-still -n -o -' --restart-command 'usbrelay BOX=0; sleep 2; usbrelay BOX=1' --slow

passed: as the clause says. failed: not as the specification says. differs: another choice where the specification
says nothing, which --strict fails. skipped: not judged, and why. missing: nobody answered.
A CA of your own goes into NODE_EXTRA_CA_CERTS. Secrets stand in no report.
Exit codes: 0 nothing failed, 1 something did, 2 usage, 3 nobody answered, 130 interrupted`;
