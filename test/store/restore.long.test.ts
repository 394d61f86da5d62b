import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openBackup } from '../../src/gateway/store/backup/backup-file.ts';
import { restoreBackup } from '../../src/gateway/store/backup/restore.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { temporaryFolder } from '../support/net.ts';
import { interrupted, LONG_MS, NEW, OLD, oldStore, start } from './restore-fixture.ts';

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
});
