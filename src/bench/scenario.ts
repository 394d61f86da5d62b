import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { checkConfig, parseYaml } from '../lib/config-file.ts';
import { ConfigError, reasonOf } from '../lib/errors.ts';
import { SCREEN_KINDS } from './screen-kind.ts';
import { DURATION, durationMs } from './values.ts';

/** Limits of one scenario, so that a file with a slip ends. */
const LIMITS = {
  fileChars: 200_000,
  steps: 1_000,
  branches: 50,
  times: 10_000,
  boxes: 1_000,
  waitMs: 7 * 86_400_000,
  textChars: 2_000,
} as const;

const FIX = 'see `paybox bench list` for scenarios that work, and `paybox config schema scenario` for every key';

const VARIABLE = `or a variable, as \${amount}`;
const name = z.string().regex(/^[A-Za-z][\w-]{0,40}$/, 'expected a name of letters, digits, - and _');
const text = z.string().min(1).max(LIMITS.textChars);
/** A number or a text: YAML tells `order: 17` from `order: "17"`, people do not. */
const value = z.union([text, z.number(), z.boolean(), z.null()], { error: 'expected a text or a number' });
const word = z.union([text, z.number()], { error: `expected a text ${VARIABLE}` });
const amount = z.union([z.int().min(0), z.string().regex(/\$\{/, `expected whole đồng ${VARIABLE}`)], {
  error: `expected whole đồng ${VARIABLE}`,
});
const TIMED = 'expected a time with its unit, as 300ms, 5s, 2min or 1h, of a week at most';
const duration = z
  .string(TIMED)
  .regex(DURATION, TIMED)
  .refine((it) => (durationMs(it) ?? 0) <= LIMITS.waitMs, TIMED);
const oneOf = <const T extends readonly [string, ...string[]]>(words: T) =>
  z.enum(words, `expected one of ${words.join(', ')}`);
const fields = z.record(z.string(), z.unknown());
const answer = word.describe('what the service is to answer: SUCCESS, or the code of a refusal; SUCCESS if left out');

const token = z
  .literal('first')
  .optional()
  .describe('with the first token of the scenario, however old; a new one if left out');

const order = {
  amount,
  content: word.describe('at most 19 letters, digits and spaces, if it is to be paid'),
  order: word.optional().describe('orderId; made up if left out'),
  token,
};

const expectation = z
  .strictObject({
    within: duration.optional().describe('how long it may take until all of it is so; 5s if left out'),
    for: duration.optional().describe('how long it then has to stay so'),
    state: text.optional().describe("state of the box's /status, as idle, showing or paid"),
    screen: oneOf(SCREEN_KINDS).optional().describe('what kind of screen the box shows'),
    text: z
      .union([text, z.array(text).min(1)])
      .optional()
      .describe('words on the screen, all of them'),
    'no text': z
      .union([text, z.array(text).min(1)])
      .optional()
      .describe('words that are not on the screen'),
    qr: word.optional().describe('what a decoder reads in a picture of the screen; none: there is no QR'),
    online: z.boolean().optional(),
    status: fields.optional().describe("parts of the box's /status, as { lastPayment: { amount: 50000 } }"),
    unreachable: z.literal(true).optional().describe('the box is off'),
    report: z
      .union(
        [
          z.strictObject({ order: word, status: text }),
          z.strictObject({ payment: word }).describe('the box has reported to the gateway that it shows this payment'),
        ],
        { error: 'expected { order: ID, status: shown } or { payment: ID }' },
      )
      .optional()
      .describe('what the gateway knows from the box'),
    callback: z
      .strictObject({
        payment: word.describe(`transaction id, as \${pay.transactionId}`),
        status: oneOf(['delivered', 'pending', 'failed']).optional().describe('delivered if left out'),
        attempts: z.int().min(0).optional().describe('exactly so many have been made'),
        fields: fields.optional().describe("parts of the callback's body, as { orderId: DH001 }"),
      })
      .optional()
      .describe("what reached the partner's server"),
    golden: text.optional().describe('a picture file, relative to this one, that the screen looks like'),
    tolerance: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .describe('share of pixels that may differ from it; 0.001 if left out'),
  })
  .refine(
    (it) => Object.keys(it).some((key) => !['within', 'for', 'tolerance'].includes(key)),
    'expected something to expect',
  );

const fault = z
  .strictObject({
    box: oneOf(['off', 'killed', 'on']).optional().describe('off: ended in order; killed: as by a power cut'),
    gateway: oneOf(['off', 'killed', 'on']).optional(),
    partner: z
      .strictObject({
        answer: z
          .union([z.int().min(100).max(599), oneOf(['wrong-shape', 'never', 'ok'])], {
            error: 'expected an HTTP status, wrong-shape, never or ok',
          })
          .describe('what the next callbacks are answered with'),
        times: z.int().min(1).max(LIMITS.times).optional().describe('how many of them; 1 if left out'),
      })
      .optional(),
  })
  .refine((it) => Object.keys(it).length === 1, 'expected one of box, gateway and partner');

const steps: z.ZodType<Step[]> = z.lazy(() => z.array(step).min(1).max(LIMITS.steps));

const verbs = {
  generate: z
    .strictObject({ ...order, answer: answer.optional() })
    .describe('makes an order and its QR, and shows it nowhere'),
  push: z
    .strictObject({
      ...order,
      answer: answer.optional(),
      change: fields.optional().describe('fields of send-qr to send instead; the checkSum is over them'),
    })
    .describe('makes an order and sends its QR to the box'),
  pay: z
    .strictObject({ amount, content: word, debit: z.literal(true).optional(), token, answer: answer.optional() })
    .describe('a simulated payment'),
  cancel: z.strictObject({ order: word, answer: answer.optional() }).describe('takes an order back'),
  enrol: z
    .strictObject({ code: word.optional().describe('the one on the screen if left out'), answer: answer.optional() })
    .describe('accepts a box without a secret at the gateway'),
  expect: expectation.describe('waits until all of it is so'),
  wait: duration.describe('lets time pass; in no time on emulated boxes'),
  press: oneOf(['dismiss', 'repeat', 'history']).describe('a key of the box'),
  fault: fault.describe('makes something go wrong, or right again'),
  set: z.record(name, value).describe('variables'),
  repeat: z.strictObject({ times: z.int().min(1).max(LIMITS.times), steps }).describe(`\${n} counts from 1`),
  parallel: z.array(steps).min(2).max(LIMITS.branches).describe('lists of steps, all at once'),
  'for each box': steps.describe(`the same for every box, all at once; \${n} counts the boxes from 1`),
} as const;

export type Verb = keyof typeof verbs;
/** Every verb of a step. */
export const VERBS = Object.keys(verbs) as Verb[];

type Of<V extends Verb> = z.output<(typeof verbs)[V]>;

/** One step: exactly one of the verbs, and what belongs to every step. */
export interface Step {
  title?: string | undefined;
  as?: string | undefined;
  box?: number | undefined;
  generate?: Of<'generate'> | undefined;
  push?: Of<'push'> | undefined;
  pay?: Of<'pay'> | undefined;
  cancel?: Of<'cancel'> | undefined;
  enrol?: Of<'enrol'> | undefined;
  expect?: Of<'expect'> | undefined;
  wait?: string | undefined;
  press?: Of<'press'> | undefined;
  fault?: Of<'fault'> | undefined;
  set?: Record<string, string | number | boolean | null> | undefined;
  repeat?: { times: number; steps: Step[] } | undefined;
  parallel?: Step[][] | undefined;
  'for each box'?: Step[] | undefined;
}

export type Expectation = Of<'expect'>;
export type FaultArgs = Of<'fault'>;

const optionalVerbs = Object.fromEntries(
  Object.entries(verbs).map(([verb, schema]) => [verb, (schema as z.ZodType).optional()]),
);

const step = z
  .strictObject({
    title: text.optional().describe('what it is for, in reports'),
    as: name.optional().describe('a name for its result, besides its verb'),
    box: z.int().min(1).max(LIMITS.boxes).optional().describe('which box, from 1 on; the first if left out'),
    ...optionalVerbs,
  })
  .refine((it) => VERBS.filter((verb) => verb in it).length === 1, `expected exactly one of ${VERBS.join(', ')}`)
  .meta({ id: 'step', oneOf: VERBS.map((verb) => ({ required: [verb] })) }) as unknown as z.ZodType<Step>;

/** What a scenario file holds; `paybox config schema scenario` prints it. Unknown keys are errors. */
export const scenarioSchema = z
  .strictObject({
    $schema: z.string().optional().describe('for editors'),
    name: text.describe('one line, for reports'),
    about: text.optional().describe('what it is for'),
    boxes: z.int().min(1).max(LIMITS.boxes).default(1).describe('how many it needs'),
    enrolled: z.boolean().default(true).describe('false: the boxes start without a secret'),
    variables: z.record(name, value).default({}).describe(`used as \${name}`),
    steps,
  })
  .describe(
    'A scenario of paybox bench: what a partner and a payer do, and what is expected of boxes, gateway and callbacks',
  );

/** A checked scenario. */
export interface Scenario extends z.output<typeof scenarioSchema> {
  /** The file's name, as messages call it. */
  file: string;
  /** The file's folder, from which its golden pictures are taken. */
  folder: string;
  /** The line of a step, from 1 on. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Reads and checks a scenario file. Throws ConfigError: file, line, path and what was expected. */
export async function readScenario(path: string): Promise<Scenario> {
  const source = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new ConfigError(
      `${path}: cannot be read: ${reasonOf(error)}`,
      'name a scenario file, or one of `paybox bench list`',
    );
  });
  return parseScenario(source, basename(path), dirname(path));
}

/** Checks a scenario that may not be from a file, as `file` in messages. Throws ConfigError. */
export function parseScenario(source: string, file: string, folder = '.'): Scenario {
  if (source.length > LIMITS.fileChars) {
    throw new ConfigError(`${file}: has ${source.length} characters, expected at most ${LIMITS.fileChars}`);
  }
  const { value, lineOf } = parseYaml(source, file);
  const checked = checkConfig(scenarioSchema, value, file, FIX, lineOf);
  return { ...checked, file, folder, lineOf };
}
