import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, link, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, it, onTestFinished } from 'vitest';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { START_MS } from '../support/processes.ts';
import { cli } from '../support/program-code.ts';
import { endLater, OTHER_NODE, programWith } from './starter-fixture.ts';

beforeAll(() => link(process.execPath, OTHER_NODE));

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
