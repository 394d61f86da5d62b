import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { atRate } from '../benchmarks/load.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const RUN = join(ROOT, 'scripts/run.js');
const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const OURS = Object.entries(scripts).filter(([, command]) => command.startsWith('node scripts/run.js '));

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
  expect(Object.values(scripts).filter((it) => /^node (?!scripts\/run\.js ).*\.ts/.test(it))).toEqual([]);
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

it('a script runs on the Node of the project, or says which one it needs', async () => {
  // What an old Node says of itself.
  const old = "data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.1.0'})";
  const own = await ended(process.execPath, ['--import', old, RUN, join(ROOT, 'test/benchmarks/main.ts'), '--help']);
  expect(own).toEqual({ code: 0, output: expect.stringContaining('usage: npm run bench') });
  const alone = await temporaryFolder();
  await mkdir(join(alone, 'scripts'));
  await mkdir(join(alone, 'src/lib'), { recursive: true });
  await copyFile(RUN, join(alone, 'scripts/run.js'));
  await copyFile(join(ROOT, 'src/lib/own-node.js'), join(alone, 'src/lib/own-node.js'));
  const none = await ended(process.execPath, ['--import', old, join(alone, 'scripts/run.js'), 'x.ts']);
  expect(none).toEqual({ code: 3, output: expect.stringMatching(/^x\.ts needs Node 24, .*\n {2}run "npm ci"/m) });
});

it('a benchmark whose push fails while others begin fails alone', async () => {
  let pushes = 0;
  const push = async () => {
    pushes += 1;
    if (pushes === 3) throw new Error('send-qr: BOX_TIMEOUT');
  };
  await expect(atRate(push, 20_000)).rejects.toThrow('BOX_TIMEOUT');
  expect(pushes).toBe(2_000);
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
