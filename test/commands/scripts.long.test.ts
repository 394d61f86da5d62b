import { copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { atRate } from '../benchmarks/load.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const HANDING_OVER = ['src/lib/own-node.js', 'src/lib/node-version.js', 'src/lib/starter.js'];
const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const OURS = Object.entries(scripts).filter(([, command]) => /^node scripts\/run\.js (scripts|test)\//.test(command));

async function ended(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const running = run(command, args, env);
  return { code: await running.ended, output: running.output() };
}
const runScript = (command: string, ...args: string[]) =>
  ended(process.execPath, [
    ...command
      .split(' ')
      .slice(1)
      .map((it) => resolve(ROOT, it)),
    ...args,
  ]);

it('has scripts that are all run by way of the launcher', () => {
  expect(OURS.map(([name]) => name)).toEqual(expect.arrayContaining(['bench', 'soak', 'deb', 'oci', 'release']));
  expect(
    Object.values(scripts).filter((it) => /^node (?!scripts\/run\.js ).*\.ts|^(vitest|tsc|biome)/.test(it)),
  ).toEqual([]);
});

it.each(OURS)('npm run %s answers an unknown option with its usage, and no stack', async (name, command) => {
  const { code, output } = await runScript(command, '--bogus');
  expect([code, output]).toEqual([2, expect.stringContaining(`usage: npm run ${name}`)]);
  expect(output).toContain("Unknown option '--bogus'");
  expect(output).not.toMatch(/\n\s+at /);
});

it.each(['bench', 'soak', 'deb'])('npm run %s -- --help prints its usage', async (name) => {
  const { code, output } = await runScript(scripts[name] ?? '', '--help');
  expect([code, output]).toEqual([0, expect.stringMatching(new RegExp(`^usage: npm run ${name}`))]);
});

/** The little that hands over to the pinned Node, in a folder; without that Node, so far. */
async function checkout(): Promise<{
  folder: string;
  runs: (node: string, ...args: string[]) => ReturnType<typeof ended>;
}> {
  const folder = await temporaryFolder();
  for (const file of ['package.json', 'scripts/run.js', 'scripts/npm/after-install.js', ...HANDING_OVER]) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await copyFile(join(ROOT, file), join(folder, file));
  }
  await writeFile(join(folder, 'x.mjs'), "console.log(process.env.ON ?? 'the host', process.argv.slice(2).join());");
  const runs = (node: string, ...args: string[]) =>
    ended(node, [...args, join(folder, 'scripts/run.js'), join(folder, 'x.mjs'), '-a']);
  return { folder, runs };
}

it('a script runs on the pinned Node whatever the host has; without one on a host that is new enough, or says what it needs', async () => {
  const { folder, runs } = await checkout();
  // What an old Node says of itself.
  const old = ['--import', "data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.1.0'})"];
  const help = 'paybox needs Node 22.19, 24.5 or newer, and this is Node 20.1.0\n  run "npm ci" in the project first';
  expect(await runs(process.execPath, ...old)).toEqual({ code: 3, output: expect.stringContaining(help) });
  expect(await runs(process.execPath)).toEqual({ code: 0, output: 'the host -a\n' });
  await pin(folder);
  expect(await runs(process.execPath, ...old)).toEqual({ code: 0, output: 'the pinned -a\n' });
  expect(await runs(process.execPath)).toEqual({ code: 0, output: 'the pinned -a\n' });
});

/** Installs, as npm does, a package of Node for this machine: a program that says so, headers, and the program's link. */
async function pin(folder: string): Promise<void> {
  const name = `node-linux-${process.arch}`;
  const bin = join(folder, 'node_modules', name, 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, 'node'), `#!/bin/sh\nON='the pinned' exec ${process.execPath} "$@"\n`, { mode: 0o755 });
  await mkdir(join(bin, '../include/node'), { recursive: true });
  await mkdir(join(folder, 'node_modules/.bin'));
  await symlink(`../${name}/bin/node`, join(folder, 'node_modules/.bin/node'));
}

it('the installation of a checkout leaves the scripts of npm the Node of the host, and of the pinned one what is needed', async () => {
  const { folder } = await checkout();
  const afterInstall = () => ended(process.execPath, [join(folder, 'scripts/npm/after-install.js')]);
  expect(scripts.postinstall).toBe('node scripts/npm/after-install.js');
  expect(await afterInstall()).toEqual({ code: 0, output: '' });
  await pin(folder);
  for (const _again of [1, 2]) {
    expect(await afterInstall()).toEqual({ code: 0, output: '' });
    expect(await readdir(join(folder, 'node_modules/.bin'))).toEqual([]);
    expect(await readdir(join(folder, `node_modules/node-linux-${process.arch}`))).toEqual(['bin']);
  }
  // A program of that name by another package is not ours.
  await symlink('../other/node', join(folder, 'node_modules/.bin/node'));
  await mkdir(join(folder, 'node_modules/other'));
  await writeFile(join(folder, 'node_modules/other/node'), '');
  await afterInstall();
  expect(await readdir(join(folder, 'node_modules/.bin'))).toEqual(['node']);
});

it('a benchmark whose push fails while others begin fails alone', async () => {
  let pushes = 0;
  const push = async () => {
    pushes += 1;
    if (pushes === 3) throw new Error('send-qr: BOX_TIMEOUT');
  };
  await expect(atRate(push, 20_000)).rejects.toThrow('BOX_TIMEOUT');
  // The others go on. How many begin in time depends on the machine.
  expect(pushes).toBeGreaterThan(100);
});

it('a run of the bench that ends by an uncaught error prints its rows, and leaves no program behind', async () => {
  const folder = await temporaryFolder();
  const late = "data:text/javascript,setTimeout(()=>{throw new Error('out of the blue')},1500).unref()";
  const json = join(folder, 'rows.json');
  const args = ['--import', late, join(ROOT, 'test/benchmarks/main.ts'), '--only', 'up', '--json', json];
  const { code, output } = await ended(process.execPath, args, { TMPDIR: folder });
  expect([code, output]).toEqual([1, expect.stringContaining('failed: the run: out of the blue')]);
  expect(output).toMatch(/^name +ours/m);
  expect(JSON.parse(await readFile(json, 'utf8'))).toEqual([]);
  await eventually('all programs have ended', async () => (await programsWith(folder)).length === 0);
});

/** Programs that have this text in their arguments. */
async function programsWith(text: string): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((it) => /^\d+$/.test(it) && it !== String(process.pid));
  const lines = ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => ''));
  return (await Promise.all(lines)).filter((it) => it.includes(text));
}
