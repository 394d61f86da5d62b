import { globSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const FILES = globSync('test/**/*.test.ts', { cwd: ROOT });
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Lists the files of a script: all that its `--exclude` leaves. */
const filesOf = (script: string) => {
  const pattern = /--exclude '([^']+)'/.exec(scripts[script] ?? '')?.[1];
  if (pattern === undefined) throw new Error(`script ${script} in package.json: expected --exclude '…'`);
  return FILES.filter((file) => !matchesGlob(file, pattern));
};

it('npm test and npm run test:long run each test file once between them', () => {
  const short = filesOf('test');
  const long = filesOf('test:long');
  expect(long.length).toBeGreaterThan(50);
  expect([...short, ...long].toSorted()).toEqual(FILES.toSorted());
  expect(long.filter((file) => !file.endsWith('.long.test.ts'))).toEqual([]);
});

it('npm test runs tests of every folder that has any', () => {
  const folderOf = (file: string) => file.split('/').slice(0, 2).join('/');
  const foldersOf = (files: readonly string[]) => [...new Set(files.map(folderOf))].toSorted();
  expect(foldersOf(filesOf('test'))).toEqual(foldersOf(FILES));
});
