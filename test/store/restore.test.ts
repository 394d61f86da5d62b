import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/lib/errors.ts';
import { temporaryFolder } from '../support/net.ts';
import { interrupted, LONG_MS, NEW, OLD, oldStore, start } from './restore-fixture.ts';

describe('a restore that is interrupted', () => {
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
