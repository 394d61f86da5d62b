import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/lib/errors.ts';
import { ENGINES } from '../support/stores.ts';
import { opened } from './rows.ts';

describe.each(ENGINES)('the store on $name', ({ missing, places }) => {
  const place = places();

  describe.skipIf(missing)('keeps', () => {
    it('the store keeps a second gateway out', async () => {
      const given = await place();
      await opened(given);
      const second = opened(given);
      await expect(second).rejects.toThrow(ConfigError);
      await expect(second).rejects.toMatchObject({ fix: expect.stringContaining('other gateway') });
    });
  });
});
