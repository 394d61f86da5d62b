import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, link, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { START_MS } from '../support/processes.ts';
import { cli, cliScript, SOURCE_CLI } from '../support/program-code.ts';

/** Another Node than the pinned one, to which a checkout hands over: the same by another name. It goes with the code of the run. */
const OTHER_NODE = join(dirname(cliScript()), `node-starter-${process.pid}`);
beforeAll(() => link(process.execPath, OTHER_NODE));

/** What a test runner does: starts all these commands, and is killed later. The first word of each says how. */
const STARTER = `
  import { spawn } from 'node:child_process';
  for (const [how, ...command] of JSON.parse(process.argv[2])) {
    spawn(command[0], command.slice(1), { stdio: 'ignore', shell: how === 'shell' });
  }
  setInterval(() => undefined, 1000);`;

/** Whether the program of this ready file answers. */
async function answers(file: string): Promise<boolean> {
  const { url } = JSON.parse(await readFile(file, 'utf8')) as { url: string };
  return (await fetch(url).catch(() => undefined)) !== undefined;
}

/** Ends a program of a ready file by its own id at the end of the test. */
function endLater(pid: () => number | undefined): void {
  onTestFinished(() => {
    const id = pid();
    try {
      if (id !== undefined) process.kill(id, 'SIGKILL');
    } catch {
      // It is over, as it should be.
    }
  });
}

/** The program that has this text among its arguments, and is no shell or runner around it. */
function programWith(text: string): number | undefined {
  for (const name of readdirSync('/proc').filter((it) => /^\d+$/.test(it))) {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (words[0]?.includes('node') && words.includes(text)) return Number(name);
    } catch {
      // It has ended meanwhile.
    }
  }
  return undefined;
}

it('ends with the program that started it, also by a shell, and stays as a job, in its own session, and where asked to', async () => {
  const folder = await temporaryFolder();
  const ready = (name: string) => join(folder, `${name}.json`);
  const serve = (name: string, ...more: string[]) => [
    ...['bench', 'serve', '--port', '0', '--ready-file', ready(name), '--report', join(folder, name), ...more],
  ];
  // As a step of CI has it: a script with a job.
  await writeFile(join(folder, 'step'), `${[cli(), ...serve('job')].join(' ')} &\nwait\n`);
  const ending = {
    child: ['plain', cli(), ...serve('child')],
    shell: ['shell', [cli(), ...serve('shell')].join(' '), '; exit'],
    checkout: ['plain', OTHER_NODE, SOURCE_CLI, ...serve('checkout')],
  };
  const staying = {
    asked: ['plain', cli(), ...serve('asked', '--detach')],
    session: ['plain', 'setsid', cli(), ...serve('session')],
    job: ['plain', 'sh', join(folder, 'step')],
  };
  await writeFile(join(folder, 'starter.mjs'), STARTER);
  const started = async (commands: Readonly<Record<string, readonly string[]>>) => {
    const args = [join(folder, 'starter.mjs'), JSON.stringify(Object.values(commands))];
    const starter = spawn(process.execPath, args, { stdio: 'ignore' });
    onTestFinished(() => void starter.kill('SIGKILL'));
    for (const name of Object.keys(commands)) {
      let pid: number | undefined;
      endLater(() => pid);
      await eventually(`${name} to be ready`, () => existsSync(ready(name)) || undefined, START_MS);
      pid = programWith(ready(name));
      expect(await answers(ready(name))).toBe(true);
    }
    return starter;
  };
  const ended = (name: string) => eventually(`${name} to end`, async () => !(await answers(ready(name))) || undefined);
  const starter = await started({ ...ending, ...staying });
  starter.kill('SIGKILL');
  for (const name of Object.keys(ending)) await ended(name);
  // Another one has looked and ended since, so these have looked too.
  (await started({ later: ['plain', cli(), ...serve('later')] })).kill('SIGKILL');
  await ended('later');
  for (const name of Object.keys(staying)) expect([name, await answers(ready(name))]).toEqual([name, true]);
});

/** A project that has this package among its own. */
async function project(): Promise<string> {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  await symlink(cli(), join(folder, 'node_modules/.bin/paybox'));
  return folder;
}

it.each(['SIGTERM', 'SIGKILL'] as const)('ends in order, and frees its ports, when npx gets %s', async (signal) => {
  const folder = await project();
  const ports = await freePorts(3);
  const at = ['--http-port', '--mqtt-port', '--box-port'].flatMap((name, index) => [name, `${ports[index]}`]);
  const [data, ready] = [join(folder, 'data'), join(folder, 'ready')];
  await mkdir(data);
  await chmod(data, 0o700);
  const args = ['--no', '--', 'paybox', 'up', '--no-open', '--data', data, '--ready-file', ready, ...at];
  const npx: ChildProcess = spawn('npx', args, { cwd: folder, stdio: 'ignore' });
  let pid: number | undefined;
  endLater(() => pid);
  onTestFinished(() => void npx.kill('SIGKILL'));
  await eventually('ready', () => existsSync(ready) || undefined, START_MS);
  pid = programWith(ready);
  npx.kill(signal);
  const log = () => readFile(join(data, 'paybox.log'), 'utf8');
  await eventually('its orderly end', async () => (await log()).includes(' stopped signal=SIGTERM ') || undefined);
  const isFree = async (port: number) =>
    (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)) === undefined;
  await eventually('free ports', async () => (await Promise.all(ports.map(isFree))).every(Boolean) || undefined);
});
