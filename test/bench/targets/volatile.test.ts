import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { memoryFolder } from '../../../src/bench/work-folder.ts';
import { temporaryFolder } from '../../support/net.ts';

it('what need not last is kept where there is room for it, and else in the temporary folder', async () => {
  const folder = await temporaryFolder();
  expect(await memoryFolder(1, folder)).toBe(folder);
  expect(await memoryFolder(Number.MAX_SAFE_INTEGER, folder)).toBe(tmpdir());
  expect(await memoryFolder(1, join(folder, 'none'))).toBe(tmpdir());
});
