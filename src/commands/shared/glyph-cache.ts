import { cacheFolder } from '../../lib/cache-folder.js';

/**
 * Has the boxes of this process, and of the programs that it starts, read their glyphs from one folder of the caller.
 * A box with a data folder of its own draws them once; a box whose folder is thrown away would draw them each time.
 */
export function shareGlyphs(): void {
  const folder = cacheFolder('glyphs');
  if (folder !== undefined) process.env.PAYBOX_GLYPH_CACHE ||= folder;
}
