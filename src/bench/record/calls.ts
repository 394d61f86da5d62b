import { z } from 'zod';
import { PATHS } from '../../protocol/http-api.ts';
import type { WireEntryOf } from '../../protocol/wire.ts';
import type { Heard } from './wire-at.ts';

export type Call = Heard & WireEntryOf<'call'>;

/** Pushes to one box that were under way at the same time. */
export interface Overlap {
  fromMs: number;
  toMs: number;
  calls: Call[];
}

/** Words that a step of a scenario can say: it takes `${` for the beginning of a variable. */
const word = z
  .string()
  .min(1)
  .max(500)
  .refine((it) => !it.includes('${'));
const amount = z.int().min(0);

/** A generate call that a step can make again. */
export const generateBody = z.object({
  bankAccount: word,
  bankCode: word,
  userBankName: z.string(),
  amount,
  content: word,
  orderId: word,
  transType: z.literal('C'),
  qrType: z.literal(0).default(0),
});

/** What of an answer to generate is used later. */
export const generateAnswer = z.looseObject({
  qrCode: z.string(),
  transactionId: z.string(),
  orderId: z.string(),
  userBankName: z.string(),
});

/** A test callback that a step can make again. */
export const payBody = z.object({
  bankAccount: word,
  amount,
  content: word,
  transType: z.enum(['C', 'D']).default('C'),
});

/** A send-qr that a step can make again. */
export const sendBody = z.record(z.string(), z.unknown()).refine((it) => !JSON.stringify(it).includes('${'));

const answered = z.looseObject({ status: z.string(), message: z.string() });

/** `SUCCESS`, or the code of the refusal; empty for an answer of no such shape. */
export function answerOf({ answer }: Call): string {
  const parsed = answered.safeParse(answer);
  if (!parsed.success) return '';
  return parsed.data.status === 'SUCCESS' ? 'SUCCESS' : parsed.data.message;
}

/** The `message` of an answer: the transaction id of a payment. */
export function messageOf({ answer }: Call): string {
  const parsed = answered.safeParse(answer);
  return parsed.success ? parsed.data.message : '';
}

/** When a call began; it is heard when it is answered. */
export function begunMs({ atMs, tookMs }: Call): number {
  return atMs - tookMs;
}

/** What two sums of the same times may differ by. */
const SAME_MS = 0.001;

/** Calls in the order in which they began; of those that began at one moment the one answered first is first. */
export function asBegun(calls: readonly Call[]): Call[] {
  return [...calls].sort((a, b) => {
    const laterMs = begunMs(a) - begunMs(b);
    return Math.abs(laterMs) < SAME_MS ? 0 : laterMs;
  });
}

export function isCall(heard: Heard, path: string): heard is Call {
  return heard.kind === 'call' && heard.path === path;
}

export function isService(heard: Heard): heard is Call {
  return heard.kind === 'call' && Object.values<string>(PATHS).includes(heard.path);
}

const OWNED = /^\/_mock\/orders\/([^/]+)\/(cancel|pay)$/;

/** The order that an owner cancelled or paid, by either of its ids. */
export function ownersDeed(call: Call): { what: 'cancel' | 'pay'; order: string } | undefined {
  const [, order, what] = OWNED.exec(call.path) ?? [];
  if (order === undefined || (what !== 'cancel' && what !== 'pay')) return undefined;
  return { what, order: decoded(order) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
