import { readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

const EXAMPLES = resolve(import.meta.dirname, '../../device-config');

describe('paybox config', () => {
  it.each(readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml')))(
    'finds the example %s valid',
    async (name) => {
      const file = join(EXAMPLES, name);
      const kind = /^(gateway|paybox)/.exec(name)?.[0].replace('paybox', 'box') ?? 'agent';
      expect(await payboxToEnd('config', 'check', file)).toEqual({
        code: 0,
        output: `${file} is a valid ${kind} configuration\n`,
      });
    },
  );

  it('paybox config names file, path and what was expected, and ends with 2', async () => {
    const file = join(await temporaryFolder(), 'box.yaml');
    await writeFile(file, 'box: {terminalCode: X1}\ndisplays: [{driver: cinema}]\nspeling: 1\n');
    const { code, output } = await payboxToEnd('config', 'check', file);
    expect(code).toBe(2);
    expect(output).toContain('box.yaml:1:7: box.terminalCode: expected VVB followed by six digits');
    expect(output).toMatch(/box\.yaml:2:13: displays\.0\.driver: expected one of .*browser/);
    expect(output).toContain('speling');
    await writeFile(file, 'boks: {terminalCode: VVB000001}\ndisplays: [{driver: browser}]\n');
    expect((await payboxToEnd('config', 'check', file)).output).toMatch(/unknown key boks\n/);
    await writeFile(file, 'box: {\n');
    expect(await payboxToEnd('config', 'check', file)).toMatchObject({
      code: 2,
      output: expect.stringMatching(/box\.yaml:\d/),
    });
    expect(await payboxToEnd('config', 'check', `${file}.none`)).toMatchObject({ code: 2 });
  });

  it('paybox config prints the effective configuration, defaults filled in and secrets masked', async () => {
    const { code, output } = await payboxToEnd('config', 'print', join(EXAMPLES, 'gateway.yaml'));
    expect(code).toBe(0);
    expect(output).toContain('confirmTimeoutMs: 5000');
    expect(output).toContain('username: demo');
    expect(output).not.toMatch(/demo-secret|Sample-box-secret-known-to-all/);
  });

  it('paybox config prints where a database is, and not its password', async () => {
    const file = join(await temporaryFolder(), 'gateway.yaml');
    await writeFile(file, 'dataDir: data\ndatabaseUrl: postgres://paybox:hunter22@db.example:5432/shop\n');
    const { output } = await payboxToEnd('config', 'print', file);
    expect(output).toContain('databaseUrl: postgres://paybox:***@db.example:5432/shop');
    expect(output).not.toContain('hunter22');
  });

  it('paybox config prints the sources of a gateway without their keys', async () => {
    const file = join(await temporaryFolder(), 'gateway.yaml');
    const sources = [
      { kind: 'sepay', name: 'a', auth: { kind: 'apikey', key: 'hidden-1' } },
      { kind: 'casso', name: 'b', auth: { kind: 'signature', key: 'hidden-2', previousKey: 'hidden-3' } },
      { kind: 'payos', name: 'c', checksumKey: 'hidden-4' },
      { kind: 'vietqr', name: 'd', username: 'shown', password: 'hidden-5' },
    ];
    await writeFile(file, JSON.stringify({ dataDir: 'data', sources, http: { tls: { cert: 'a.pem', key: 'b.pem' } } }));
    const { output } = await payboxToEnd('config', 'print', file);
    expect(output).toContain("key: '***'".replaceAll("'", '"'));
    expect(output).toContain('b.pem');
    expect(output).not.toContain('hidden');
  });

  it.each(['agent', 'box', 'gateway'])('prints the JSON schema of the %s', async (kind) => {
    const { code, output } = await payboxToEnd('config', 'schema', kind);
    expect(code).toBe(0);
    expect(JSON.parse(output)).toMatchObject({ type: 'object', additionalProperties: false });
  });
});
