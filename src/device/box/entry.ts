import { z } from 'zod';
import { amountVnd, LIMITS, wallTimeMs } from '../../protocol/fields.ts';
import { due, ENDS, linkedAccount } from '../../protocol/messages.ts';

/** Limits the characters of a boot's name. */
const BOOT_ID_MAX = 200;

const order = z.object({
  pushId: z.uuid(),
  orderId: z.string().max(LIMITS.orderIdMax),
  amount: amountVnd,
  content: z.string().max(LIMITS.pushContentMax),
  qrCode: z.string().max(LIMITS.qrCodeMax),
  holder: linkedAccount,
  /** Uses the gateway's calendar clock. */
  expiresAtMs: wallTimeMs,
  /** The lifetime of the push, in milliseconds. */
  lifetimeMs: z.int().min(0),
});

const payment = z.object({
  transactionId: z.uuid(),
  orderId: z.string().max(LIMITS.orderIdMax),
  amount: amountVnd,
  content: z.string().max(LIMITS.pushContentMax),
  paidAtMs: wallTimeMs,
  // Earlier versions wrote neither of these two.
  late: z.boolean().default(false),
  due: due.nullable().default(null),
  /** The account that received the money. Earlier versions wrote none, and some services name none. */
  bankAccount: z.string().max(LIMITS.bankAccountMax).optional(),
  /** True if the payment is no money, because the gateway is a sandbox. */
  test: z.boolean().optional(),
});

/**
 * Decodes one journal entry. A box writes it to its disk before it acts (house rule 2).
 *
 * `ended` and `payment` are also reports: the box sends them until `acked` names their pushId or transactionId. A
 * `payment` is shown until `payment-displayed` names it, and listed until `payment-dropped` does. `account` is the
 * linked account that people know. `mark` says whether the last welcome asked for the mark of a sandbox. `clock` has
 * the readings of the box's clocks when it learned the time (`calendar.ts`).
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
  z.object({ kind: z.literal('payment-displayed'), transactionId: z.uuid() }),
  z.object({ kind: z.literal('payment-dropped'), transactionId: z.uuid() }),
  z.object({ kind: z.literal('account'), account: linkedAccount, announcedAtMs: wallTimeMs }),
  z.object({ kind: z.literal('mark'), shown: z.boolean(), changedAtMs: wallTimeMs }),
  z.object({
    kind: z.literal('clock'),
    bootId: z.string().max(BOOT_ID_MAX),
    /** Milliseconds since the start of that boot. */
    bootMs: z.int(),
    /** The reading of the box's own calendar clock. */
    wallMs: z.int(),
    gatewayMs: wallTimeMs,
    /** True if nobody sent the time, so that `gatewayMs` is the box's own calendar clock. */
    isOwn: z.boolean(),
  }),
  z.object({ kind: z.literal('acked'), ids: z.array(z.uuid()).max(LIMITS.ackIdsMax) }),
]);

export type Entry = z.infer<typeof entry>;
export type ClockEntry = Extract<Entry, { kind: 'clock' }>;
/** An order as the box stores it. */
export type Order = z.infer<typeof order>;
export type Payment = z.infer<typeof payment>;
