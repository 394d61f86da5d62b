import { z } from 'zod';
import { valueAt, withSuggestion } from '../../lib/schema-issues.ts';
import { suggestion } from '../../lib/suggestion.ts';
import { FAULT_NAMES, type FaultName } from '../../protocol/faults.ts';
import { durationMs } from './durations.ts';
import { duration, oneOf, times, word } from './values.ts';

const DAY_MS = 86_400_000;
const NAMES = FAULT_NAMES.join(', ');

const END = `expected all, a fault of before as \${fault.id}, or one of ${NAMES}`;

/** The options of a fault besides its name. */
const MORE = ['times', 'for', 'chance', 'content'] as const;

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
          .describe('the answer to the next callbacks'),
        times: times.optional().describe('how many of them; 1 if left out'),
      })
      .optional(),
    inject: oneOf(FAULT_NAMES)
      .optional()
      .describe(
        'a fault by its name; at the box of the step if it names one. A scenario in which it never happens fails',
      ),
    times: times.optional().describe('how often it happens; once if left out, or for its time if it lasts'),
    for: duration
      .refine((it) => (durationMs(it) ?? 0) <= DAY_MS, 'expected a day at most')
      .optional()
      .describe('how long it lasts, or how late something is'),
    chance: z.number().gt(0).max(1).optional().describe('how probable it is each time; 1 if left out'),
    content: word.optional().describe('for orders of this content only'),
    end: z
      .union([oneOf([...FAULT_NAMES, 'all']), z.string().regex(/\$\{/, END)], {
        error: END,
      })
      .optional()
      .describe('ends faults that this scenario has injected; what they delay is sent at once'),
  })
  .refine((it) => kindsOf(it).length === 1, 'expected one of inject, end, box, gateway and partner')
  .refine((it) => it.inject !== undefined || MORE.every((key) => !(key in it)), `${MORE.join(', ')} belong to inject`);

function kindsOf(it: object): string[] {
  return Object.keys(it).filter((key) => !MORE.some((more) => more === key));
}

const shortForm = oneOf(FAULT_NAMES).describe('a fault by its name, once, or for its time if it lasts');

/** The `fault` of a step: a name, or an object with options. */
export const faultArgs = z.union([shortForm, fault], {
  error: ({ input, errors }) => problemOf(input, typeof input === 'object' ? errors?.[1] : errors?.[0]),
});

/** Returns the error for the form that the author meant. */
function problemOf(input: unknown, issues: readonly z.core.$ZodIssue[] = []): string {
  const [first] = issues;
  if (first === undefined) return `expected the name of a fault, or what of it: one of ${NAMES}`;
  const message =
    first.code === 'unrecognized_keys'
      ? `no unknown key ${first.keys.map((it) => `${it}${suggestion(it, Object.keys(fault.shape))}`).join(', ')}`
      : withSuggestion(first.message, valueAt(input, first.path));
  return first.path.length === 0 ? message : `${message} (${first.path.join('.')})`;
}

export type FaultArgs = z.output<typeof faultArgs>;
/** A fault to inject, with its options. */
export type Injection = Omit<z.output<typeof fault>, 'inject'> & { inject: FaultName };

/** Returns the object form of a step's `fault`. */
export function faultOf(args: FaultArgs): Exclude<FaultArgs, string> {
  return typeof args === 'string' ? { inject: args } : args;
}
