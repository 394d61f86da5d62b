import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BOX1, BOX2, card, GATEWAY } from './boot-file-fixture.ts';

describe('paybox provision for the card of a box', () => {
  it('paybox provision writes what a new box needs for an authority of its own, beside its card', async () => {
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

  it('paybox provision writes another card for a box that is there already, with the secret that it has', async () => {
    const { boot, out, run, read } = await card();
    await run('--out', out, '--host', 'gateway.example', '--box', BOX1);
    const secret = (await readFile(join(out, 'boxes/VVB000001/secret'), 'utf8')).trim();
    expect(await run('--out', out, '--box', BOX1, '--boot', boot)).toMatchObject({ code: 0 });
    expect((await read()).secret).toBe(secret);
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

  it('paybox provision refuses a gateway that only its own machine would find', async () => {
    const { boot, out, run } = await card();
    const { code, output } = await run('--out', out, '--box', BOX1, '--boot', boot);
    expect({ code, output }).toEqual({ code: 2, output: expect.stringContaining('name the gateway with --host') });
    expect(await readdir(join(boot, '..'))).toEqual(['boot']);
  });

  it('paybox provision refuses a card that is not there', async () => {
    const { boot, out, run } = await card();
    const away = join(boot, 'away');
    expect(await run('--out', out, '--box', BOX1, '--boot', away)).toMatchObject({
      code: 2,
      output: expect.stringContaining('mount the boot partition'),
    });
    expect(await readdir(boot)).toEqual(['cmdline.txt']);
  });
});
