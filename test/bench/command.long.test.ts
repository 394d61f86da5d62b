// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PANEL_NAMES } from '../../src/bench/panels/emulator.ts';
import { eachEnds } from '../support/command-lines.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { CLI, paybox, payboxToEnd, programsIn, readyFile, run } from '../support/processes.ts';

const NOWHERE = 'http://127.0.0.1:9';
const benchRun = (...args: string[]) => ['bench', 'run', ...args];
const PASSES = 'name: It passes\nsteps:\n  - expect: { screen: idle }\n';
const FAILS = 'name: It fails\nsteps:\n  - expect: { state: paid, within: 1s }\n';

async function files(contents: Record<string, string>): Promise<{ folder: string; path(name: string): string }> {
  const folder = await temporaryFolder();
  for (const [name, text] of Object.entries(contents)) await writeFile(join(folder, name), text);
  return { folder, path: (name) => join(folder, name) };
}

const markers = (output: string) => output.split('\n').filter((line) => line.startsWith('PAYBOX-BENCH'));
/** Without what differs from run to run. */
const verdicts = (output: string) => markers(output).map((line) => line.replace(/ (tookMs|seed|target)=\S+/g, ''));

describe('paybox bench run', () => {
  it('paybox bench run ends with 1 when something is not as expected, and writes every report', async () => {
    const { path, folder } = await files({ 'a.yaml': PASSES, 'b.yaml': FAILS });
    const reports = ['--junit', path('out/j.xml'), '--tap', path('out/t.tap'), '--report', path('report')];
    const { code, output } = await payboxToEnd(...benchRun(path('a.yaml'), path('b.yaml'), '--seed', '5', ...reports));
    expect(output).toMatch(/^PAYBOX-BENCH START scenarios=2 target=emulated seed=5$/m);
    expect(verdicts(output)).toEqual([
      'PAYBOX-BENCH START scenarios=2',
      'PAYBOX-BENCH BEGIN number=1 name="It passes"',
      'PAYBOX-BENCH RESULT outcome=passed name="It passes"',
      'PAYBOX-BENCH BEGIN number=2 name="It fails"',
      'PAYBOX-BENCH RESULT outcome=failed name="It fails" reason="VVB000001: state: expected \\"paid\\", is \\"idle\\", after 1s" where=b.yaml:3',
      `PAYBOX-BENCH REPORT kind=junit path=${path('out/j.xml')}`,
      `PAYBOX-BENCH REPORT kind=tap path=${path('out/t.tap')}`,
      `PAYBOX-BENCH REPORT kind=report path=${path('report/index.html')}`,
      'PAYBOX-BENCH END passed=1 failed=1 skipped=0 missing=0 exit=1',
    ]);
    expect(code).toBe(1);
    expect(await readFile(path('out/j.xml'), 'utf8')).toContain('failures="1"');
    expect(await readFile(path('out/t.tap'), 'utf8')).toMatch(/^ok 1 - It passes\nnot ok 2 - It fails$/m);
    expect(await readFile(path('report/index.html'), 'utf8')).toContain('It fails');
    expect((await readdir(join(folder, 'report'))).sort()).toEqual(['bench.log', 'index.html']);
  });

  it('paybox bench run gives the same verdicts on an emulated box and on real programs', async () => {
    const source = 'name: Both\nsteps:\n  - push: { amount: 1000, content: A }\n  - expect: { qr: "${push.qrCode}" }\n';
    const { path } = await files({ 'both.yaml': source, 'fails.yaml': FAILS });
    const run = (...target: string[]) => payboxToEnd(...benchRun(path('both.yaml'), path('fails.yaml'), ...target));
    const emulated = await run();
    const programs = await run('--target', 'process', '--transport', 'http');
    expect(verdicts(programs.output)).toEqual(verdicts(emulated.output));
    expect([emulated.code, programs.code]).toEqual([1, 1]);
    expect(verdicts(emulated.output).at(-1)).toBe('PAYBOX-BENCH END passed=1 failed=1 skipped=0 missing=0 exit=1');
  });

  it('paybox bench run cuts the power of a program, which continues where it was', async () => {
    const { code, output } = await payboxToEnd('bench', 'run', 'power-cut', '--target', 'process');
    expect(verdicts(output).at(-1)).toBe('PAYBOX-BENCH END passed=1 failed=0 skipped=0 missing=0 exit=0');
    expect(code).toBe(0);
  });

  it('paybox bench run judges programs that already run, and skips what it cannot do there', async () => {
    const { path, folder } = await files({});
    const [http, mqtt, box] = [await freePort(), await freePort(), await freePort()];
    const at = ['--gateway', `http://127.0.0.1:${http}`, '--box', `http://127.0.0.1:${box}`];
    const ports = ['--http-port', `${http}`, '--mqtt-port', `${mqtt}`, '--box-port', `${box}`];
    const up = paybox('up', '--data', join(folder, 'up'), ...ports, '--no-open', '--ready-file', path('ready.json'));
    await readyFile(path('ready.json'), up);
    const judged = await payboxToEnd('bench', 'run', 'cancelled-order', 'power-cut', 'fleet', ...at);
    expect(judged.output).toContain('target at cannot turn boxes off and on, kill programs');
    expect(judged.output).toContain('needs 2 boxes, target at has 1');
    expect(markers(judged.output).at(-1)).toBe('PAYBOX-BENCH END passed=1 failed=0 skipped=2 missing=0 exit=0');
    expect(judged.code).toBe(0);
  });

  it('paybox bench run says that nothing was judged when all was skipped, and fails then with the option for it', async () => {
    const { path } = await files({
      'kills.yaml': 'name: Kills\nsteps: [{ fault: { box: killed } }]\n',
      'a.yaml': PASSES,
    });
    const skipped = await payboxToEnd(...benchRun(path('kills.yaml')));
    expect(skipped.output).toMatch(/^nothing was judged: 1 skipped; target emulated, seed \d+$/m);
    expect(skipped.code).toBe(0);
    for (const also of [[], [path('a.yaml')]]) {
      const strict = await payboxToEnd(...benchRun(path('kills.yaml'), ...also, '--fail-on-skip'));
      expect(markers(strict.output).at(-1)).toContain(`passed=${also.length} failed=0 skipped=1 missing=0 exit=1`);
      expect(strict.code).toBe(1);
    }
  });

  it('paybox bench run runs scenarios in parallel on targets of their own, in order, and writes what was asked for', async () => {
    const names = ['1.yaml', '2.yaml', '3.yaml'];
    const sources = names.map((name, index) => [name, PASSES.replace('It passes', `Number ${index + 1}`)]);
    const { path } = await files({ ...Object.fromEntries(sources), 'fails.yaml': FAILS });
    const [json, gif, summary] = [path('out/v.json'), path('out/s.gif'), path('summary.md')];
    const args = benchRun(...names.map(path), path('fails.yaml'), '--jobs', '3', '--retries', '1', '--seed', '5');
    const running = run(CLI, [...args, '--grep', '/Number [23]|fails/', '--json', json, '--gif', gif], {
      GITHUB_ACTIONS: 'true',
      GITHUB_WORKSPACE: path('.'),
      GITHUB_STEP_SUMMARY: summary,
    });
    await once(running.child, 'close');
    const output = running.output();
    expect(verdicts(output).filter((line) => !/REPORT/.test(line))).toEqual([
      'PAYBOX-BENCH START scenarios=3',
      'PAYBOX-BENCH BEGIN number=1 name="Number 2"',
      'PAYBOX-BENCH RESULT outcome=passed name="Number 2"',
      'PAYBOX-BENCH BEGIN number=2 name="Number 3"',
      'PAYBOX-BENCH RESULT outcome=passed name="Number 3"',
      'PAYBOX-BENCH BEGIN number=3 name="It fails"',
      expect.stringMatching(
        /^PAYBOX-BENCH RESULT outcome=failed name="It fails" runs=2 reason=.* where=fails\.yaml:3$/,
      ),
      'PAYBOX-BENCH END passed=2 failed=1 skipped=0 missing=0 exit=1',
    ]);
    expect(output).toMatch(/^::error file=fails\.yaml,line=3,title=It fails%3A failed::VVB000001: state/m);
    expect(await readFile(summary, 'utf8')).toMatch(/^### paybox bench: 2 passed, 1 failed$/m);
    expect(JSON.parse(await readFile(json, 'utf8'))).toMatchObject({ seed: 5, passed: 2, failed: 1, flaky: 0 });
    expect((await readFile(gif)).subarray(0, 6).toString()).toBe('GIF89a');
  });

  eachEnds(
    [
      [
        2,
        'a pattern that nothing matches',
        'bench run ok.yaml --grep moon',
        '--grep moon: matches no file and no name',
      ],
      [2, 'a pattern that is none', 'bench run ok.yaml --grep (', 'expected a regular expression'],
      [
        2,
        'a shard beyond the last',
        'bench run ok.yaml --shard 4/3',
        'expected a part and the number of parts, as 1/3',
      ],
      [
        0,
        'a shard that is empty',
        'bench run ok.yaml --shard 2/2 --fail-on-skip',
        /shard 2\/2 is empty: its scenarios are in the other parts[\s\S]*END passed=0 failed=0 skipped=0 missing=0 exit=0/,
      ],
      [
        0,
        'a scenario that expects nothing',
        'bench run ok.yaml',
        'warning: ok.yaml: nothing expected: only the answers',
      ],
      [
        2,
        'jobs on one running box',
        `bench run ok.yaml --jobs 2 --gateway ${NOWHERE} --box ${NOWHERE}`,
        '--jobs belongs to --target emulated and process',
      ],
      [2, 'JSON that cannot be written', 'bench run ok.yaml --json .', /^paybox: --json \. cannot be /m],
      [2, 'JUnit that cannot be written', 'bench run ok.yaml --junit .', /^paybox: --junit \. cannot be /m],
      [2, 'TAP that cannot be written', 'bench run ok.yaml --tap .', /^paybox: --tap \. cannot be /m],
      // If it were written, the rows below would find no scenario there.
      [2, 'a report that is a file', 'bench run ok.yaml --report ok.yaml', /^paybox: --report ok\.yaml cannot be /m],
      [2, 'a scenario that is wrong', 'bench run x.yaml', 'x.yaml:2:11: steps.0: unknown key puch'],
      [
        2,
        'a name that there is not',
        'bench run happy',
        'happy: expected a file that ends in .yaml, or the name of a scenario that is shipped; did you mean happy-path?',
      ],
      [
        2,
        'a target that there is not',
        'bench run ok.yaml --target moon',
        '--target moon: expected emulated, process or at',
      ],
      [
        2,
        'a box without a gateway',
        `bench run ok.yaml --box ${NOWHERE}`,
        '--gateway and --box belong to --target at, not to emulated',
      ],
      [
        2,
        'a gateway without a box',
        `bench run ok.yaml --gateway ${NOWHERE}`,
        "--box is missing: expected the origin of a box's pages",
      ],
      [2, 'a seed in words', 'bench run ok.yaml --seed many', 'expected a whole number from 1 to'],
      [
        2,
        'a probe that there is not',
        'bench run ok.yaml --probe framebuffer:x',
        'expected framebuffer:PATH:WIDTHxHEIGHTx16',
      ],
      [
        2,
        'a panel that there is not',
        'bench run ok.yaml --panel lcd',
        `--panel lcd: expected one of ${PANEL_NAMES.join(', ')}`,
      ],
      [2, 'panels that no box has', 'bench run ok.yaml --probe panel', '--probe panel: the boxes have no panel'],
      [
        2,
        'panels for boxes that run already',
        'bench run ok.yaml --panel dqr --target at',
        '--panel belongs to --target emulated and process',
      ],
      [
        2,
        'an admin token on an open way',
        `bench run ok.yaml --gateway http://192.0.2.1 --box ${NOWHERE} --admin-token-file token`,
        'the admin token would be sent where others can read it',
      ],
      [
        2,
        'a variable that there is not, before anything starts',
        'bench run slip.yaml ok.yaml',
        /^paybox: slip\.yaml:2:40: steps\.0\.push\.content: \$\{uniqe\} is not known here; did you mean unique\?$/m,
      ],
      [
        2,
        'several wrong scenarios that are checked',
        'bench check slip.yaml magic.yaml again.yaml',
        /^warning: magic\.yaml:1:\d+: .*FAULT PUSH TWICE\?\npaybox: slip\.yaml:2:40: .*\nagain\.yaml:1:\d+: .*\$\{n\}/,
      ],
      [
        0,
        'right scenarios that are checked',
        'bench check ok.yaml happy-path',
        /^ok\.yaml: ok, 1 step, 1 box\nhappy-path\.yaml: ok, 7/m,
      ],
      [2, 'a variable to set that nothing uses', 'bench check rush --set custmers=3', 'did you mean customers?'],
      [2, 'a variable without a value', 'bench check rush --set customers', '--set customers: expected NAME=VALUE'],
      [
        0,
        'boxes that nothing uses',
        'bench check ok.yaml --boxes 50',
        'warning: ok.yaml: of 50 boxes only the first is used: put the steps in `for each box`',
      ],
      [2, 'nothing to run', 'bench run', "missing required argument 'file'"],
      [
        3,
        'a gateway that does not answer',
        `bench run happy-path --gateway ${NOWHERE} --box ${NOWHERE}`,
        /nothing answers at \S+ \(ECONNREFUSED\)[\s\S]*END passed=0 failed=0 skipped=0 missing=1 exit=3/,
      ],
      [0, 'the list of scenarios', 'bench list', /^happy-path +An order is paid$/m],
      [
        0,
        'the list of what they need',
        'bench list --json',
        /^\{"scenario":"power-cut",.*"needs":\["turn boxes off and on","kill programs"\]\}$/m,
      ],
    ],
    {
      'x.yaml': 'name: x\nsteps: [{ puch: {} }]',
      'slip.yaml': 'name: x\nsteps: [{ push: { amount: 1, content: "${uniqe}" } }]',
      'magic.yaml': '{ name: A, steps: [{ pay: { amount: 1, content: FAULT PUSH TWIC } }] }',
      'again.yaml':
        '{ name: A, steps: [{ repeat: { times: 2, steps: [{ repeat: { times: 2, steps: [{ wait: 1s }] } }] } }] }',
      'ok.yaml': '{ name: A, steps: [{ wait: 1s }] }',
      token: 'a-token-of-this-test\n',
    },
  );

  it('paybox bench run ends its programs on Ctrl-C, and with 130', async () => {
    const { path, folder } = await files({
      'long.yaml': 'name: Long\nsteps:\n  - push: { amount: 1000, content: A }\n  - wait: 1h\n',
    });
    const [report, junit, tap] = [join(folder, 'report'), join(folder, 'junit.xml'), join(folder, 'out.tap')];
    const reports = ['--report', report, '--junit', junit, '--tap', tap];
    const running = paybox('bench', 'run', path('long.yaml'), 'expiry', '--target', 'process', ...reports);
    const log = () => readFile(join(report, 'logs/gateway-1.log'), 'utf8').catch(() => '');
    await expect.poll(log, { timeout: 60_000 }).toMatch(/"event":"push-confirmed"/);
    expect(await running.stop('SIGINT')).toBe(130);
    expect(await log()).toMatch(/"event":"stopped"/);
    const reason = 'reason="ended by SIGINT, before its verdict"';
    expect(running.output()).toMatch(new RegExp(`RESULT outcome=missing name=Long tookMs=[1-9]\\d* ${reason}`));
    expect(running.output()).toContain('PAYBOX-BENCH END passed=0 failed=0 skipped=0 missing=2 exit=130');
    expect(await readFile(junit, 'utf8')).toContain('tests="2" failures="0" errors="2"');
    expect(await readFile(tap, 'utf8')).toMatch(/^1\.\.2\nnot ok 1 - Long\n[\s\S]*^not ok 2 - /m);
  });
});

describe('paybox bench run that is told twice to end', () => {
  it('paybox bench run ends at once on a second signal, and leaves no program behind', async () => {
    const { path, folder } = await files({
      'long.yaml': 'name: Long\nsteps:\n  - push: { amount: 1000, content: A }\n  - wait: 1h\n',
    });
    const args = ['bench', 'run', path('long.yaml'), '--target', 'process', '--report', path('report')];
    const running = run(CLI, args, { TMPDIR: folder });
    const log = () => readFile(path('report/logs/gateway-1.log'), 'utf8').catch(() => '');
    await expect.poll(log, { timeout: 60_000 }).toMatch(/"event":"push-confirmed"/);
    onTestFinished(async () => {
      for (const pid of await programsIn(folder)) process.kill(pid, 'SIGKILL');
    });
    // Stopped programs do not end when they are asked to, so the bench waits for them.
    for (const pid of await programsIn(folder)) process.kill(pid, 'SIGSTOP');
    running.child.kill('SIGINT');
    await expect.poll(async () => (await programsIn(folder)).some(isAskedToEnd), { timeout: 60_000 }).toBe(true);
    expect(running.child.exitCode).toBeNull();
    expect(await running.stop('SIGINT')).toBe(130);
    expect(await programsIn(folder)).not.toEqual([]);
    for (const pid of await programsIn(folder)) process.kill(pid, 'SIGCONT');
    await expect.poll(() => programsIn(folder), { timeout: 60_000 }).toEqual([]);
  });
});

/** Whether SIGTERM waits for a program that is stopped. */
function isAskedToEnd(pid: number): boolean {
  const [, pending = '0'] = /^ShdPnd:\t([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (BigInt(`0x${pending}`) & (1n << BigInt(constants.signals.SIGTERM - 1))) !== 0n;
}
