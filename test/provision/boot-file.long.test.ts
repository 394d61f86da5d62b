import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { BOX1, BOX2, card, GATEWAY } from './boot-file-fixture.ts';

describe('paybox provision for the card of a box', () => {
  it('paybox provision writes the card of a box that enrols at a gateway which is there, with its Wi-Fi', async () => {
    const { boot, out, run, read } = await card();
    await run('--out', out, '--box', BOX2);
    const password = join(out, 'wifi');
    await writeFile(password, 'a "password" # of : mine\n');
    const wifi = ['--wifi', 'Quán 1', '--wifi-password-file', password];
    const { code, output } = await run(
      '--out',
      boot,
      '--gateway',
      GATEWAY,
      '--ca',
      join(out, 'ca.pem'),
      '--box',
      BOX1,
      ...wifi,
    );
    expect(code, output).toBe(0);
    const settings = await read();
    expect(settings).toMatchObject({ gateway: GATEWAY, wifi: { ssid: 'Quán 1', psk: 'a "password" # of : mine' } });
    expect(settings.secret).toBeUndefined();
    expect(output).toContain(`paybox enrol --gateway ${GATEWAY} --box VVB000001 --code`);
    expect(output).not.toContain('password');
  });

  it("paybox provision does not write over another box's card unless told, and over its own at any time", async () => {
    const { boot, file, run } = await card();
    const args = ['--out', boot, '--gateway', GATEWAY, '--box'];
    await run(...args, BOX1);
    const first = await readFile(file, 'utf8');
    expect(await run(...args, BOX2)).toMatchObject({ code: 2, output: expect.stringContaining('the box VVB000001') });
    expect(await readFile(file, 'utf8')).toBe(first);
    expect(await run(...args, BOX1)).toMatchObject({ code: 0 });
    expect(await run(...args, BOX2, '--replace')).toMatchObject({ code: 0 });
    expect(parse(await readFile(file, 'utf8'))).toMatchObject({ terminalCode: 'VVB000002' });
    await writeFile(file, 'not ours\n');
    expect(await run(...args, BOX2)).toMatchObject({ code: 2, output: expect.stringContaining('names no box') });
  });
});
