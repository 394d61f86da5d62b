import { z } from 'zod';
import { expectation } from './expect.ts';
import { faultArgs } from './fault.ts';
import type { Source } from './source.ts';
import {
  amount,
  answer,
  answers,
  condition,
  fields,
  fileName,
  LIMITS,
  name,
  oneOf,
  pause,
  rounds,
  text,
  value,
  word,
} from './values.ts';

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

export const steps: z.ZodType<Step[]> = z.lazy(() => z.array(step).min(1).max(LIMITS.steps));

const verbs = {
  generate: z
    .strictObject({ ...order, answer: answer.optional() })
    .describe('makes an order and its QR, without showing it'),
  push: z
    .strictObject({
      ...order,
      answer: answers.optional(),
      qr: word.optional().describe(`push this QR, for example \${generate.qrCode}; one is generated if left out`),
      change: fields.optional().describe('fields of send-qr to send instead; the checkSum is over them'),
    })
    .describe('makes an order and sends its QR to the box'),
  pay: z
    .strictObject({ amount, content: word, debit: z.literal(true).optional(), token, answer: answer.optional() })
    .describe('a simulated payment'),
  cancel: z.strictObject({ order: word, answer: answer.optional() }).describe('cancels an order'),
  enrol: z
    .strictObject({ code: word.optional().describe('the one on the screen if left out'), answer: answer.optional() })
    .describe('accepts a box without a secret at the gateway'),
  expect: expectation.describe('waits until all conditions are true'),
  wait: pause.describe(
    'lets time pass (skipped on emulated boxes); `30s to 5min` is a random time between the two, by the seed',
  ),
  press: oneOf(['dismiss', 'repeat', 'history']).describe('a key of the box'),
  fault: faultArgs.describe('makes something go wrong, or right again'),
  set: z.record(name, value).describe('variables'),
  repeat: z
    .strictObject({ times: rounds, as: name.optional().describe('the name of the counter; n if left out'), steps })
    .describe(`runs steps several times; \${n} counts from 1`),
  parallel: z.array(steps).min(2).max(LIMITS.branches).describe('lists of steps, run at the same time'),
  'for each box': steps.describe(`the same steps for every box at the same time; \${n} counts the boxes from 1`),
  if: condition.describe('runs the steps in `then` if it is true, else those in `else`'),
  include: fileName.describe('runs the steps of another file; its variables are defaults'),
} as const;

export type Verb = keyof typeof verbs;
/** All step verbs. */
export const VERBS = Object.keys(verbs) as Verb[];

type Of<V extends Verb> = z.output<(typeof verbs)[V]>;

/** One step: exactly one verb, and the options of every step. */
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
  repeat?: { times: number | string; as?: string | undefined; steps: Step[] } | undefined;
  parallel?: Step[][] | undefined;
  'for each box'?: Step[] | undefined;
  if?: boolean | string | undefined;
  then?: Step[] | undefined;
  else?: Step[] | undefined;
  include?: string | undefined;
  /** The file that `include` names, once it has been read. */
  included?: Included | undefined;
}

/** The steps of another file. */
export interface Included {
  source: Source;
  steps: Step[];
  /** The defaults of its variables. */
  variables: Readonly<Record<string, string | number | boolean | null>>;
}

/** The default name of a counter. */
export const COUNTER = 'n';

/** Returns the lists of steps in a step, each with its path in it. Lists of an included file have no path. */
export function listsIn(step: Step): { steps: readonly Step[]; path: (string | number)[] }[] {
  const { repeat, parallel = [], then, else: otherwise, included } = step;
  const each = step['for each box'];
  return [
    ...(repeat === undefined ? [] : [{ steps: repeat.steps, path: ['repeat', 'steps'] }]),
    ...parallel.map((steps, index) => ({ steps, path: ['parallel', index] })),
    ...(each === undefined ? [] : [{ steps: each, path: ['for each box'] }]),
    ...(then === undefined ? [] : [{ steps: then, path: ['then'] }]),
    ...(otherwise === undefined ? [] : [{ steps: otherwise, path: ['else'] }]),
    ...(included === undefined ? [] : [{ steps: included.steps, path: [] }]),
  ];
}

const optionalVerbs = Object.fromEntries(
  Object.entries(verbs).map(([verb, schema]) => [verb, (schema as z.ZodType).optional()]),
);

export const step = z
  .strictObject({
    title: text.optional().describe('what it is for, in reports'),
    as: name.optional().describe('a name for its result, besides its verb'),
    box: z.int().min(1).max(LIMITS.boxes).optional().describe('which box, from 1 on; the first if left out'),
    ...optionalVerbs,
    // biome-ignore lint/suspicious/noThenProperty: it is the word for it, and a step is never awaited
    then: steps.optional().describe('belongs to if'),
    else: steps.optional().describe('belongs to if'),
  })
  .refine((it) => VERBS.filter((verb) => verb in it).length === 1, `expected exactly one of ${VERBS.join(', ')}`)
  .refine(
    (it) => 'if' in it === 'then' in it && ('if' in it || !('else' in it)),
    '`then` and `else` belong to `if`, and `if` needs `then`',
  )
  .meta({
    id: 'step',
    oneOf: VERBS.map((verb) => ({ required: [verb] })),
  }) as unknown as z.ZodType<Step>;
