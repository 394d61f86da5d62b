import { cacheFolder } from '../../lib/cache-folder.js';

/**
 * Makes the boxes of this process, and of programs that it starts, share one folder of glyphs. A box with its own data
 * folder draws them once. A box with a temporary folder would draw them each time.
 */
export function shareGlyphs(): void {
  const folder = cacheFolder('glyphs');
  if (folder !== undefined) process.env.PAYBOX_GLYPH_CACHE ||= folder;
}
