import type { Command } from 'commander';
import {
  pattern,
  portOrAny,
  STAYING,
  several,
  shard,
  whole,
  withBoxToken,
  withGateway,
  withGatewayAccess,
} from './shared/arguments.ts';

/** Registers `paybox bench …`. */
export function addBench(root: Command): void {
  const bench = root.command('bench').description('runs scenarios against boxes and gives a verdict with evidence');
  const run = bench
    .command('run <file...>')
    .description('runs scenario files, or scenarios of `paybox bench list` by name')
    .option(
      '--target <kind>',
      'emulated (default), process, or at: a running gateway and boxes (default with --gateway)',
    )
    .option('--box <url>', 'origin of the pages of a running box; may be repeated', several, [])
    .option('--boxes <n>', 'make at least this many boxes, for a fleet', whole(1_000))
    .option('--transport <name>', 'how boxes that the bench starts connect to their gateway: mqtt (default) or http')
    .option('--dialect <name>', 'vietqr: gateway and boxes of the bench speak the public MQTT dialect')
    .option(
      '--probe <how>',
      'where screens are seen: screen, panel, file:PATH, framebuffer:PATH:WxHx16, or a command that prints a picture (default: screen, or panel with --panel)',
    )
    .option('--panel <name>', 'an emulated serial panel for each box that the bench makes, as nextion or dwin')
    .option('--junit <file>', 'write the verdicts as JUnit XML')
    .option('--tap <file>', 'write the verdicts as TAP 14')
    .option('--json <file>', 'write the verdicts as JSON')
    .option('--gif <file>', 'write the screens as they followed each other, as an animated picture')
    .option('--report <dir>', 'write index.html with traces, timelines, screens, messages and latencies, and logs')
    .option('--seed <n>', 'repeats the same random choices (default: random, and printed)', whole(999_999_999))
    .option('--set <name=value>', 'a variable, instead of its value in the scenario; may be repeated', several, [])
    .option('--update-goldens', 'write golden pictures instead of comparing with them');
  addChoice(withGateway(run, { isNeeded: false }));
  withBoxToken(withGatewayAccess(run))
    .addHelpText('after', BENCH_EXAMPLES)
    .action(async (files, options) => (await import('./actions/bench.ts')).run(files, options));
  addCheck(bench);
  bench
    .command('list')
    .description('lists the scenarios that come with the program')
    .option('--json', 'print them as JSON lines, with what they need')
    .action(async (options) => (await import('./actions/bench.ts')).list(options));
  addServe(bench);
  for (const command of bench.commands) command.exitOverride();
}

function addChoice(run: Command): void {
  run
    .option('--grep <pattern>', 'only scenarios whose file or name matches, as paid or /^Paid/; may be /i', pattern)
    .option('--shard <n/of>', 'only this part of the scenarios, as 1/3, for several machines', shard)
    .option('--repeat <n>', 'run each scenario n times, with the next seed each time', whole(1_000))
    .option('--retries <n>', 'run a scenario that fails up to n times more; flaky if it passes then', whole(100))
    .option('--jobs <n>', 'scenarios at the same time, each on a target of its own', whole(64))
    .option('--fail-fast', 'end at the first scenario that fails')
    .option('--fail-on-skip', 'end with 1 when a scenario was skipped');
}

function addCheck(bench: Command): void {
  bench
    .command('check <file...>')
    .description('checks scenarios without running them; each problem has its file, line and column')
    .option('--set <name=value>', 'a variable, as for `bench run`; may be repeated', several, [])
    .option('--boxes <n>', 'check them for at least this many boxes', whole(1_000))
    .addHelpText('after', CHECK_EXAMPLES)
    .action(async (files, options) => (await import('./actions/bench-check.ts')).check(files, options));
}

function addServe(bench: Command): void {
  bench
    .command('serve')
    .description('an HTTP API that runs scenarios and opens rigs, for labgrid, pytest and Robot Framework')
    .option('--port <port>', 'the port to listen on; 0 chooses a free one', portOrAny, 8820)
    .option('--host <address>', 'an address of this machine; beyond loopback with --token-file only', '127.0.0.1')
    .option(
      '--token-file <file>',
      'a file with the secret that callers send as Authorization: Bearer, - for standard input',
    )
    .option('--ready-file <file>', 'a file that is written once the server answers: its address as JSON')
    .option('--scenarios <dir>', 'a folder of scenarios that may be run by name too; may be repeated', several, [])
    .option('--probe <how>', 'a probe besides screen that callers may choose; may be repeated', several, [])
    .option('--report <dir>', 'a folder for the logs of all started programs, with a folder for each run and rig')
    .option(...STAYING)
    .option('--until-input-ends', 'ends when its standard input ends, as it does with the program that started it')
    .option('--channel', 'answers the program that started it, over its IPC channel, and ends with it: for the library')
    .addHelpText('after', SERVE_EXAMPLES)
    .action(async (options) => {
      if (options.channel === true) await (await import('./actions/bench-channel.ts')).serveChannel(options);
      else await (await import('./actions/bench-serve.ts')).serve(options);
    });
}

const SERVE_EXAMPLES = `
  $ paybox bench serve &
  $ curl http://127.0.0.1:8820/                                 lists all routes
  $ curl -H content-type:application/json -d '{"scenarios":["happy-path"]}' http://127.0.0.1:8820/runs
  $ curl -X POST http://127.0.0.1:8820/rigs                   a gateway and a box for a program of your own

Clients for pytest, Robot Framework and labgrid are in test/scenarios/drive. Standard output has one line for programs:
PAYBOX-BENCH SERVE url=http://127.0.0.1:8820. SIGTERM and Ctrl-C end every run and rig; a second one ends at once.`;

const CHECK_EXAMPLES = `
  $ paybox bench check my.yaml                  before it is committed; bench run does the same check first
  $ paybox bench check *.yaml --set customers=50

It finds what the schema cannot: variables that are unknown or not made yet, counters that hide another one, wrong
expressions, and steps without effect. Exit codes: 0 all are right, 2 at least one is not`;

const BENCH_EXAMPLES = `
  $ paybox bench run happy-path expiry                          on an emulated box, minutes in a second
  $ paybox bench run rush --set customers=50 --seed 7           more customers, and the same choices again
  $ paybox bench run my.yaml --target process --report out      on programs of their own; open out/index.html
  $ paybox bench run my.yaml --gateway http://127.0.0.1:8800 --box http://127.0.0.1:8810
  $ paybox bench run my.yaml --gateway … --box … --probe 'rpicam-still -n -o -'
  $ paybox bench run test/scenarios/*.yaml --jobs 2 --shard 1/3 --fail-on-skip --retries 2     in CI

In GitHub Actions failures are marked at their lines, and the job's summary has the verdicts.

Standard output has lines for programs; a value with other characters than letters, digits and _.:/- is a JSON text:
  PAYBOX-BENCH START scenarios=N target=KIND seed=N
  PAYBOX-BENCH BEGIN number=N name=TEXT
  PAYBOX-BENCH RESULT outcome=passed|failed|flaky|skipped|missing name=TEXT tookMs=N [runs=N] [reason=TEXT] [where=FILE:LINE]
  PAYBOX-BENCH REPORT kind=junit|tap|json|gif|report path=FILE
  PAYBOX-BENCH END passed=N failed=N skipped=N missing=N [flaky=N] exit=CODE
Exit codes: 0 nothing failed, 1 something did, 2 usage or a wrong scenario, 3 a needed program or peer is missing`;
