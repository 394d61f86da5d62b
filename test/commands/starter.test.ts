import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { link, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { eventually, temporaryFolder } from '../support/net.ts';
import { START_MS } from '../support/processes.ts';
import { cli, SOURCE_CLI } from '../support/program-code.ts';
import { endLater, OTHER_NODE, programWith } from './starter-fixture.ts';

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
