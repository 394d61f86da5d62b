import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeWorkFolder, memoryFolder } from '../../src/bench/engine/work-folder.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { programsIn, run } from '../support/processes.ts';
import { cliScript } from '../support/program-code.ts';

const NOBODY = 65_534;
const needsProc = it.skipIf(!existsSync('/proc/self/stat'));
const needsRoot = it.skipIf(process.getuid?.() !== 0);

/** A place for temporary files of this test alone. */
async function temporaryPlace(): Promise<string> {
  const place = await temporaryFolder();
  vi.stubEnv('TMPDIR', place);
  onTestFinished(() => void vi.unstubAllEnvs());
  return place;
}

/** The parts of the name of a folder that this process makes. */
async function own() {
  const folder = await makeWorkFolder('test');
  const [, system = '', pid = '', started = ''] =
    /^paybox-test-([0-9a-f]{12})-(\d+)-(\d+)-\w{6}$/.exec(basename(folder)) ?? [];
  await rm(folder, { recursive: true });
  return { system, pid, started, named: (it: object) => nameOf({ system, pid, started, ...it }) };
}

function nameOf({ system, pid, started }: { system: string; pid: string | number; started: string }): string {
  return `paybox-bench-${system}-${pid}-${started}-AbC123`;
}

/** The id of a process that is over. */
async function pidOfNobody(): Promise<number> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid ?? 0;
}

/** A folder with something in it. */
async function fill(folder: string): Promise<void> {
  await mkdir(join(folder, 'deep'), { recursive: true });
  await writeFile(join(folder, 'deep', 'file'), 'kept');
}

describe('a folder of a bench', () => {
  needsProc('is removed by the next one when its process is gone, and stays while that runs', async () => {
    const place = await temporaryPlace();
    const { named } = await own();
    const left = named({ pid: await pidOfNobody() });
    const reused = named({ started: '1' });
    const running = named({});
    for (const name of [left, reused, running]) await fill(join(place, name));
    const made = await makeWorkFolder('bench');
    expect(readdirSync(place).sort()).toEqual([running, basename(made)].sort());
    expect(await readFile(join(place, running, 'deep/file'), 'utf8')).toBe('kept');
  });

  needsProc('is removed also when its process has ended and nobody has asked how', async () => {
    const place = await temporaryPlace();
    const { system } = await own();
    // A program that never asks for the end of the one it has started, which ends once the shell is that program: a shell would ask.
    const child = 'until grep -q sleep "/proc/$PPID/comm"; do sleep 0.05; done';
    const script = `sh -c '${child}' & echo $!; exec sleep 600`;
    const parent = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void parent.kill('SIGKILL'));
    const pid = Number(String((await once(parent.stdout, 'data'))[0]));
    const stat = await eventually('an ended process', async () => {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8');
      return text.includes(') Z ') && text;
    });
    const started = stat.split(') ')[1]?.split(' ')[19] ?? '';
    await fill(join(place, nameOf({ system, pid, started })));
    expect(readdirSync(place)).toEqual([expect.stringMatching(`-${pid}-${started}-`)]);
    const made = await makeWorkFolder('bench');
    expect(readdirSync(place)).toEqual([basename(made)]);
  });

  needsProc('is left alone where it is not sure whose it is', async () => {
    const place = await temporaryPlace();
    const { named, system } = await own();
    const gone = { pid: await pidOfNobody() };
    const elsewhere = named({ ...gone, system: '0123456789ab' });
    const others = ['paybox-bench-AbC123', `paybox-bench-${system}-AbC123`, `my-${named(gone)}`, `${named(gone)}.old`];
    for (const name of [elsewhere, ...others]) await fill(join(place, name));
    const target = join(place, 'target');
    await fill(target);
    await symlink(target, join(place, named(gone)));
    const file = named({ ...gone, started: '2' });
    await writeFile(join(place, file), 'kept');
    const before = readdirSync(place);
    const made = await makeWorkFolder('bench');
    expect(readdirSync(place).sort()).toEqual([...before, basename(made)].sort());
    expect(await readFile(join(target, 'deep/file'), 'utf8')).toBe('kept');
  });

  needsRoot('is left alone where it is that of another user', async () => {
    const place = await temporaryPlace();
    const { named } = await own();
    const name = named({ pid: await pidOfNobody() });
    await fill(join(place, name));
    await chown(join(place, name), NOBODY, NOBODY);
    await makeWorkFolder('bench');
    expect(readdirSync(place)).toContain(name);
  });

  needsProc('is removed with what links lead to left as it is', async () => {
    const place = await temporaryPlace();
    const { named } = await own();
    const name = named({ pid: await pidOfNobody() });
    const target = join(place, 'target');
    await fill(target);
    await fill(join(place, name));
    await symlink(target, join(place, name, 'link'));
    await makeWorkFolder('bench');
    expect(readdirSync(place)).not.toContain(name);
    expect(await readFile(join(target, 'deep/file'), 'utf8')).toBe('kept');
  });
});

describe('paybox bench run that is killed', () => {
  needsProc('leaves folders that the next run removes', async () => {
    const place = await temporaryFolder();
    const scenario = join(await temporaryFolder(), 'x.yaml');
    await writeFile(scenario, 'name: x\nsteps:\n  - wait: 1h\n');
    const bench = (...args: string[]) =>
      run(process.execPath, [cliScript(), 'bench', 'run', ...args], { TMPDIR: place });
    const killed = bench(scenario, '--target', 'process');
    const folders = () => readdirSync(place).filter((name) => name.startsWith('paybox-bench-'));
    await expect.poll(() => programsIn(place), { timeout: 60_000 }).toHaveLength(2);
    const left = folders();
    expect(left).toHaveLength(2);
    expect(await killed.stop('SIGKILL')).toBe('SIGKILL');
    await expect.poll(() => programsIn(place), { timeout: 60_000 }).toEqual([]);
    expect(folders()).toEqual(left);
    await writeFile(scenario, 'name: x\nsteps:\n  - wait: 1s\n');
    const next = bench(scenario);
    await once(next.child, 'close');
    expect(next.child.exitCode, next.output()).toBe(0);
    expect(folders()).toEqual([]);
  });
});

it('what need not last is kept where there is room for it, and else in the temporary folder', async () => {
  const folder = await temporaryFolder();
  expect(await memoryFolder(1, folder)).toBe(folder);
  expect(await memoryFolder(Number.MAX_SAFE_INTEGER, folder)).toBe(tmpdir());
  expect(await memoryFolder(1, join(folder, 'none'))).toBe(tmpdir());
});
