import { z } from 'zod';
import { amountVnd, LIMITS, wallTimeMs } from '../protocol/fields.ts';
import { ENDS, link } from '../protocol/messages.ts';

const order = z.object({
  pushId: z.uuid(),
  orderId: z.string().max(LIMITS.orderIdMax),
  amount: amountVnd,
  content: z.string().max(LIMITS.pushContentMax),
  qrCode: z.string().max(LIMITS.qrCodeMax),
  holder: link,
  /** By the gateway's calendar clock. */
  expiresAtMs: wallTimeMs,
  /** The whole lifetime that the push came with, in milliseconds. */
  lifetimeMs: z.int().min(0),
});

const payment = z.object({
  transactionId: z.uuid(),
  orderId: z.string().max(LIMITS.orderIdMax),
  amount: amountVnd,
  content: z.string().max(LIMITS.pushContentMax),
  paidAtMs: wallTimeMs,
});

/**
 * What a box writes down before it acts (house rule 2). `push` and `payment` are facts; `ended` and `payment` are also
 * reports that are owed to the gateway until `acked` names their pushId or transactionId, and a `payment` is a screen
 * that is owed to people until `told` names it. `link` is the account that people have been told of.
 */
export const entry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('push'), order }),
  z.object({ kind: z.literal('shown'), pushId: z.uuid() }),
  z.object({
    kind: z.literal('ended'),
    pushId: z.uuid(),
    orderId: z.string().max(LIMITS.orderIdMax),
    how: z.enum(ENDS),
  }),
  z.object({ kind: z.literal('refused'), pushId: z.uuid() }),
  z.object({ kind: z.literal('payment'), payment, pushId: z.uuid().nullable() }),
  z.object({ kind: z.literal('told'), transactionId: z.uuid() }),
  z.object({ kind: z.literal('link'), link, toldAtMs: wallTimeMs }),
  z.object({ kind: z.literal('acked'), ids: z.array(z.uuid()).max(LIMITS.ackIdsMax) }),
]);

export type Entry = z.infer<typeof entry>;
/** An order as the box holds it. */
export type Order = z.infer<typeof order>;
export type Payment = z.infer<typeof payment>;
