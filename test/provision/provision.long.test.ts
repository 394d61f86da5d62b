import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { provisioned } from '../support/provisioned.ts';
import { BOX1, BOX2, contentOf, run } from './provision-run.ts';

/** A Raspberry Pi's user with the most open of umasks. */
beforeEach(() => void process.umask(0));

describe('paybox provision', () => {
  it.each<[string, string[], string]>([
    ['a box that is there', ['--box', BOX1], 'VVB000001 is there already'],
    [
      'a serial number that another box has',
      ['--box', 'VVB000009:VVB900001'],
      'serialNumber VVB900001 is already taken',
    ],
    ['a host that the certificate is not for', ['--host', 'other.example', '--box', BOX2], 'is for other hosts'],
    ['a box to rotate that is not there', ['--rotate', 'VVB000007'], 'there is no'],
    ['a box that is none', ['--box', 'VVB1:VVB2'], 'expected terminalCode and serialNumber'],
    ['a box without a serial number', ['--box', 'VVB000003'], 'expected terminalCode and serialNumber'],
    ['a name to rotate that is none', ['--rotate', '../gateway'], 'expected a terminalCode, or gateway'],
    ['a box named twice', ['--box', BOX2, '--box', BOX2], 'is named twice'],
    ['a host that is none', ['--host', '*.example'], 'expected a host name or an IP address'],
  ])('refuses %s, and leaves all as it was', async (_what, args, reason) => {
    const { path } = await provisioned();
    const before = await contentOf(path);
    const { code, output } = await run(path, ...args);
    expect(code).toBe(2);
    expect(output).toContain(reason);
    expect(await contentOf(path)).toEqual(before);
  });

  it('refuses a folder of something else, and a file of its name', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'photo.jpg'), 'x');
    await writeFile(join(folder, 'file'), 'x');
    for (const out of [folder, join(folder, 'file')]) expect(await run(out), out).toMatchObject({ code: 2 });
    expect(Object.keys(await contentOf(folder))).toEqual(['file', 'photo.jpg']);
    await mkdir(join(folder, 'empty'));
    expect(await run(join(folder, 'empty'))).toMatchObject({ code: 0 });
  });

  it.each([
    ['one that is there', BOX1, 'VVB000001 is there already'],
    ['one whose serial number another has', 'VVB000009:VVB900001', 'serialNumber VVB900001 is already taken'],
  ])('refuses several boxes for %s, and leaves all as it was', async (_what, box, reason) => {
    const { path } = await provisioned();
    const before = await contentOf(path);
    const { code, output } = await run(path, '--box', 'VVB000003:VVB900003', '--box', box);
    expect(code).toBe(2);
    expect(output).toContain(reason);
    expect(await contentOf(path)).toEqual(before);
  });
});
