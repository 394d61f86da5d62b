import { z } from 'zod';
import { TOPICS } from '../common/changes.ts';
import type { Ask } from '../common/place.ts';

const REASON_CHARS_MAX = 500;
const reason = z.string().transform((text) => text.slice(0, REASON_CHARS_MAX));

/** News as the table of news has them. */
export const news = z.discriminatedUnion('about', [
  z.object({ about: z.literal('registry') }),
  z.object({ about: z.literal('signing-key') }),
  z.object({ about: z.literal('renew'), box: z.string(), reason }),
  z.object({ about: z.literal('expel'), box: z.string(), reason, disabled: z.boolean() }),
  z.object({ about: z.literal('credit-lost'), source: z.string() }),
  z.object({ about: z.literal('edges'), text: z.string() }),
]);
export const toldNews = z.object({ by: z.string(), news });

const hint = z.discriminatedUnion('about', [
  z.object({ about: z.literal('lists'), topics: z.array(z.enum(TOPICS)) }),
  z.object({ about: z.literal('callbacks'), partner: z.string() }),
  z.object({ about: z.literal('notices'), boxes: z.array(z.string()) }),
  z.object({
    about: z.literal('withdraw'),
    box: z.string(),
    pushId: z.string(),
    why: z.enum(['cancelled', 'paid', 'timeout']),
  }),
  z.object({ about: z.literal('session'), box: z.string(), sessionId: z.string() }),
  z.object({ about: z.literal('left'), box: z.string() }),
]);

/** A wrong login at the gateway of run `by`. */
const wrongLogin = z.object({
  about: z.literal('wrong-login'),
  by: z.string(),
  kind: z.enum(['addresses', 'users', 'pairs']),
  name: z.string(),
  number: z.int(),
});
export type WrongLogin = z.output<typeof wrongLogin>;

const ASKS = ['push', 'post', 'heard', 'traffic'] as const satisfies readonly Ask[];

/** The content of one notification. */
export const said = z.union([
  z.object({ by: z.string(), hint }),
  z.object({ by: z.string(), ask: z.enum(ASKS), id: z.string(), question: z.unknown() }),
  z.object({ answerTo: z.string(), answer: z.unknown() }),
  wrongLogin,
]);
export type Said = z.output<typeof said>;
