import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readBoxFile } from '../../src/device/agent/setup/box-file.ts';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

const BOX1 = 'VVB000001:VVB900001';
const BOX2 = 'VVB000002:VVB900002';
const GATEWAY = 'https://gateway.example:8443';

/** A card's boot partition, as a Raspberry Pi has it, and a folder beside it. */
async function card() {
  const root = await temporaryFolder();
  const [boot, out] = [join(root, 'boot'), join(root, 'made')];
  await mkdir(boot);
  await writeFile(join(boot, 'cmdline.txt'), 'quiet\n');
  const file = join(boot, 'paybox.yaml');
  const run = (...args: string[]) => payboxToEnd('provision', ...args);
  return { boot, out, file, run, read: async () => readBoxFile(await readFile(file), undefined).settings };
}

describe('paybox provision for the card of a box', () => {
  it('writes what a new box needs for an authority of its own, beside that', async () => {
    const { boot, out, run, read } = await card();
    const { code, output } = await run('--out', out, '--host', 'gateway.example', '--box', BOX1, '--boot', boot);
    expect(code, output).toBe(0);
    const secret = (await readFile(join(out, 'boxes/VVB000001/secret'), 'utf8')).trim();
    const settings = await read();
    expect(settings).toMatchObject({
      terminalCode: 'VVB000001',
      serialNumber: 'VVB900001',
      gateway: 'mqtts://gateway.example:8883',
      secret,
      ca: await readFile(join(out, 'ca.pem'), 'utf8'),
      key: await readFile(join(out, 'boxes/VVB000001/key.pem'), 'utf8'),
    });
    expect(output).not.toContain(secret);
    expect(output).toContain('put it into the box and switch that on');
    expect(await readdir(boot)).toEqual(['cmdline.txt', 'paybox.yaml']);
  });

  it('writes another card for a box that is there already, with the secret that it has', async () => {
    const { boot, out, run, read } = await card();
    await run('--out', out, '--host', 'gateway.example', '--box', BOX1);
    const secret = (await readFile(join(out, 'boxes/VVB000001/secret'), 'utf8')).trim();
    expect(await run('--out', out, '--box', BOX1, '--boot', boot)).toMatchObject({ code: 0 });
    expect((await read()).secret).toBe(secret);
  });

  it('writes one for a box that enrols at a gateway which is there, with its Wi-Fi', async () => {
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

  it("does not write over another box's file unless told, and over its own at any time", async () => {
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

  it.each([
    ['an authority on a card', ['--box', BOX1], /is a boot partition: the key of an authority must not be there/],
    ['two boxes on one card', ['--gateway', GATEWAY, '--box', BOX1, '--box', BOX2], /expected one --box/],
    ['no box', ['--gateway', GATEWAY], /expected one --box/],
    [
      'an address without TLS',
      ['--gateway', 'http://a.example', '--box', BOX1],
      /gateway: expected an address with TLS/,
    ],
    [
      'a broker and nowhere to enrol',
      ['--gateway', 'mqtts://a.example', '--box', BOX1],
      /enrolment: expected the addr/,
    ],
    ['two gateways', ['--gateway', GATEWAY, '--host', 'a.example', '--box', BOX1], /expected no --host/],
    ['a CA that is none', ['--gateway', GATEWAY, '--ca', '/dev/null', '--box', BOX1], /ca: expected/],
    [
      'a password without network',
      ['--gateway', GATEWAY, '--box', BOX1, '--wifi-country', 'VN'],
      /expected --wifi beside/,
    ],
  ])('refuses %s, and writes nothing', async (_what, args, message) => {
    const { boot, run } = await card();
    const { code, output } = await run('--out', boot, ...args);
    expect(output).toMatch(message);
    expect(code).toBe(2);
    expect(await readdir(boot)).toEqual(['cmdline.txt']);
  });

  it('refuses a gateway that only its own machine would find', async () => {
    const { boot, out, run } = await card();
    const { code, output } = await run('--out', out, '--box', BOX1, '--boot', boot);
    expect({ code, output }).toEqual({ code: 2, output: expect.stringContaining('name the gateway with --host') });
    expect(await readdir(join(boot, '..'))).toEqual(['boot']);
  });

  it('refuses a card that is not there', async () => {
    const { boot, out, run } = await card();
    const away = join(boot, 'away');
    expect(await run('--out', out, '--box', BOX1, '--boot', away)).toMatchObject({
      code: 2,
      output: expect.stringContaining('mount the boot partition'),
    });
    expect(await readdir(boot)).toEqual(['cmdline.txt']);
  });
});
