import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/paybox-tests/node');

/**
 * Gives all programs of a run two caches where nobody else can write: the letters that boxes draw for their screens,
 * gone after the run, and the code that Node has compiled, for the next run too.
 */
export default function setup(): (() => void) | undefined {
  if (process.env.PAYBOX_GLYPH_CACHE !== undefined) return undefined;
  const glyphs = mkdtempSync(join(tmpdir(), 'paybox-glyphs-'));
  process.env.PAYBOX_GLYPH_CACHE = glyphs;
  process.env.NODE_COMPILE_CACHE ??= COMPILED;
  return () => rmSync(glyphs, { recursive: true, force: true, maxRetries: 5 });
}
