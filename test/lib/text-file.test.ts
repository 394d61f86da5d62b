import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { adminTokenOf, secretFrom } from '../../src/commands/shared/secrets.ts';
import { loadGatewayConfig } from '../../src/gateway/config/config.ts';
import { readSecretFile } from '../../src/lib/config-file.ts';
import { readFileText } from '../../src/lib/files.ts';
import { temporaryFolder } from '../support/net.ts';

const ENCODINGS: [string, Buffer, RegExp][] = [
  ['CP1258', Buffer.from('m\xe2t kh\xe2u\n', 'latin1'), /:1: has letters that are not UTF-8$/],
  ['CP1258 in its third line', Buffer.from('a\nb\r\nm\xe2t\n', 'latin1'), /:3: has letters that are not UTF-8$/],
  ['UTF-16', Buffer.from('\ufeffsecret', 'utf16le'), /:1: is UTF-16, expected UTF-8$/],
  ['UTF-16, most significant byte first', Buffer.from('\ufeffsecret', 'utf16le').swap16(), /:1: is UTF-16/],
  ['UTF-16 without a mark', Buffer.from('secret', 'utf16le'), /:1: is no text$/],
];

async function fileOf(bytes: Buffer | string, name = 'x.yaml') {
  const folder = await temporaryFolder();
  await writeFile(join(folder, name), bytes);
  return { folder, path: join(folder, name) };
}

describe.each(ENCODINGS)('a file in %s', (_what, bytes, problem) => {
  it('THR-47 is refused by line as a secret, without the secret', async () => {
    const { folder, path } = await fileOf(bytes, 'secret');
    expect(() => secretFrom('--password-file', path)).toThrow(problem);
    const read = () =>
      readSecretFile({ option: 'box.secretFile', file: 'secret' }, { name: 'agent.yaml', folder }, z.string());
    expect(read).toThrow(problem);
    await expect(readFileText(path)).rejects.toThrow(problem);
  });

  it('THR-47 is refused by line as a configuration', async () => {
    const { path } = await fileOf(bytes);
    await expect(loadGatewayConfig(path)).rejects.toThrow(problem);
  });
});

it('a byte order mark of UTF-8 is no part of a secret', async () => {
  const { path } = await fileOf('\ufeffmật khẩu\r\n');
  expect(secretFrom('--password-file', path)).toBe('mật khẩu');
});

it('THR-47 a token of the environment in another encoding is refused', () => {
  vi.stubEnv('PAYBOX_ADMIN_TOKEN', 'kh\ufffdu');
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  expect(() => adminTokenOf({})).toThrow('the token of the environment is not UTF-8');
});

it.each([
  ['0123456789', /x\.yaml:3:18: not valid YAML: a number that begins with 0 would lose it$/],
  ['9876543210', /x\.yaml:3:5: accounts\.0\.bankAccount: .*: put it in quotes$/m],
])('an account %s without quotes is named with line and column', async (account, problem) => {
  const { path } = await fileOf(
    `dataDir: x\naccounts:\n  - bankAccount: ${account}\n    bankCode: MB\n    userBankName: A\n`,
  );
  await expect(loadGatewayConfig(path)).rejects.toThrow(problem);
});
