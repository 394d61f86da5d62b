import { z } from 'zod';
import { suggestion } from '../../lib/suggestion.ts';
import { CODES } from '../../protocol/codes.ts';
import { DURATION, durationMs, SPAN, spanMs } from './durations.ts';

/** The limits of one scenario, so that a mistake in a file cannot run forever. */
export const LIMITS = {
  fileChars: 200_000,
  steps: 1_000,
  branches: 50,
  times: 10_000,
  stepsInAll: 1_000_000,
  boxes: 1_000,
  waitMs: 7 * 86_400_000,
  textChars: 2_000,
  /** The depth of files in files. `includes` counts all files that a scenario includes. */
  includeDepth: 8,
  includes: 200,
} as const;

const VARIABLE = `or a variable, as \${amount}`;

export const name = z.string().regex(/^[A-Za-z][\w-]{0,40}$/, 'expected a name of letters, digits, - and _');
export const text = z.string().min(1).max(LIMITS.textChars);
/** A number or a text. YAML distinguishes `order: 17` from `order: "17"`, but people do not. */
export const value = z.union([text, z.number(), z.boolean(), z.null()], { error: 'expected a text or a number' });
export const word = z.union([text, z.number()], { error: `expected a text ${VARIABLE}` });
export const amount = z.union([z.int().min(0), z.string().regex(/\$\{/, `expected whole đồng ${VARIABLE}`)], {
  error: `expected whole đồng ${VARIABLE}`,
});
const TIMED = 'expected a time with its unit, as 300ms, 5s, 2min or 1h, of a week at most';
const SPANNED = `${TIMED}, or between two, as 30s to 5min`;
export const duration = z
  .string(TIMED)
  .regex(DURATION, TIMED)
  .refine((it) => (durationMs(it) ?? 0) <= LIMITS.waitMs, TIMED);
/** A duration, or a range from which the run's seed chooses. */
export const pause = z
  .string(SPANNED)
  .regex(SPAN, { error: SPANNED, abort: true })
  .refine((it) => (spanMs(it)?.[1] ?? Number.POSITIVE_INFINITY) <= LIMITS.waitMs, SPANNED);
/** The number of times that something happens. */
export const times = z.int().min(1).max(LIMITS.times);
const COUNTED = `expected a whole number, or a variable, as \${count}`;
/** The expected number of things. */
export const count = z.union([z.int().min(0), z.string().regex(/^\$\{[^{}]*\}$/, COUNTED)], { error: COUNTED });
const ROUNDS = `expected a whole number from 1 to ${LIMITS.times}, or a variable, as \${count}`;
/** The number of rounds of steps. A variable is evaluated when the steps run. */
export const rounds = z.union([times, z.string().regex(/^\$\{[^{}]*\}$/, ROUNDS)], { error: ROUNDS });
const CONDITION = `expected true, false or a condition, as \${n == 3}`;
export const condition = z.union([z.boolean(), z.string().regex(/^\$\{[^{}]*\}$/, CONDITION)], { error: CONDITION });
/** A scenario file in the folder of this one. */
export const fileName = text.regex(/^[^/\\].*\.ya?ml$/, 'expected a relative path that ends in .yaml');
export const fields = z
  .record(z.string(), z.unknown())
  .refine((it) => Object.keys(it).length > 0, 'expected at least one field')
  .meta({ minProperties: 1 });
const ANSWERS = ['SUCCESS', ...Object.keys(CODES)];
/** A code that the public service has besides those of PROTOCOL.md. */
const PUBLIC_CODE = /^E\d{2,3}$/;
const answerWord = word.refine(
  (it) => typeof it === 'number' || it.includes('${') || PUBLIC_CODE.test(it) || ANSWERS.includes(it),
  { error: ({ input }) => `expected SUCCESS, a code of CODES.md or a variable${suggestion(String(input), ANSWERS)}` },
);
export const answer = answerWord.describe('expected answer of the service: SUCCESS (default) or a refusal code');
export const answers = z.union([answer, z.array(answerWord).min(1).describe('any of these')], {
  error: ({ input, errors }) => {
    const [first] = errors?.[Array.isArray(input) ? 1 : 0] ?? [];
    return first?.message ?? 'expected a text, or a list of them';
  },
});

/** Returns the schema for a word of a closed set. */
export const oneOf = <const T extends readonly [string, ...string[]]>(words: T) =>
  z.enum(words, `expected one of ${words.join(', ')}`);

/** Returns the schema for a word of a closed set, or a variable that has one. */
export const oneOfOrVariable = <const T extends readonly [string, ...string[]]>(words: T) => {
  const error = `expected a variable, or one of ${words.join(', ')}`;
  return z.union([z.enum(words), z.string().regex(/\$\{/, error)], { error });
};
