import { z } from 'zod';
import { FAULT_NAMES } from '../../protocol/faults.ts';
import { BOX_STATES, ORDER_STATUSES } from '../../protocol/statuses.ts';
import { SCREEN_KINDS } from './screen-kind.ts';
import { count, duration, fields, oneOf, oneOfOrVariable, text, word } from './values.ts';

const words = z
  .union([text, z.array(text).min(1)], { error: 'expected a text, in quotes if it is a number, or a list of them' })
  .optional();

const state = oneOfOrVariable(BOX_STATES);
/** Parts of the box's /status. Only its states are a closed set. */
const boxStatus = fields.superRefine((it, context) => {
  const checked = state.optional().safeParse(it.state);
  for (const { message } of checked.error?.issues ?? []) {
    context.addIssue({ code: 'custom', path: ['state'], message });
  }
});

/** The conditions of an `expect` step. */
export const expectation = z
  .strictObject({
    within: duration.optional().describe('time limit until all conditions are true; 5s if left out'),
    for: duration.optional().describe('how long all conditions must then stay true'),
    state: state.optional().describe("state of the box's /status, as idle, showing or paid"),
    screen: oneOf(SCREEN_KINDS).optional().describe('what kind of screen the box shows'),
    text: words.describe('words on the screen, all of them'),
    'no text': words.describe('words that are not on the screen'),
    qr: word.optional().describe('what a decoder reads in a picture of the screen; none: there is no QR'),
    online: z.boolean().optional(),
    status: boxStatus.optional().describe("parts of the box's /status, as { lastPayment: { amount: 50000 } }"),
    unreachable: z.literal(true).optional().describe('the box is off'),
    report: z
      .union(
        [
          z.strictObject({ order: word, status: oneOfOrVariable(ORDER_STATUSES) }),
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
        attempts: count.optional().describe('exact number of attempts so far'),
        fields: fields.optional().describe("parts of the callback's body, as { orderId: DH001 }"),
      })
      .optional()
      .describe("what reached the partner's server"),
    announced: count
      .optional()
      .describe('exact number of payments that the box has announced since the scenario or the box started'),
    settled: z
      .literal(true)
      .optional()
      .describe(
        'each payment since the scenario began was reported once by each of its boxes and accepted once by the partner; boxes announced it, except those that were off',
      ),
    fault: z
      .strictObject({
        name: oneOf(FAULT_NAMES),
        happened: count.describe('exact number, of the fault that this scenario injected last'),
      })
      .optional()
      .describe('how often a fault has happened'),
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

export type Expectation = z.output<typeof expectation>;
