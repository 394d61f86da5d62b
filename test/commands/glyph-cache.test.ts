import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { shareGlyphs } from '../../src/commands/shared/glyph-cache.ts';
import { temporaryFolder } from '../support/net.ts';

/** The folder that this process is told after the call. */
function shared(): string | undefined {
  shareGlyphs();
  return process.env.PAYBOX_GLYPH_CACHE;
}

describe('the folder of glyphs for boxes that are thrown away', () => {
  let cache = '';
  beforeEach(async () => {
    cache = await temporaryFolder();
    vi.stubEnv('XDG_CACHE_HOME', cache);
    vi.stubEnv('PAYBOX_GLYPH_CACHE', '');
    return () => vi.unstubAllEnvs();
  });

  it("the folder of glyphs is in the user's cache, and nobody else's", async () => {
    expect(shared()).toBe(join(cache, 'paybox/glyphs'));
    expect((await stat(join(cache, 'paybox/glyphs'))).mode & 0o777).toBe(0o700);
  });

  it('there is no folder of glyphs where others can write', async () => {
    await chmod(cache, 0o777);
    expect(shared()).toBe('');
  });

  it('the folder of glyphs is the one that the environment names', () => {
    vi.stubEnv('PAYBOX_GLYPH_CACHE', '/elsewhere');
    expect(shared()).toBe('/elsewhere');
  });
});
