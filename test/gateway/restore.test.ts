import { cp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/gateway/store/store.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { temporaryFolder } from '../support/net.ts';
import { CLI, payboxToEnd, run } from '../support/processes.ts';
import { keptLog, pay } from './store-rows.ts';

const OPERATIONS_MAX = 60;
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

/** Runs a restore that is stopped at its n-th operation on the files of the folder. */
async function restore(file: string, dataDir: string, how: 'kill' | 'fail', n: number) {
  const program = run(CLI, ['restore', file, '--data', dataDir, '--replace'], {
    NODE_OPTIONS: `--import=${join(import.meta.dirname, '../support/stop-at.ts')}`,
    STOP_AT: String(n),
    STOP_FOLDER: dataDir,
    STOP_HOW: how,
  });
  return new Promise<{ code: number | string; output: string }>((resolve) => {
    program.child.once('close', (code, signal) => resolve({ code: code ?? signal ?? '', output: program.output() }));
  });
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

describe('a restore that is stopped', () => {
  it(
    'BAK-2 leaves the old store, the new one, or a start that is refused until a restore ends, wherever it is killed',
    async () => {
      const { old, file } = await oldStore();
      const seen = new Set<string>();
      for (let n = 1; n <= OPERATIONS_MAX; n += 1) {
        const where = `killed before operation ${n}`;
        const dataDir = join(await temporaryFolder(), 'data');
        await cp(old, dataDir, { recursive: true });
        const { code, output } = await restore(file, dataDir, 'kill', n);
        expect([0, 'SIGKILL'], output).toContain(code);
        const names = await readdir(dataDir);
        const found = await start(dataDir);
        seen.add(found instanceof ConfigError ? 'refused' : found.join());
        if (code === 0) break;
        if (!(found instanceof ConfigError)) continue;
        expect(found, where).toMatchObject({
          message: expect.stringContaining('a restore was stopped midway'),
          fix: expect.stringContaining('run paybox restore again'),
        });
        expect(await readdir(dataDir), where).toEqual(names);
        await restore(file, dataDir, 'kill', 1 + ((n * 7) % 17));
        const again = await payboxToEnd('restore', file, '--data', dataDir, '--replace');
        expect(again, where).toMatchObject({ code: 0, output: expect.stringContaining('gateway.before-') });
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
      const { old, file } = await oldStore();
      const names = await readdir(old);
      const seen = new Set<string>();
      for (let n = 1; n <= OPERATIONS_MAX; n += 1) {
        const dataDir = join(await temporaryFolder(), 'data');
        await cp(old, dataDir, { recursive: true });
        const { code, output } = await restore(file, dataDir, 'fail', n);
        if (code === 0) break;
        const said = /there, as it was|no gateway starts until then|the backup is in its place/.exec(output)?.[0];
        expect([code, said], output).toEqual([1, expect.any(String)]);
        seen.add(String(said));
        if (said === 'there, as it was') {
          // SQLite leaves its shared memory beside a log that it has looked at.
          expect(
            (await readdir(dataDir)).filter((name) => !name.endsWith('-shm')),
            output,
          ).toEqual(names);
        }
        const found = await start(dataDir);
        expect(found instanceof ConfigError, output).toBe(said === 'no gateway starts until then');
        if (said === 'the backup is in its place') expect(found).toEqual(NEW);
        if (said === 'there, as it was') expect(found).toEqual(OLD);
      }
      expect(seen.size).toBe(3);
    },
    LONG_MS,
  );
});
