import { z } from 'zod';

/*
 * The log of a gateway's messages: `GET /_mock/wire`. No part holds a password, a token, a checkSum or
 * what seals messages.
 */

const head = {
  /** Counts from 1 on since the gateway started. */
  n: z.int().min(1),
  /** Calendar time, ISO 8601 in UTC. */
  at: z.string(),
  /** Milliseconds on the gateway's monotonic clock since it started. */
  upMs: z.number().min(0),
};

/** A call of a partner below `{base_url}`, or of an owner below `/_mock`; told once it was answered. */
const call = z.object({
  ...head,
  kind: z.literal('call'),
  /** The partner who has shown to be one; null for admins and strangers. */
  by: z.string().nullable(),
  method: z.string(),
  /** That of a service call without `{base_url}`. */
  path: z.string(),
  /** JSON without its secrets; a text where it is none; null without a body, and where that was not looked at. */
  body: z.unknown(),
  status: z.int(),
  answer: z.unknown(),
  /** From its head to its answer, in milliseconds. */
  tookMs: z.number().min(0),
});

/** A message from or to a box, as it is before it is sealed and after it is opened. */
const message = z.object({
  ...head,
  kind: z.literal('message'),
  box: z.string(),
  to: z.enum(['box', 'gateway']),
  body: z.looseObject({ type: z.string() }),
});

/** A box has registered, or is lost. */
const presence = z.object({
  ...head,
  kind: z.literal('box'),
  box: z.string(),
  online: z.boolean(),
  /** How it was lost, or by which transport it came. */
  why: z.string(),
});

/** An attempt to call a partner back. */
const callback = z.object({
  ...head,
  kind: z.literal('callback'),
  id: z.string(),
  transactionId: z.string(),
  partner: z.string(),
  body: z.unknown(),
  byHand: z.boolean(),
  /** The state of the callback after it. */
  result: z.enum(['delivered', 'pending', 'failed']),
  /** Of the answer; null without one. */
  status: z.int().nullable(),
  answer: z.unknown(),
  error: z.string().nullable(),
  warning: z.string().nullable(),
  tookMs: z.number().min(0),
});

export const wireEntry = z.discriminatedUnion('kind', [call, message, presence, callback]);
export type WireEntry = z.output<typeof wireEntry>;
export type WireEntryOf<K extends WireEntry['kind']> = Extract<WireEntry, { kind: K }>;

/** Entries in one answer, at most. */
export const WIRE_PAGE_MAX = 2_000;

/** The answer of `GET /_mock/wire?since=N&limit=M`: what came after entry N, the oldest first. */
export const wirePage = z.object({
  /** Another for each start of the gateway, with which the count begins anew. */
  run: z.string(),
  entries: z.array(wireEntry),
  /** The next `since`. */
  next: z.int().min(0),
  /** Entries after `since` that are kept no longer. */
  lost: z.int().min(0),
  /** When this was answered, on the clock of the entries. */
  upMs: z.number().min(0),
});
export type WirePage = z.output<typeof wirePage>;
