import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeFolder } from '../../src/lib/folders.ts';
import { temporaryFolder } from '../support/net.ts';

it('makes a folder and those above it, once or again', async () => {
  const folder = join(await temporaryFolder(), 'a/b');
  makeFolder(folder, 0o700);
  makeFolder(folder, 0o700);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

it('says why there is none', async () => {
  const file = join(await temporaryFolder(), 'file');
  writeFileSync(file, '');
  expect(() => makeFolder(file)).toThrow('EEXIST');
  expect(() => makeFolder(join(file, 'below'))).toThrow('ENOTDIR');
});

it.skipIf(!existsSync('/proc/self'))('ends where the system has a folder, and refuses one in it as missing', () => {
  expect(() => makeFolder('/proc/nope/data')).toThrow('ENOENT');
});
