import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LogFile } from '../../src/commands/shared/log-file.ts';
import { temporaryFolder } from '../support/net.ts';

async function openLog(bytesMax: number, folder?: string) {
  const where = folder ?? (await temporaryFolder());
  const file = join(where, 'paybox.log');
  const complaints: string[] = [];
  const log = new LogFile(file, (reason) => complaints.push(reason), bytesMax);
  onTestFinished(() => void log.destroy());
  return { log, file, folder: where, complaints };
}

describe('a log file', () => {
  it('a log file has each line at once, behind those of earlier runs', async () => {
    const first = await openLog(1_000);
    first.log.write('one\n');
    const { log, file } = await openLog(1_000, first.folder);
    log.write('two\n');
    expect(await readFile(file, 'utf8')).toBe('one\ntwo\n');
  });

  it('a log file is rotated when it is full, and only the newest rotated one is kept', async () => {
    const { log, file, folder } = await openLog(20);
    for (const line of ['1', '2', '3', '4', '5']) log.write(`${line.repeat(9)}\n`);
    expect(await readFile(file, 'utf8')).toBe('555555555\n');
    expect(await readFile(`${file}.1`, 'utf8')).toBe('333333333\n444444444\n');
    expect((await readdir(folder)).toSorted()).toEqual(['paybox.log', 'paybox.log.1']);
  });

  it('a log file counts what an earlier run has written', async () => {
    const first = await openLog(20);
    first.log.write('1234567890\n');
    const { log, file } = await openLog(20, first.folder);
    log.write('abcdefghij\n');
    expect(await readFile(file, 'utf8')).toBe('abcdefghij\n');
    expect(await readFile(`${file}.1`, 'utf8')).toBe('1234567890\n');
  });

  it('a log file that cannot be written logs that once, and goes on when it can', async () => {
    const { log, file, folder, complaints } = await openLog(1_000, join(await temporaryFolder(), 'missing'));
    log.write('lost\n');
    log.write('lost too\n');
    expect(complaints).toEqual([expect.stringContaining('ENOENT')]);
    await mkdir(folder);
    log.write('there\n');
    expect(await readFile(file, 'utf8')).toBe('there\n');
  });
});
