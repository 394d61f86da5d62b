import { once } from 'node:events';
import { cp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openBackup } from '../../src/gateway/store/backup/backup-file.ts';
import { restoreBackup } from '../../src/gateway/store/backup/restore.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import type { Interruption } from '../support/interrupted-restore.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { pay } from './rows.ts';

const PROGRAM = join(import.meta.dirname, '../support/interrupted-restore.ts');
const LONG_MS = 240_000;
const OLD = ['a', 'b', 'c'];
const NEW = ['a'];

/** A store that was killed, with payments in its log only, and a backup from before them. */
async function oldStore(): Promise<{ old: string; file: string }> {
  const [dataDir, folder] = [await temporaryFolder(), await temporaryFolder()];
  const store = await openStore({ dataDir }, keptLog().log);
  await pay(store, 'a');
  const copy = await store.backup();
  await writeFile(join(folder, 'backup'), await copy.readFile());
  await copy.close();
  await pay(store, 'b');
  await pay(store, 'c');
  const old = join(folder, 'old');
  await cp(dataDir, old, { recursive: true });
  await store.close();
  return { old, file: join(folder, 'backup') };
}

/** The payments that a start finds here, or why it is refused. */
async function start(dataDir: string): Promise<string[] | ConfigError> {
  try {
    const store = await openStore({ dataDir }, keptLog().log);
    const ids = (await store.payments.newest(10)).map((it) => it.id).toSorted();
    await store.close();
    return ids;
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

/** Runs restores that are interrupted. Returns how the program ended, and the error of each restore. */
async function interrupted(interruption: Interruption) {
  const program = run(process.execPath, [PROGRAM, JSON.stringify(interruption)]);
  const [code, signal] = await once(program.child, 'close');
  expect([0, null], program.output()).toContain(code);
  const lines = program.output().trim().split('\n').filter(Boolean);
  return { signal, errors: lines.map((line) => JSON.parse(line) as string | null) };
}

/** What starts find in the stores that were moved aside, each in a folder of its own. */
async function movedAside(dataDir: string): Promise<(string[] | ConfigError)[]> {
  const folders = new Map<string, string>();
  for (const name of await readdir(dataDir)) {
    const stamp = /\.before-(\w+)/.exec(name)?.[0];
    if (stamp === undefined) continue;
    const folder = folders.get(stamp) ?? (await temporaryFolder());
    folders.set(stamp, folder);
    await cp(join(dataDir, name), join(folder, name.replace(stamp, '')));
  }
  return Promise.all([...folders.values()].map(start));
}

describe('a restore that is interrupted', () => {
  it(
    'BAK-2 leaves the old store, the new one, or a start that is refused until a restore ends, wherever it is killed',
    async () => {
      const { old: folder, file } = await oldStore();
      const out = await temporaryFolder();
      const done = await interrupted({ file, folder, how: 'snapshots', n: 0, out });
      expect(done.errors).toEqual([null]);
      const operations = (await readdir(out)).length;
      expect(operations).toBeGreaterThan(15);
      const seen = new Set<string>();
      for (let n = 1; n <= operations; n += 1) {
        const where = `killed before operation ${n}`;
        const dataDir = join(out, String(n));
        const names = await readdir(dataDir);
        const found = await start(dataDir);
        seen.add(found instanceof ConfigError ? 'refused' : found.join());
        if (!(found instanceof ConfigError)) continue;
        expect(found, where).toMatchObject({
          message: expect.stringContaining('a restore was stopped midway'),
          fix: expect.stringContaining('run paybox restore again'),
        });
        expect(await readdir(dataDir), where).toEqual(names);
        // The next restore is killed too, at any of its operations; the one after that ends.
        await interrupted({ file, folder: dataDir, how: 'kill', n: 1 + ((n * 7) % 17), out: '' });
        const backup = await openBackup(file);
        const { aside } = await restoreBackup(backup, dataDir, { replace: true, stamp: 'later' });
        await backup.handle.close();
        expect(aside, where).toContain('gateway.before-');
        expect(await start(dataDir), where).toEqual(NEW);
        expect(await movedAside(dataDir), where).toContainEqual(OLD);
        expect((await readdir(dataDir)).join(), where).not.toMatch(/incoming|restoring/);
      }
      expect([...seen]).toEqual([OLD.join(), 'refused', NEW.join()]);
    },
    LONG_MS,
  );

  it(
    'BAK-2 says what is there, and leaves nothing of its own, wherever the disk has no room',
    async () => {
      const { old: folder, file } = await oldStore();
      const names = await readdir(folder);
      const out = await temporaryFolder();
      const { errors } = await interrupted({ file, folder, how: 'fail', n: 1, out });
      expect(errors.at(-1)).toBeNull();
      const seen = new Set<string>();
      for (const [i, error] of errors.slice(0, -1).entries()) {
        const dataDir = join(out, String(i + 1));
        const said = /the earlier files are unchanged|no gateway starts until then|the backup is in its place/.exec(
          error ?? '',
        )?.[0];
        seen.add(String(said));
        if (said === 'the earlier files are unchanged') {
          // SQLite leaves its shared memory beside a log that it has read.
          const left = (await readdir(dataDir)).filter((name) => !name.endsWith('-shm'));
          expect(left, String(error)).toEqual(names);
        }
        const found = await start(dataDir);
        expect(found instanceof ConfigError, String(error)).toBe(said === 'no gateway starts until then');
        if (said === 'the backup is in its place') expect(found).toEqual(NEW);
        if (said === 'the earlier files are unchanged') expect(found).toEqual(OLD);
      }
      expect([...seen]).toEqual([
        'the earlier files are unchanged',
        'no gateway starts until then',
        'the backup is in its place',
      ]);
    },
    LONG_MS,
  );
});
