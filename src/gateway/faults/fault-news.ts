import { z } from 'zod';
import { faultOrder } from '../../protocol/faults.ts';
import type { News } from '../common/place.ts';

/** The fields that a payment and its callback share before either has an id. */
const latePayment = z.object({ bankAccount: z.string(), content: z.string(), amount: z.number() });
export type LatePayment = z.output<typeof latePayment>;

/** News of faults to the other gateways of a database. */
const faultNews = z.discriminatedUnion('about', [
  /** A fault was ordered at one gateway. It happens at all of them under this id. */
  z.object({ about: z.literal('order'), id: z.string(), order: faultOrder }),
  /** A fault was ended. Without an id, all faults were. */
  z.object({ about: z.literal('end'), id: z.string().nullable() }),
  /** Run `by` reports occurrences of a fault, and how many things it delays there now. */
  z.object({
    about: z.literal('occurrence'),
    id: z.string(),
    by: z.string(),
    times: z.int().min(0),
    delays: z.int().min(0),
  }),
  /** A fault delays the news of a payment by `ms`. Without an id, a content has ordered that. */
  z.object({
    about: z.literal('late-payment'),
    id: z.string().nullable(),
    payment: latePayment,
    ms: z.number().min(0),
  }),
  /** A fault lets the token with this hash expire. */
  z.object({ about: z.literal('token-expired'), sha256: z.string() }),
]);
export type FaultNews = z.output<typeof faultNews>;

/** Wraps news of faults for the place, which sends them. */
export function asNews(news: FaultNews): News {
  return { about: 'edges', text: JSON.stringify(news) };
}

/** Returns what another gateway has sent. Throws if it is of another version. */
export function faultNewsIn(text: string): FaultNews {
  return faultNews.parse(JSON.parse(text));
}
