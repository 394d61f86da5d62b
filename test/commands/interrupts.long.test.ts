// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { existsSync, readFileSync } from 'node:fs';
import { link, readFile, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { programsIn, type Running, run } from '../support/processes.ts';
import { cliScript, SOURCE_CLI } from '../support/program-code.ts';

const START_TIMEOUT_MS = 60_000;
/** Keeps its program busy, as pictures do, so that a second signal is read late. */
const BUSY = `name: Busy
steps:
  - push: { amount: 1000, content: A }
  - repeat: { times: 900, steps: [{ expect: { qr: "\${push.qrCode}", for: 100ms } }] }\n`;

/** Another Node than the pinned one, to which it hands over: the same by another name. It goes with the code of the run. */
const OTHER_NODE = join(dirname(cliScript()), `node-${process.pid}`);
beforeAll(() => link(process.execPath, OTHER_NODE));

/** Starts a program in a group of its own, as a shell does. */
function grouped(folder: string, ...args: string[]): { running: Running; pid: number } {
  const running = run('setsid', [OTHER_NODE, SOURCE_CLI, ...args], { TMPDIR: folder });
  const { pid = 0 } = running.child;
  onTestFinished(() => killed(-pid));
  return { running, pid };
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is over, as it should be.
  }
}

/** Whether a signal waits for a program, which is stopped. */
function isPending(pid: number, signal: NodeJS.Signals): boolean {
  const [, pending = '0'] = /^ShdPnd:\t([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (BigInt(`0x${pending}`) & (1n << BigInt(constants.signals[signal] - 1))) !== 0n;
}

describe('one press of Ctrl-C, where the Node of the machine starts the pinned one', () => {
  it.each<[way: string, times: number, send: (pid: number) => void]>([
    ['to both programs, as a terminal sends it', 3, (pid) => process.kill(-pid, 'SIGINT')],
    ['to the first program, as `kill` does', 1, (pid) => process.kill(pid, 'SIGINT')],
    [
      'to the first and then to both, as `timeout` does',
      3,
      (pid) => {
        process.kill(pid, 'SIGINT');
        process.kill(-pid, 'SIGINT');
      },
    ],
  ])('ends a run with its reports: %s', async (_way, times, send) => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'busy.yaml'), BUSY);
    for (let n = 0; n < times; n += 1) {
      const junit = join(folder, `${n}.xml`);
      const args = ['bench', 'run', join(folder, 'busy.yaml'), '--junit', junit, '--report', join(folder, `${n}`)];
      const { running, pid } = grouped(folder, ...args);
      const log = () => readFile(join(folder, `${n}/bench.log`), 'utf8').catch(() => '');
      await eventually('the push', async () => (await log()).includes('push-confirmed') || undefined, START_TIMEOUT_MS);
      send(pid);
      expect([await running.stop('SIGCONT'), existsSync(junit)], running.output()).toEqual([130, true]);
    }
  });

  it('one press of Ctrl-C that reaches both programs is no second one, and a second one ends at once', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'long.yaml'), 'name: Long\nsteps:\n  - fault: { box: off }\n  - wait: 1h\n');
    const begun = async () => {
      const own = await temporaryFolder();
      const report = join(own, 'report');
      const args = ['bench', 'run', join(folder, 'long.yaml'), '--target', 'process', '--report', report];
      const { running, pid } = grouped(own, ...args);
      const log = () => readFile(join(report, 'logs/VVB000001-2.log'), 'utf8').catch(() => '');
      const isOff = async () => (await log()).includes('"event":"stopped"') && (await programsIn(own)).length === 1;
      await eventually('the box to be off', isOff, START_TIMEOUT_MS);
      // Stopped programs do not end when they are asked to, so the bench waits for them.
      const programs = await programsIn(own);
      for (const program of programs) process.kill(program, 'SIGSTOP');
      process.kill(pid, 'SIGSTOP');
      process.kill(-pid, 'SIGINT');
      const isEnding = () => programs.some((program) => isPending(program, 'SIGTERM')) || undefined;
      await eventually('the bench to end its programs', isEnding, START_TIMEOUT_MS);
      process.kill(pid, 'SIGCONT');
      await eventually('the late signal to be read', () => !isPending(pid, 'SIGINT') || undefined);
      return { running, pid, programs, report };
    };
    const once = await begun();
    for (const program of once.programs) process.kill(program, 'SIGCONT');
    expect([await once.running.stop('SIGCONT'), existsSync(join(once.report, 'index.html'))]).toEqual([130, true]);

    const twice = await begun();
    const again = () => {
      const { exitCode, signalCode } = twice.running.child;
      if (exitCode === null && signalCode === null) process.kill(-twice.pid, 'SIGINT');
      // A press may also come while it is exiting.
      return exitCode ?? signalCode ?? undefined;
    };
    expect([130, 'SIGINT']).toContain(await eventually('the end after more presses', again));
    expect(existsSync(join(twice.report, 'index.html'))).toBe(false);
    for (const program of twice.programs) killed(program);
  });
});

it('the pinned Node ends with the program that started it, however that ended', async () => {
  const folder = await temporaryFolder();
  const ready = join(folder, 'ready');
  const names = ['--http-port', '--mqtt-port', '--box-port'];
  const ports = (await Promise.all(names.map(async (name) => [name, String(await freePort())]))).flat();
  const { pid } = grouped(folder, 'up', '--no-open', '--data', join(folder, 'data'), '--ready-file', ready, ...ports);
  await eventually('ready', () => existsSync(ready), START_TIMEOUT_MS);
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
  expect(child).toBeGreaterThan(0);
  process.kill(pid, 'SIGKILL');
  // Nobody may be there who takes the exit code of an orphan.
  const isOver = () => !existsSync(`/proc/${child}`) || readFileSync(`/proc/${child}/status`, 'utf8').includes('\tZ');
  await eventually('the end of the other', isOver, START_TIMEOUT_MS);
});
