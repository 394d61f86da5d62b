import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const rows = readFileSync(new URL('FAULTS.md', import.meta.url), 'utf8').matchAll(
  /\| `([\w/.-]+\.test\.ts)`: (.+) \|$/gm,
);
const named = [...rows].map(([, file = '', title = '']) => ({ file, title }));

it('FAULTS.md names tests', () => {
  expect(named.length).toBeGreaterThan(30);
});

it.each(named)('FAULTS.md: there is a test "$title" in $file', ({ file, title }) => {
  expect(readFileSync(new URL(file, import.meta.url), 'utf8')).toContain(title);
});
