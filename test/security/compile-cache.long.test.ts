import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { SOURCE_CLI } from '../support/program-code.ts';

/** A user of the machine who is neither root nor the one that runs the program. */
const NOBODY = 65534;
/** What the first lines of `paybox --help` say, and what a poisoned one says, as long. */
const [HONEST, PLANTED] = ['software inside a payment QR box', 'SOFTWARE OF WHO PLANTED A FOLDER'];
/** The header of a file in Node's compile cache: five numbers of four bytes, the last the CRC-32 of what follows. */
const [SUM_OFFSET, HEADER_BYTES] = [16, 20];

const note = process.platform !== 'linux' || process.getuid?.() !== 0 ? ' (needs root on Linux)' : '';

/** Runs `paybox --help` as root; what it said. */
function help(env: NodeJS.ProcessEnv): string {
  const clean = { PATH: process.env.PATH, ...env };
  const { status, stdout, stderr } = spawnSync(process.execPath, [SOURCE_CLI, '--help'], {
    env: clean,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
  return stdout.replaceAll(/\s+/g, ' ');
}

/** A cache of this program in `folder` that has other words in it; what any user can make who has the program. */
async function poison(folder: string): Promise<void> {
  help({ NODE_COMPILE_CACHE: folder });
  let changed = 0;
  for (const file of await filesIn(folder)) {
    const bytes = await readFile(file);
    const at = bytes.indexOf(HONEST);
    if (at < 0) continue;
    bytes.write(PLANTED, at, 'latin1');
    bytes.writeUInt32LE(crc32(bytes.subarray(HEADER_BYTES)), SUM_OFFSET);
    await writeFile(file, bytes);
    changed += 1;
  }
  expect(changed).toBeGreaterThan(0);
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Name and content of every file. */
async function contentOf(folder: string): Promise<string[]> {
  const lines = (await filesIn(folder)).map(async (file) =>
    [
      file,
      createHash('sha256')
        .update(await readFile(file))
        .digest('hex'),
    ].join(' '),
  );
  return (await Promise.all(lines)).sort();
}

/** Another user's folder: his, and open to all. */
function handTo(uid: number, folder: string): void {
  for (const [tool, mode] of [
    ['chown', String(uid)],
    ['chmod', 'a+rwX'],
  ] as const) {
    expect(spawnSync(tool, ['-R', mode, folder]).status).toBe(0);
  }
}

/** A home of the caller's own, beside a temporary folder for everybody. */
async function machine() {
  const folder = await temporaryFolder();
  const [home, shared] = [join(folder, 'home'), join(folder, 'tmp')];
  await mkdir(home);
  await mkdir(shared);
  await chmod(folder, 0o755);
  await chmod(shared, 0o1777);
  return { folder, home, shared, env: { HOME: home, TMPDIR: shared } };
}

describe.skipIf(note !== '')(`what was compiled before${note}`, () => {
  it('the compile cache is kept in a folder of the caller alone, and found there at the next start', async () => {
    const { home, shared, env } = await machine();
    expect(help(env)).toContain(HONEST);
    const folder = join(home, '.cache/paybox/node');
    for (const each of [join(home, '.cache'), join(home, '.cache/paybox'), folder]) {
      expect((await lstat(each)).mode & 0o777).toBe(0o700);
    }
    const first = await contentOf(folder);
    expect(first.length).toBeGreaterThan(10);
    expect(await readdir(shared)).toEqual([]);
    // Shows that this way of poisoning works, where it is not kept off.
    await rm(folder, { recursive: true });
    await poison(folder);
    expect(help(env)).toContain(PLANTED);
  });

  it('the compile cache is kept where XDG_CACHE_HOME says', async () => {
    const { folder, env } = await machine();
    await mkdir(join(folder, 'cache'));
    help({ ...env, XDG_CACHE_HOME: join(folder, 'cache') });
    expect(await readdir(join(folder, 'cache/paybox/node'))).toHaveLength(1);
  });

  it('THR-28 the compile cache is neither read from nor written into the shared temporary folder, where anybody may have been first', async () => {
    const { shared, env } = await machine();
    const planted = join(shared, 'node-compile-cache');
    await poison(planted);
    handTo(NOBODY, planted);
    const before = await contentOf(planted);
    for (let run = 0; run < 2; run += 1) expect(help(env)).toContain(HONEST);
    expect(await contentOf(planted)).toEqual(before);
  });

  it.each([
    {
      what: 'a home of another user, as some kinds of sudo leave it',
      plant: async ({ home }: { home: string; shared: string }) => {
        await poison(join(home, '.cache/paybox/node'));
        handTo(NOBODY, home);
        return home;
      },
    },
    {
      what: 'a folder of another user in the own home',
      plant: async ({ home }: { home: string; shared: string }) => {
        await poison(join(home, '.cache/paybox/node'));
        handTo(NOBODY, join(home, '.cache/paybox/node'));
        return home;
      },
    },
    {
      what: 'an own folder that others may write',
      plant: async ({ home }: { home: string; shared: string }) => {
        await poison(join(home, '.cache/paybox/node'));
        await chmod(join(home, '.cache/paybox'), 0o770);
        return home;
      },
    },
    {
      what: 'a link to a folder of another user',
      plant: async ({ home, shared }: { home: string; shared: string }) => {
        await mkdir(join(home, '.cache/paybox'), { recursive: true, mode: 0o700 });
        await poison(join(shared, 'planted'));
        handTo(NOBODY, join(shared, 'planted'));
        await symlink(join(shared, 'planted'), join(home, '.cache/paybox/node'));
        return join(shared, 'planted');
      },
    },
    {
      what: 'a link to an own folder',
      plant: async ({ home }: { home: string; shared: string }) => {
        await mkdir(join(home, '.cache/paybox'), { recursive: true, mode: 0o700 });
        await poison(join(home, 'elsewhere'));
        await symlink(join(home, 'elsewhere'), join(home, '.cache/paybox/node'));
        return join(home, 'elsewhere');
      },
    },
    {
      what: 'an own home in a folder of another user, who can put another in its place',
      plant: async ({ home }: { home: string; shared: string }) => {
        await poison(join(home, '.cache/paybox/node'));
        expect(spawnSync('chown', [String(NOBODY), resolve(home, '..')]).status).toBe(0);
        return home;
      },
    },
  ])('THR-28 is neither read from nor written into $what', async ({ plant }) => {
    const { home, shared, env } = await machine();
    const planted = await plant({ home, shared });
    const before = await contentOf(planted);
    for (let run = 0; run < 2; run += 1) expect(help(env)).toContain(HONEST);
    expect(await contentOf(planted)).toEqual(before);
  });

  it('a program runs without a compile cache, and says nothing, where there is no home', async () => {
    const { env } = await machine();
    expect(help({ ...env, HOME: '/nonexistent' })).toContain(HONEST);
  });

  it('a program runs without a compile cache where nothing can be written', async () => {
    const { home, env } = await machine();
    await writeFile(join(home, '.cache'), 'no folder');
    expect(help(env)).toContain(HONEST);
  });
});
