import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { testGateway } from '../gateway/harness.ts';
import { temporaryFolder } from '../support/net.ts';
import { at, STORE } from './admin-command.ts';

describe('paybox admin', () => {
  it('REG-4 paybox admin adds a shop from nothing, lists it page by page, and shows a secret once', async () => {
    const gateway = await testGateway(STORE);
    const admin = at(gateway);
    const folder = await temporaryFolder();
    const file = join(folder, 'till.yaml');
    await writeFile(file, 'kind: sepay\nauth: { kind: apikey, key: key-of-the-till }\n');
    const partner = await admin('partners', 'add', 'shop', '--callback-url', 'https://shop.example/sync');
    const password = /^password: (\S{32})$/m.exec(partner.output)?.[1] ?? '';
    expect(partner).toEqual({ code: 0, output: expect.stringContaining('shown once') });
    expect(typeof (await gateway.token('shop', password))).toBe('string');
    const steps: [args: string[], says: string][] = [
      [['accounts', 'add', '0077', '--bank', 'MB', '--holder', 'LE VAN C', '--partner', 'shop'], '0077 is added'],
      [['boxes', 'add', 'VVB000077', '--serial', 'VVB900077'], 'VVB000077 is added'],
      [['boxes', 'link', 'VVB000077', '0077'], 'VVB000077 is linked'],
      [['boxes', 'list', '--account', '0077'], 'VVB000077  VVB900077  0077     must enrol'],
      [['boxes', 'list', '--limit', '2', '--after', 'VVB000002'], 'there may be more: --after VVB000004, or --all'],
      [['accounts', 'change', '0077', '--holder', 'PHAM VAN D', '--content-prefix', 'code'], '0077 is changed'],
      [['accounts', 'show', '0077'], 'userBankName   PHAM VAN D'],
      [['partners', 'show', 'shop'], '"url":"https://shop.example/sync"'],
      [['partners', 'disable', 'shop'], 'shop is disabled'],
      [['partners', 'list'], 'shop     https://shop.example/sync  disabled'],
      [['boxes', 'unlink', 'VVB000077'], 'VVB000077 is unlinked'],
      [['boxes', 'rotate', 'VVB000077'], 'VVB000077 must enrol again: paybox enrol'],
      [['boxes', 'remove', 'VVB000077'], 'VVB000077 is removed'],
      [['sources', 'add', 'till', '--file', file], 'it is heard at /hooks/till'],
      [['sources', 'list'], 'till    sepay  /hooks/till'],
      [
        ['audit', '--target', 'accounts/0077'],
        'loopback  127.0.0.1  changed  accounts/0077  {"userBankName":"PHAM VAN D"',
      ],
    ];
    for (const [args, says] of steps) {
      const { code, output } = await admin(...args);
      expect([args, code, output]).toEqual([args, 0, expect.stringContaining(says)]);
    }
    const json = await admin('sources', 'rotate', 'till', '--json');
    expect(JSON.parse(json.output)).toEqual({ status: 'SUCCESS', message: '', key: expect.any(String) });
    const all = await admin('boxes', 'list', '--all', '--json');
    expect(all.output.trim().split('\n')).toHaveLength(4);
    const secrets = [password, 'key-of-the-till', JSON.parse(json.output).key as string];
    const said = [
      await admin('audit'),
      await admin('sources', 'show', 'till'),
      gateway.log,
      await gateway.mock('/wire'),
    ];
    for (const secret of secrets) expect(JSON.stringify(said)).not.toContain(secret);
  });
});
