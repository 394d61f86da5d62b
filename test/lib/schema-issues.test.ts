import { expect, it } from 'vitest';
import { z } from 'zod';
import { expectedBy } from '../../src/lib/schema-issues.ts';

const NAMED = z.strictObject({ name: z.string() });

it.each<[words: string, schema: z.ZodType, value: unknown]>([
  ['expected a text, received a number', z.string(), 1],
  ['expected a whole number', z.int(), 1.5],
  ['expected a whole number of at most 15 digits', z.int(), 1e20],
  ['expected a number of at most 5', z.int().max(5), 9],
  ['expected a list of at least 1 item', z.array(z.string()).min(1), []],
  ['expected as its key a text of at most 3 characters', z.record(z.string().max(3), z.string()), { abcd: '' }],
  ['expected a text or a number', z.union([z.string(), z.number()]), true],
  ['expected another value', z.union([z.string(), NAMED]), { name: 1 }],
])('a problem with a value says "%s"', (words, schema, value) => {
  const issues = schema.safeParse(value).error?.issues ?? [];
  expect(issues.map((it) => expectedBy(it))).toEqual([words]);
});
