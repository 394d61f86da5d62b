import { z } from 'zod';
import { BOX_REFUSALS, CODES, type Code } from './codes.ts';
import { amountVnd, bankAccount, boxCode, LIMITS, wallTimeMs } from './fields.ts';

/** Version of the messages between gateway and box (PROTOCOL.md, clause MSG-1). */
export const MESSAGE_VERSION = 1;

/** How a push that a box took can end. `interrupted`: the box died before the push was on its screen. */
export const ENDS = ['expired', 'replaced', 'withdrawn', 'dismissed', 'interrupted'] as const;
export type EndedHow = (typeof ENDS)[number];

const shortText = z.string().max(LIMITS.codeFieldMax);
const orderId = z.string().max(LIMITS.orderIdMax);
const content = z.string().max(LIMITS.pushContentMax);
const code = z.enum(Object.keys(CODES) as [Code, ...Code[]]);
/** A longer reason is cut by whoever sends it. */
export const REASON_CHARS_MAX = 300;
const reason = z.string().max(REASON_CHARS_MAX);

/** The account whose money a box asks for. */
export const linkedAccount = z.object({
  bankAccount,
  bankCode: shortText.min(1),
  userBankName: z.string().max(LIMITS.userBankNameMax),
});

/** A message of another session than the one in use changes nothing (PROTOCOL.md, clause MSG-4). */
const head = { v: z.literal(MESSAGE_VERSION), id: z.uuid(), sentAtMs: wallTimeMs, sessionId: z.uuid() };

const welcome = z.object({
  ...head,
  type: z.literal('welcome'),
  link: linkedAccount.nullable(),
  /** The pushes that the box may show; any other order on its screen has ended without it (PROTOCOL.md, clause MSG-10). */
  openPushIds: z.array(z.uuid()).max(LIMITS.openPushIdsMax),
});

const refused = z.object({ ...head, type: z.literal('refused'), code, reason });

/**
 * Show this QR. The lifetime is told as a duration too, because a box's calendar clock may be wrong, and when it began,
 * because a message may be late (PROTOCOL.md, clause MSG-5).
 */
const show = z.object({
  ...head,
  type: z.literal('show'),
  pushId: z.uuid(),
  orderId,
  amount: amountVnd,
  content,
  ...linkedAccount.shape,
  qrCode: z.string().min(1).max(LIMITS.qrCodeMax),
  expiresAtMs: wallTimeMs,
  expiresInMs: z.int().min(0).max(86_400_000),
  /** When the lifetime began: milliseconds of the gateway's monotonic clock since it took this session's hello. */
  sessionMs: z.int().min(0),
});

/** Take this push back, or never show it if it has not arrived yet. */
const withdraw = z.object({
  ...head,
  type: z.literal('withdraw'),
  pushId: z.uuid(),
  why: z.enum(['timeout', 'cancelled', 'paid']),
});

const payment = z.object({
  ...head,
  type: z.literal('payment'),
  transactionId: z.uuid(),
  /** The push that this pays for, when it was shown on the box that this is sent to. */
  pushId: z.uuid().nullable(),
  orderId,
  amount: amountVnd,
  content,
  bankAccount,
  bankCode: shortText,
  paidAtMs: wallTimeMs,
  /** Whether it may have been said to this box before (PROTOCOL.md, clause AGT-11). */
  repeated: z.boolean(),
});

/** The gateway has stored these reports: the box may forget them. */
const ack = z.object({ ...head, type: z.literal('ack'), reportIds: z.array(z.uuid()).min(1).max(LIMITS.ackIdsMax) });

/** The gateway hears the box in this session: the answer to a sign of life (PROTOCOL.md, clause MSG-11). */
const heard = z.object({ ...head, type: z.literal('heard'), aliveId: z.uuid() });

/** Messages from the gateway to a box. */
export const downMessage = z.discriminatedUnion('type', [welcome, refused, show, withdraw, payment, ack, heard]);

const hello = z.object({
  ...head,
  type: z.literal('hello'),
  terminalCode: boxCode,
  serialNumber: boxCode,
  agentVersion: shortText,
  display: shortText,
  /** The push that has the box's screen; null when none has. */
  shownPushId: z.uuid().nullable(),
  /** Whether it leaves the box to a session that the gateway still hears (PROTOCOL.md, clause MSG-8). */
  yields: z.boolean().optional(),
});

const accepted = z.object({ ...head, type: z.literal('accepted'), pushId: z.uuid() });

const shown = z.object({ ...head, type: z.literal('shown'), pushId: z.uuid() });

const rejected = z.object({
  ...head,
  type: z.literal('rejected'),
  pushId: z.uuid(),
  code: z.enum(BOX_REFUSALS),
  reason,
});

const ended = z.object({
  ...head,
  type: z.literal('ended'),
  pushId: z.uuid(),
  orderId,
  how: z.enum(ENDS),
});

/** The box has announced this payment. `recorded` is false when its disk could not keep that. */
const paid = z.object({
  ...head,
  type: z.literal('paid'),
  transactionId: z.uuid(),
  orderId,
  amount: amountVnd,
  recorded: z.boolean(),
});

/** A sign of life, which wants to be answered with `heard` (PROTOCOL.md, clause MSG-11). */
const alive = z.object({ ...head, type: z.literal('alive') });

/** Messages from a box to the gateway. */
export const upMessage = z.discriminatedUnion('type', [hello, accepted, shown, rejected, ended, paid, alive]);

export type LinkedAccount = z.infer<typeof linkedAccount>;
export type DownMessage = z.infer<typeof downMessage>;
export type UpMessage = z.infer<typeof upMessage>;
export type DownOf<T extends DownMessage['type']> = Extract<DownMessage, { type: T }>;
export type UpOf<T extends UpMessage['type']> = Extract<UpMessage, { type: T }>;

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
/** A message before it is addressed: the sender's edge adds version, id, time and session. */
export type DownBody = DistributiveOmit<DownMessage, 'v' | 'id' | 'sentAtMs' | 'sessionId'>;
export type UpBody = DistributiveOmit<UpMessage, 'v' | 'id' | 'sentAtMs' | 'sessionId'>;

/**
 * Reports that a box keeps on disk and repeats until an `ack` names them (PROTOCOL.md, clause MSG-6). Their message id
 * is what they report on, the pushId or the transactionId, so that a repetition carries the same id.
 */
export type DurableReport = UpOf<'ended' | 'paid'>;

/** An HMAC-SHA256 in base64url has 43. */
const PROOF_CHARS_MAX = 64;

/** Presence on the broker: the birth after every connect, and the last will (PROTOCOL.md, clause PRE). */
export const presence = z.object({
  v: z.literal(MESSAGE_VERSION),
  online: z.boolean(),
  /** The session of a box; the run of a gateway. */
  sessionId: z.uuid(),
  /** Of a box that is gone, that it says so itself (PROTOCOL.md, clause PRE-1). */
  proof: z.string().max(PROOF_CHARS_MAX).optional(),
});
export type Presence = z.infer<typeof presence>;
