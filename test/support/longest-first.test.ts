import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SECONDS } from './longest-first.ts';

it('the files that are started first are there', () => {
  const missing = Object.keys(SECONDS).filter(
    (name) => !existsSync(join(import.meta.dirname, '..', `${name}.test.ts`)),
  );
  expect(missing).toEqual([]);
});
