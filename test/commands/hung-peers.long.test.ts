import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startSilentServer } from '../e2e/shutdown.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { CLI, programsIn, type Running, readyFile, run, START_MS } from '../support/processes.ts';

/** 2 s are promised; the machine may be slow. It was 11 to 60 s while something was awaited without a deadline. */
const END_MS_MAX = 4_500;
const INTERRUPTED = 130;
const ACCOUNT = { bankAccount: '0123', bankCode: 'MB', userBankName: 'A' };
const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'A-secret-of-it-in-this-test' };
const PARTNER = { username: 'demo', password: 'demo-secret', accounts: ['0123'] };

/** A folder, and `paybox …` with its temporary files in it. */
async function setUp() {
  const folder = await temporaryFolder();
  const temporary = join(folder, 'tmp');
  await mkdir(temporary);
  const start = (...args: string[]) => run(CLI, args, { TMPDIR: temporary });
  return { folder, temporary, start };
}

/** Stops the programs that the bench has started, as if they hung. */
async function hang(temporary: string, programs: number): Promise<void> {
  const pids = await programsIn(temporary);
  expect(pids).toHaveLength(programs);
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
}

async function expectEnd(running: Running, code: number): Promise<void> {
  const sinceMs = performance.now();
  expect(await running.stop('SIGTERM'), running.output()).toBe(code);
  expect(performance.now() - sinceMs, running.output()).toBeLessThan(END_MS_MAX);
}

describe('on SIGTERM, while a gateway or a box does not answer,', () => {
  it('paybox bench run ends within 2 s with its reports', async () => {
    const { folder, start } = await setUp();
    const silent = await startSilentServer();
    const origin = `http://127.0.0.1:${silent.port}`;
    const junit = join(folder, 'junit.xml');
    const at = ['--target', 'at', '--gateway', origin, '--box', origin, '--junit', junit];
    const running = start('bench', 'run', 'happy-path', ...at);
    await eventually('its first request', () => silent.open() > 0, START_MS);
    await expectEnd(running, INTERRUPTED);
    expect(await readFile(junit, 'utf8')).toContain('ended by SIGTERM, before its verdict');
  });

  it('paybox bench run ends its own programs by force, and leaves nothing', async () => {
    const { folder, temporary, start } = await setUp();
    const scenario = join(folder, 'long.yaml');
    const [report, junit] = [join(folder, 'report'), join(folder, 'junit.xml')];
    // The push is under way when the programs hang, so the bench waits for its answer.
    await writeFile(
      scenario,
      'name: Long\nsteps:\n  - push: { amount: 1000, content: A }\n  - repeat: { times: 900, steps: [{ push: { amount: 1000, content: B } }] }\n',
    );
    const options = ['--target', 'process', '--report', report, '--junit', junit];
    const running = start('bench', 'run', scenario, ...options);
    const log = () => readFile(join(report, 'logs/gateway-1.log'), 'utf8').catch(() => '');
    await eventually('a push', async () => (await log()).includes('"event":"push-confirmed"'), START_MS);
    await hang(temporary, 2);
    await expectEnd(running, INTERRUPTED);
    expect(await readFile(junit, 'utf8')).toContain('ended by SIGTERM, before its verdict');
    expect([await programsIn(temporary), await readdir(temporary)]).toEqual([[], []]);
  });

  it('paybox bench serve ends its rigs by force, and leaves nothing', async () => {
    const { folder, temporary, start } = await setUp();
    const ready = join(folder, 'ready.json');
    const running = start('bench', 'serve', '--port', '0', '--ready-file', ready);
    const { url } = await readyFile<{ url: string }>(ready, running);
    const post = (path: string, body: object) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    expect((await post('/rigs', {})).status).toBe(201);
    await hang(temporary, 2);
    const step = post('/rigs/rig-1/steps', { push: { amount: 1_000, content: 'A' } }).catch(() => undefined);
    await expectEnd(running, 0);
    await step;
    expect(running.output()).toContain('"event":"stopped"');
    expect([await programsIn(temporary), await readdir(temporary)]).toEqual([[], []]);
  });

  it('paybox bench serve gives up a rig that is opening at it', async () => {
    const { folder, start } = await setUp();
    const ready = join(folder, 'ready.json');
    const running = start('bench', 'serve', '--port', '0', '--ready-file', ready);
    const { url } = await readyFile<{ url: string }>(ready, running);
    const silent = await startSilentServer();
    const origin = `http://127.0.0.1:${silent.port}`;
    const body = JSON.stringify({ target: 'at', gateway: origin, box: [origin] });
    const headers = { 'content-type': 'application/json' };
    const opening = fetch(`${url}/rigs`, { method: 'POST', headers, body }).catch(() => undefined);
    await eventually('its first request', () => silent.open() > 0, START_MS);
    await expectEnd(running, 0);
    await opening;
  });

  it('paybox judge service ends within 2 s with its report', async () => {
    const { folder, start } = await setUp();
    const silent = await startSilentServer();
    const password = join(folder, 'password');
    await writeFile(password, 'demo-secret\n');
    const junit = join(folder, 'junit.xml');
    const service = [
      '--service',
      `http://127.0.0.1:${silent.port}/vqr`,
      '--username',
      'demo',
      '--password-file',
      password,
    ];
    const account = [
      '--account',
      '0123',
      '--bank',
      'MB',
      '--holder',
      'A',
      '--box-code',
      'VVB000001',
      '--serial',
      'VVB900001',
    ];
    const running = start('judge', 'service', ...service, ...account, '--junit', junit);
    await eventually('its first request', () => silent.open() > 0 || running.child.exitCode !== null, START_MS);
    await expectEnd(running, INTERRUPTED);
    expect(await readFile(junit, 'utf8')).toContain('<testsuite');
  });

  it('paybox fleet ends within 2 s: before it has boxes, while they register, and in its load', async () => {
    const { folder, temporary, start } = await setUp();
    const [http, mqtt] = [await freePort(), await freePort()];
    const file = join(folder, 'gateway.yaml');
    const config = {
      ...{ http: { port: http }, mqtt: { embedded: { port: mqtt } }, dataDir: 'data', accounts: [ACCOUNT] },
      partners: [{ ...PARTNER, callback: { url: 'http://127.0.0.1:9/' } }],
      boxes: [{ ...BOX, account: ACCOUNT.bankAccount }],
    };
    await writeFile(file, JSON.stringify(config), { mode: 0o600 });
    const silent = await startSilentServer();
    const to = (port: number, broker: number) => [
      ...['--gateway', `http://127.0.0.1:${port}`, '--broker', `mqtt://127.0.0.1:${broker}`, '--identities', file],
    ];
    const load = ['--boxes', '1', '--seconds', '600', '--rate', '10'];
    const without = start('fleet', ...load, ...to(silent.port, mqtt));
    await eventually('its first request', () => silent.open() > 0, START_MS);
    await expectEnd(without, INTERRUPTED);
    expect(without.output()).toContain('interrupted, not judged');

    const ready = join(folder, 'ready.json');
    const gateway = start('gateway', '--config', file, '--ready-file', ready);
    await readyFile(ready, gateway);
    const before = silent.open();
    const registering = start('fleet', ...load, ...to(http, silent.port));
    await eventually('a box that dials', () => silent.open() > before, START_MS);
    await expectEnd(registering, INTERRUPTED);

    const selling = start('fleet', ...load, ...to(http, mqtt));
    await eventually('a push', () => /[1-9]\d* SUCCESS/.test(selling.output()), START_MS);
    gateway.child.kill('SIGSTOP');
    await expectEnd(selling, INTERRUPTED);
    expect(selling.output()).toMatch(/^answers SUCCESS +[1-9]/m);
    expect(selling.output()).toContain('interrupted, not judged');
    expect(await readdir(temporary)).toEqual([]);
  });

  it('paybox fleet ends its own gateway by force, and leaves nothing', async () => {
    const { temporary, start } = await setUp();
    const running = start('fleet', '--light', '--boxes', '3', '--seconds', '600', '--rate', '10');
    await eventually('a push', () => /[1-9]\d* SUCCESS/.test(running.output()), START_MS);
    await hang(temporary, 1);
    await expectEnd(running, INTERRUPTED);
    expect([await programsIn(temporary), await readdir(temporary)]).toEqual([[], []]);
  });
});
