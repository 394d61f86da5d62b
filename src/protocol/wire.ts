import { z } from 'zod';

// The log of a gateway's messages, `GET /_mock/wire`: without passwords, tokens, checkSums and signatures.

const head = {
  /** Number of the entry, from 1 since the start of its gateway. */
  n: z.int().min(1),
  /** Calendar time, ISO 8601 in UTC. */
  at: z.string(),
  /**
   * Milliseconds of the gateway's monotonic clock since its start. Where several gateways share a database: its
   * calendar time, in milliseconds since 1970.
   */
  upMs: z.number().min(0),
};

/** A call of a partner below `{base_url}`, or of an admin below `/_mock`; logged when it was answered. */
const call = z.object({
  ...head,
  kind: z.literal('call'),
  /** The logged-in partner; null for admins and others. */
  by: z.string().nullable(),
  method: z.string(),
  /** For a call of the service, the path below `{base_url}`. */
  path: z.string(),
  /** JSON without secrets; a text if it is not JSON; null without a body, or if it was not read. */
  body: z.unknown(),
  status: z.int(),
  /** The field that caused a refusal, and the expected value; null otherwise. */
  reason: z.string().nullable(),
  /** Names the deviations from the specification that the gateway accepted (PROTOCOL.md, clause LEN-1). */
  lenient: z.array(z.string()),
  warnings: z.array(z.string()),
  answer: z.unknown(),
  /** Milliseconds from the head of the request to the answer. */
  tookMs: z.number().min(0),
});

/** A message from or to a box, unsigned. */
const message = z.object({
  ...head,
  kind: z.literal('message'),
  box: z.string(),
  to: z.enum(['box', 'gateway']),
  body: z.looseObject({ type: z.string() }),
});

/** A box has registered, or has been lost. */
const presence = z.object({
  ...head,
  kind: z.literal('box'),
  box: z.string(),
  online: z.boolean(),
  /** Reason of the loss, or the transport of the box. */
  why: z.string(),
});

/** One attempt of a callback. */
const callback = z.object({
  ...head,
  kind: z.literal('callback'),
  id: z.string(),
  transactionId: z.string(),
  partner: z.string(),
  body: z.unknown(),
  byHand: z.boolean(),
  /** State of the callback after this attempt. */
  result: z.enum(['delivered', 'pending', 'failed']),
  /** Status of the answer; null without one. */
  status: z.int().nullable(),
  answer: z.unknown(),
  error: z.string().nullable(),
  warning: z.string().nullable(),
  tookMs: z.number().min(0),
});

export const wireEntry = z.discriminatedUnion('kind', [call, message, presence, callback]);
export type WireEntry = z.output<typeof wireEntry>;
export type WireEntryOf<K extends WireEntry['kind']> = Extract<WireEntry, { kind: K }>;

/** Highest number of entries in one answer. */
export const WIRE_PAGE_MAX = 2_000;

/** Answer of `GET /_mock/wire?since=N&limit=M`: the entries after N, oldest first. */
export const wirePage = z.object({
  /** Changes with each start of a gateway alone, when the numbers begin again. */
  run: z.string(),
  entries: z.array(wireEntry),
  /** The value for the next `since`; a text where several gateways share a database. */
  next: z.union([z.int().min(0), z.string()]),
  /** Number of entries after `since` that were dropped. */
  lost: z.int().min(0),
  /** Time of this answer, on the clock of the entries. */
  upMs: z.number().min(0),
});
export type WirePage = z.output<typeof wirePage>;
