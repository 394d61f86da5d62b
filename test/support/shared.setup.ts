import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeProgramCode } from './program-code.ts';

/** Gives all programs of a test run their code in few files, and two caches: the glyphs of box screens, and Node's compile cache. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.PAYBOX_TEST_CODE !== undefined) return undefined;
  const code = await makeProgramCode();
  process.env.PAYBOX_TEST_CODE = code.folder;
  const glyphs = mkdtempSync(join(tmpdir(), 'paybox-glyphs-'));
  process.env.PAYBOX_GLYPH_CACHE = glyphs;
  process.env.NODE_COMPILE_CACHE = join(code.folder, 'compiled');
  return async () => {
    rmSync(glyphs, { recursive: true, force: true, maxRetries: 5 });
    await code.end();
  };
}
