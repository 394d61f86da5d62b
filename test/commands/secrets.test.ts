import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { secretFrom } from '../../src/commands/shared/secrets.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

it('a secret is read from a file, without the end of its line', async () => {
  const file = join(await temporaryFolder(), 'secret');
  await writeFile(file, 'pässword with spaces\r\n');
  expect(secretFrom('--password-file', file)).toBe('pässword with spaces');
});

it.each([
  ['an empty one', ''],
  ['two lines', 'one\ntwo\n'],
  ['an endless one', 'x'.repeat(5_000)],
])(
  'a file that holds no secret is an error that tells the option, and not what it holds: %s',
  async (_what, content) => {
    const file = join(await temporaryFolder(), 'secret');
    await writeFile(file, content);
    const read = () => secretFrom('--admin-token-file', file);
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(`--admin-token-file ${file}: expected one line that is the secret`);
  },
);

it.each([
  ['push', ['--password-file', '/nonexistent/secret']],
  ['pay', ['--password-file', '/nonexistent/secret']],
  ['up', ['--no-open', '--callback-auth-file', '/nonexistent/secret']],
  ['up', ['--no-open', '--callback-auth', 'bearer-file:/nonexistent/secret']],
  ['enrol', ['--admin-token-file', '/nonexistent/secret']],
])('paybox %s ends with 2 where the file of its secret is not there', async (command, args) => {
  const order = command === 'push' || command === 'pay' ? ['--amount', '1', '--content', 'X'] : [];
  const url = `http://127.0.0.1:${await freePort()}`;
  const option = command === 'up' ? '--callback-url' : '--gateway';
  const at = [option, url];
  const { code, output } = await payboxToEnd(command, ...order, ...at, ...args);
  expect([code, output]).toEqual([2, expect.stringContaining('/nonexistent/secret cannot be read')]);
});

it.each(['bearer:hidden-token-7735', 'token:shop:hidden-token-7735@http://127.0.0.1:1/token'])(
  'THR-22 paybox up takes no secret on its command line, and does not say it again: %s',
  async (how) => {
    const { code, output } = await payboxToEnd('up', '--no-open', '--callback-auth', how);
    expect([code, output]).toEqual([2, expect.stringContaining('bearer-file:FILE')]);
    expect(output).not.toContain('hidden-token-7735');
  },
);
