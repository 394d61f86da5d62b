import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/paybox-tests/node');

/**
 * Gives all programs of a test run two private caches: the glyphs of box screens, deleted after the run, and Node's compile cache,
 * kept for the next run.
 */
export default function setup(): (() => void) | undefined {
  if (process.env.PAYBOX_GLYPH_CACHE !== undefined) return undefined;
  const glyphs = mkdtempSync(join(tmpdir(), 'paybox-glyphs-'));
  process.env.PAYBOX_GLYPH_CACHE = glyphs;
  process.env.NODE_COMPILE_CACHE ??= COMPILED;
  return () => rmSync(glyphs, { recursive: true, force: true, maxRetries: 5 });
}
