import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { volatileRoot } from '../../../src/bench/targets/volatile.ts';
import { temporaryFolder } from '../../support/net.ts';

it('what need not last is kept where there is room for it, and else in the temporary folder', async () => {
  const folder = await temporaryFolder();
  expect(await volatileRoot(1, folder)).toBe(folder);
  expect(await volatileRoot(Number.MAX_SAFE_INTEGER, folder)).toBe(tmpdir());
  expect(await volatileRoot(1, join(folder, 'none'))).toBe(tmpdir());
});
