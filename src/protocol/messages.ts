import { z } from 'zod';
import { BOX_REFUSALS, CODES, type Code } from './codes.ts';
import { amountVnd, bankAccount, boxCode, LIMITS, wallTimeMs } from './fields.ts';
import { LANES_MAX } from './topics.ts';
import { VIRTUAL_ACCOUNTS_MAX, virtualAccounts } from './virtual-accounts.ts';
import { WALLET_IDS_MAX, walletId } from './wallets.ts';

/** Version of the messages between gateway and box (PROTOCOL.md, clause MSG-1). */
export const MESSAGE_VERSION = 1;

/** Interval of signs of life on both sides (PROTOCOL.md, clauses MSG-11 and BOX-HTTP-3). */
export const BOX_ALIVE_MS = 10_000;
/** Longest interval that a gateway of many boxes asks for. */
export const BOX_ALIVE_MAX_MS = 60_000;

/**
 * Returns the silence in milliseconds after which a box counts as gone and shows that it is offline (clause MSG-11):
 * two signs of life in this interval, and the end of a connection that may hang.
 */
export function unheardMaxMs(aliveMs: number): number {
  return 2.5 * aliveMs;
}

/**
 * Returns milliseconds without a post after which a stream of a box that says its signs of life in this interval ends
 * (clause BOX-HTTP-3).
 */
export function unpostedMaxMs(aliveMs: number): number {
  return 1.5 * aliveMs;
}

/** How an accepted push can end. `interrupted`: the box stopped before the push was on its screen. */
export const ENDS = ['expired', 'replaced', 'withdrawn', 'dismissed', 'interrupted'] as const;
export type EndedHow = (typeof ENDS)[number];

const shortText = z.string().max(LIMITS.codeFieldMax);
const orderId = z.string().max(LIMITS.orderIdMax);
const content = z.string().max(LIMITS.pushContentMax);
const code = z.enum(Object.keys(CODES) as [Code, ...Code[]]);
/** The sender cuts a longer reason. */
export const REASON_CHARS_MAX = 300;
const reason = z.string().max(REASON_CHARS_MAX);

const payee = { bankAccount, bankCode: shortText.min(1), userBankName: z.string().max(LIMITS.userBankNameMax) };

/** The account whose money a box asks for. */
export const linkedAccount = z.object({
  ...payee,
  /** Accounts to which its QRs may pay as well (PROTOCOL.md, clause PQR-3). */
  virtualAccounts: z.array(virtualAccounts).max(VIRTUAL_ACCOUNTS_MAX).optional(),
  /** Names of wallets for it, which may appear in its QRs (PROTOCOL.md, clause QRP-8). */
  walletIds: z.array(walletId).max(WALLET_IDS_MAX).optional(),
});

/** Whole đồng that an order asked for, and that were paid for it: less or more (PROTOCOL.md, clause MSG-13). */
export const due = z.object({ amount: amountVnd, paid: z.int().min(1).max(LIMITS.paidMax) });

/** Interval of a box's signs of life from here on; `BOX_ALIVE_MS` if left out (PROTOCOL.md, clause MSG-11). */
const aliveMs = z.int().min(BOX_ALIVE_MS).max(BOX_ALIVE_MAX_MS).optional();

/** A message of another session than the one in use is ignored (PROTOCOL.md, clause MSG-4). */
const head = { v: z.literal(MESSAGE_VERSION), id: z.uuid(), sentAtMs: wallTimeMs, sessionId: z.uuid() };

const welcome = z.object({
  ...head,
  type: z.literal('welcome'),
  link: linkedAccount.nullable(),
  /** Pushes that the box may show. Any other order on its screen has ended (PROTOCOL.md, clause MSG-10). */
  openPushIds: z.array(z.uuid()).max(LIMITS.openPushIdsMax),
  /** True if its payments are money; not named by a service that has no such modes (PROTOCOL.md, clause MSG-13). */
  mode: z.enum(['sandbox', 'live']).optional(),
  /** True if every screen of the box says so in a sandbox. */
  sandboxMark: z.boolean().optional(),
  aliveMs,
});

const refused = z.object({
  ...head,
  type: z.literal('refused'),
  code,
  reason,
  /** Beside NOT_REGISTERED: the box is known, but disabled. A box of an earlier version does not read it. */
  disabled: z.boolean().optional(),
  /** MOVED names, as its shard, the lane in which the box says hello next (PROTOCOL.md, clause SHA-2). */
  shard: z
    .int()
    .min(0)
    .max(LANES_MAX - 1)
    .optional(),
});

/**
 * Show this QR. Its lifetime is given as a duration too, because a box's calendar clock may be wrong, with its
 * beginning, because the message may be late (PROTOCOL.md, clause MSG-5).
 */
const show = z.object({
  ...head,
  type: z.literal('show'),
  pushId: z.uuid(),
  orderId,
  amount: amountVnd,
  content,
  ...payee,
  qrCode: z.string().min(1).max(LIMITS.qrCodeMax),
  expiresAtMs: wallTimeMs,
  expiresInMs: z.int().min(0).max(86_400_000),
  /** Beginning of the lifetime: milliseconds of the gateway's monotonic clock since this session's hello. */
  sessionMs: z.int().min(0),
  /** The gateway waits for `shown`: the box leaves `accepted` out (clause AGT-2). */
  confirm: z.literal('displayed').optional(),
});

/** Withdraw this push, or do not show it if it arrives later. */
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
  /** The paid push, if this box showed it. */
  pushId: z.uuid().nullable(),
  orderId,
  amount: amountVnd,
  content,
  bankAccount,
  bankCode: shortText,
  paidAtMs: wallTimeMs,
  /** True if the box may have got it before (PROTOCOL.md, clause AGT-11). */
  repeated: z.boolean(),
  /** True if it is old news: listed and reported, but neither spoken nor shown (clause MSG-13). */
  late: z.boolean().default(false),
  /** The amount of its order and the sum paid for it, this payment included; null if they are equal. */
  due: due.nullable().default(null),
});

/** The gateway has stored these reports: the box may delete them. */
const ack = z.object({ ...head, type: z.literal('ack'), reportIds: z.array(z.uuid()).min(1).max(LIMITS.ackIdsMax) });

/** Answer of the gateway to a sign of life (PROTOCOL.md, clause MSG-11). */
const heard = z.object({ ...head, type: z.literal('heard'), aliveId: z.uuid(), aliveMs });

/** Messages from the gateway to a box. */
export const downMessage = z.discriminatedUnion('type', [welcome, refused, show, withdraw, payment, ack, heard]);

const hello = z.object({
  ...head,
  type: z.literal('hello'),
  terminalCode: boxCode,
  serialNumber: boxCode,
  agentVersion: shortText,
  display: shortText,
  /** The push on the screen of the box; null if there is none. */
  shownPushId: z.uuid().nullable(),
  /** True if it ends in favour of a session with which the gateway still has contact (PROTOCOL.md, clause MSG-8). */
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

/** The box has announced this payment. `recorded` is false if its disk could not store that. */
const paid = z.object({
  ...head,
  type: z.literal('paid'),
  transactionId: z.uuid(),
  orderId,
  amount: amountVnd,
  recorded: z.boolean(),
});

/** Asks for the answer `heard`, as a sign of life (PROTOCOL.md, clause MSG-11). */
const alive = z.object({ ...head, type: z.literal('alive') });

/** Messages from a box to the gateway. */
export const upMessage = z.discriminatedUnion('type', [hello, accepted, shown, rejected, ended, paid, alive]);

export type LinkedAccount = z.infer<typeof linkedAccount>;
export type Due = z.infer<typeof due>;
export type DownMessage = z.infer<typeof downMessage>;
export type UpMessage = z.infer<typeof upMessage>;
export type DownOf<T extends DownMessage['type']> = Extract<DownMessage, { type: T }>;
export type UpOf<T extends UpMessage['type']> = Extract<UpMessage, { type: T }>;

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
/** A message without version, id, time and session, which the sender adds. */
export type DownBody = DistributiveOmit<DownMessage, 'v' | 'id' | 'sentAtMs' | 'sessionId'>;

/** A push to a box without the fields that its session adds. */
export type ShowBody = Omit<Extract<DownBody, { type: 'show' }>, 'sessionMs'>;
export type UpBody = DistributiveOmit<UpMessage, 'v' | 'id' | 'sentAtMs' | 'sessionId'>;

/**
 * Reports that a box stores on disk and repeats until an `ack` names them (PROTOCOL.md, clause MSG-6). The message id
 * is the pushId or transactionId that they report on, so that a repetition has the same id.
 */
export type DurableReport = UpOf<'ended' | 'paid'>;

/** A gateway's presence has at most 106 bytes; every signed message is longer. */
export const PRESENCE_BYTES_MAX = 128;
/** The largest `spreadMs` of a gateway's presence. */
export const SPREAD_MAX_MS = 5_000;

/** An HMAC-SHA256 in base64url has 43 characters. */
const PROOF_CHARS_MAX = 64;

/** Presence on the broker: the birth after every connect, and the last will (PROTOCOL.md, clause PRE). */
export const presence = z.object({
  v: z.literal(MESSAGE_VERSION),
  online: z.boolean(),
  /** Session of a box, or run of a gateway. */
  sessionId: z.uuid(),
  /** True if the box asks for the run of the gateway (PROTOCOL.md, clause PRE-4). */
  asks: z.boolean().optional(),
  /** Proof by the box that it has gone (PROTOCOL.md, clause PRE-1). */
  proof: z.string().max(PROOF_CHARS_MAX).optional(),
  /** In milliseconds: over how long a time boxes that come back spread their hellos (PROTOCOL.md, clause PRE-6). */
  spreadMs: z.int().min(0).max(SPREAD_MAX_MS).optional(),
  /** Number of lanes of the gateways that share a database (PROTOCOL.md, clause SHA-3). */
  shards: z.int().min(1).max(LANES_MAX).optional(),
});
export type Presence = z.infer<typeof presence>;
