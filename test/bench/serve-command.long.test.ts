import { readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eachEnds } from '../support/command-lines.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { CLI, payboxToEnd, programsIn, type Running, readyFile, run } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { testServer } from './serve.ts';
import { sharedTarget } from './setup.ts';

const DRIVE = resolve(import.meta.dirname, '../scenarios/drive');
const TOKEN = 'a-token-of-the-test-0123456789';

/** A control server as a program, which keeps its temporary folders where they can be counted. */
async function serving(...options: string[]) {
  const folder = await temporaryFolder();
  const temporary = join(folder, 'tmp');
  await mkdir(temporary);
  const ready = join(folder, 'ready.json');
  const report = join(folder, 'report');
  const args = ['bench', 'serve', '--port', '0', '--ready-file', ready, '--report', report, ...options];
  const program = run(CLI, args, { TMPDIR: temporary });
  const { url } = await readyFile<{ url: string }>(ready, program);
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  return {
    program,
    url,
    post,
    report,
    temporary,
    left: () => readdir(temporary),
  };
}

/** Where a gateway that the bench has started answers, from its log. */
function gatewayOf(log: string): Promise<string> {
  return eventually('the gateway is ready', async () => {
    const text = await readFile(log, 'utf8').catch(() => '');
    return /"event":"ready","baseUrl":"([^"]+)"/.exec(text)?.[1];
  });
}

const isGone = (url: string) =>
  fetch(url).then(
    () => false,
    () => true,
  );

describe('paybox bench serve', () => {
  it('paybox bench serve ends every run and rig on SIGINT, and leaves nothing', async () => {
    const { program, url, post, report, left } = await serving();
    await eventually('its line', () => program.output().includes(`PAYBOX-BENCH SERVE url=${url}\n`));
    const rig = (await (await post('/rigs', {})).json()) as {
      gateway: { origin: string };
      boxes: { url: string }[];
    };
    const endless = 'name: Endless\nsteps:\n  - wait: 1h\n';
    await post('/runs', { scenarios: [{ yaml: endless }, 'happy-path'], target: 'process' });
    const running = await gatewayOf(join(report, 'run-1/logs/gateway-1.log'));
    expect(await program.stop('SIGINT')).toBe(130);
    expect(program.output()).toMatch(/"event":"stopped"/);
    expect(await left()).toEqual([]);
    for (const origin of [url, rig.gateway.origin, rig.boxes[0]?.url ?? '', running]) {
      expect({ origin, gone: await isGone(origin) }).toEqual({ origin, gone: true });
    }
    // In order, not by force.
    expect(await readFile(join(report, 'rig-1/logs/gateway-1.log'), 'utf8')).toMatch(/"event":"stopped"/);
  });

  it('paybox bench serve gives up a rig that is starting', async () => {
    const { program, post, report, left } = await serving();
    const opening = post('/rigs', { boxes: 2 }).catch(() => undefined);
    const gateway = await gatewayOf(join(report, 'rig-1/logs/gateway-1.log'));
    expect(await program.stop('SIGINT')).toBe(130);
    expect(program.output()).toContain('"event":"stopped"');
    expect(await left()).toEqual([]);
    expect(await isGone(gateway)).toBe(true);
    await opening;
  });

  it('paybox bench serve ends at once on the second Ctrl-C, with all that it has started', async () => {
    const { program, post, temporary } = await serving();
    const opened = await post('/rigs', {});
    expect({ status: opened.status, text: await opened.text() }).toMatchObject({ status: 201 });
    const programs = await programsIn(temporary);
    expect(programs).toHaveLength(2);
    onTestFinished(async () => {
      for (const pid of await programsIn(temporary)) process.kill(pid, 'SIGKILL');
    });
    // Stopped programs do not end when they are asked to, so the server waits for them.
    for (const pid of programs) process.kill(pid, 'SIGSTOP');
    program.child.kill('SIGINT');
    await eventually('it is stopping', () => program.output().includes('"event":"stopping"'));
    const again = () => {
      const { exitCode, signalCode } = program.child;
      // What a busy program reads together is one press. A press may also come while it is exiting.
      if (exitCode === null && signalCode === null) program.child.kill('SIGINT');
      return exitCode ?? signalCode ?? undefined;
    };
    expect([130, 'SIGINT']).toContain(await eventually('the end after more presses', again));
    expect(program.output()).not.toContain('"event":"stopped"');
    for (const pid of programs) process.kill(pid, 'SIGCONT');
    await eventually('its programs have ended', async () => (await programsIn(temporary)).length === 0);
  });

  it('paybox bench serve answers other machines with the token, accepts scenarios and probes of its own, and ends on SIGTERM', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'token'), `${TOKEN}\n`);
    await writeFile(join(folder, 'mine.yaml'), 'name: Mine\nsteps:\n  - expect: { qr: none }\n');
    const own = ['--scenarios', folder, '--probe', `file:${folder}/none.png`, '--token-file', join(folder, 'token')];
    const { program, url, post } = await serving('--host', '0.0.0.0', ...own);
    const at = url.replace('0.0.0.0', '127.0.0.1');
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await fetch(`${at}/runs`)).status).toBe(401);
    expect(await (await fetch(`${at}/scenarios`, { headers })).text()).toContain('"name":"mine","title":"Mine"');
    const probe = `file:${folder}/none.png`;
    expect((await post('/runs', { scenarios: ['mine'], probe }, headers)).status).toBe(201);
    const over = await eventually('it is over', async () => {
      const told = (await (await fetch(`${at}/runs/run-1`, { headers })).json()) as { state: string; reason: string };
      return told.state === 'failed' && told;
    });
    expect(over.reason).toMatch(/ENOENT.*none\.png/);
    expect(await program.stop('SIGTERM')).toBe(0);
  });

  eachEnds(
    [
      [
        2,
        'an address that others reach',
        'bench serve --port 0 --host 0.0.0.0',
        /--host 0\.0\.0\.0: others can reach it[\s\S]*--token-file/,
      ],
      [
        2,
        'a token that can be guessed',
        'bench serve --port 0 --token-file short',
        '--token-file: expected at least 16 characters',
      ],
      [2, 'a port that is none', 'bench serve --port 0 --port 70000', 'a port is a whole number'],
      [
        2,
        'a folder that there is not',
        'bench serve --port 0 --scenarios none',
        '--scenarios none cannot be read: ENOENT',
      ],
      [
        2,
        'a ready file in no folder',
        'bench serve --port 0 --ready-file none/ready',
        /--ready-file \S*none\/ready cannot be written/,
      ],
    ],
    { short: 'secret\n' },
  );

  it('paybox bench serve ends with 2 for a port in use', async () => {
    const used = createServer();
    await new Promise<void>((done) => used.listen(0, '127.0.0.1', done));
    onTestFinished(() => void used.close());
    const { port } = used.address() as AddressInfo;
    const { code, output } = await payboxToEnd('bench', 'serve', '--port', `${port}`);
    expect([code, output]).toEqual([2, expect.stringMatching(/port \d+ of --port is in use\n {2}stop what uses it/)]);
  });
});

const pytest = without(PROGRAMS.pytest);
const python = without(PROGRAMS.python);

describe('the examples', () => {
  it.skipIf(pytest.missing)(`the examples of pytest pass, with JUnit and evidence${pytest.note}`, async () => {
    const folder = await temporaryFolder();
    const junit = join(folder, 'shop.xml');
    const reports = join(folder, 'kept', 'reports');
    const env = { PAYBOX: CLI, PAYBOX_REPORTS: reports, PYTHONDONTWRITEBYTECODE: '1' };
    const program = run('pytest-3', ['-p', 'no:cacheprovider', `--junitxml=${junit}`, DRIVE], env);
    expect(await toEnd(program), program.output()).toBe(0);
    expect(await readFile(junit, 'utf8')).toMatch(/errors="0" failures="0" skipped="0" tests="6"/);
    expect(await readFile(join(reports, 'test_an_order_is_paid.html'), 'utf8')).toContain('data:image/png;base64,');
  });

  it.skipIf(python.missing)(
    `the example of Robot Framework calls keywords that exist and drive a box${python.note}`,
    async () => {
      const kind = await sharedTarget();
      const { origin } = await testServer({ kind: () => kind });
      const script = [
        'import paybox_robot, sys',
        'robot = paybox_robot.paybox_robot(sys.argv[1])',
        'robot.open_rig()',
        'order = robot.push_order(50000, "DH1")',
        'robot.box_should(state="showing", qr=order["qrCode"], within="5s")',
        'robot.pay_order(50000, "DH1")',
        'robot.box_should(state="paid", qr="none")',
        'robot.press_key("dismiss")',
        'robot.scenario_should_pass("cancelled-order")',
        'robot.end_rig()',
        'print(" ".join(name for name in dir(robot) if not name.startswith("_")))',
      ];
      const program = run('python3', ['-c', script.join('\n'), origin], {
        PYTHONPATH: DRIVE,
        PYTHONDONTWRITEBYTECODE: '1',
      });
      expect(await toEnd(program), program.output()).toBe(0);
      const keywords = program
        .output()
        .trim()
        .split(' ')
        .map((name) => name.replaceAll('_', ' '));
      const text = ['paybox.resource', 'shop.robot'].map((file) => readFileSync(join(DRIVE, file), 'utf8')).join('\n');
      const defined = [...text.matchAll(/^[A-Z].*$/gm)].map(([line]) => line.toLowerCase());
      const called = [...text.matchAll(/^ {4}(?:\$\{\w+\}= {4})?([A-Z][a-z]+(?: [A-Z]\w+)+)/gm)].map(
        ([, name = '']) => name,
      );
      expect(called).toContain('Box Should');
      for (const name of called) expect([...keywords, ...defined]).toContain(name.toLowerCase());
    },
  );

  it.skipIf(python.missing)(`the example of labgrid is Python${python.note}`, async () => {
    const file = join(DRIVE, 'paybox_labgrid.py');
    const program = run('python3', ['-c', 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")', file]);
    expect(await toEnd(program), program.output()).toBe(0);
  });
});

/** Waits for the end of a program that ends by itself. */
function toEnd({ child }: Running): Promise<number> {
  if (child.exitCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((done) => child.once('close', (code) => done(code ?? -1)));
}
