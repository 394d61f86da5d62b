import { spawnSync } from 'node:child_process';
import { mkdir, open, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { bytesIn, realDisk } from '../../src/device/setup/disk.ts';
import { temporaryFolder } from '../support/net.ts';

beforeEach(() => void process.umask(0));

describe('a disk', () => {
  it('a disk writes over what it wipes', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'secret');
    await writeFile(path, 'A-long-secret-that-a-box-has');
    // Whoever has it open, or finds its blocks, sees what is left of it.
    const seen = await open(path, 'r');
    onTestFinished(() => seen.close());
    await realDisk.wipe(path);
    expect(await readdir(folder)).toEqual([]);
    expect(await seen.readFile()).toEqual(Buffer.alloc('A-long-secret-that-a-box-has'.length));
  });

  it('a disk replaces a file, whatever an earlier attempt has left, for whom the folder is', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'file');
    const elsewhere = join(folder, 'elsewhere');
    await symlink(elsewhere, `${path}.tmp`);
    await realDisk.replace(path, 'new', 0o640);
    expect(await readFile(path, 'utf8')).toBe('new');
    expect((await stat(path)).mode & 0o777).toBe(0o640);
    expect((await stat(path)).gid).toBe((await stat(folder)).gid);
    expect(await readdir(folder)).toEqual(['file']);
  });

  it('a disk reads files only, and no more of them than asked for', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'large'), new Uint8Array(1_000_000));
    expect(await bytesIn(folder, 'large', 10)).toHaveLength(11);
    expect(await bytesIn(folder, 'none', 10)).toBeUndefined();
    await mkdir(join(folder, 'folder'));
    await expect(bytesIn(folder, 'folder', 10)).rejects.toThrow('expected a file');
    // Nobody writes into it: it would be waited for.
    expect(spawnSync('mkfifo', [join(folder, 'pipe')]).status).toBe(0);
    await expect(bytesIn(folder, 'pipe', 10)).rejects.toThrow('expected a file');
  });
});
