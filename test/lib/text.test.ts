import { expect, it } from 'vitest';
import { table } from '../../src/lib/text.ts';

it('aligns columns over shorter rows, as between two parts of a table', () => {
  const rows = [['a', 'count', 'p50'], ['a long name', '1', '2'], [], ['short', '30']];
  expect(table(rows)).toBe('a            count  p50\na long name  1      2\n\nshort        30');
  expect(table([])).toBe('');
});
