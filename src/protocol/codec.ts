import type { z } from 'zod';
import { type Checked, expectedBy } from '../lib/schema-issues.ts';
import { LIMITS } from './fields.ts';
import { goneProofOf } from './keys.ts';
import {
  type DownMessage,
  downMessage,
  MESSAGE_VERSION,
  type Presence,
  presence,
  type UpMessage,
  upMessage,
} from './messages.ts';

/** A decoded value, or one line with the reason of the refusal. */
export type Decoded<T> = { ok: true; value: T } | { ok: false; reason: string };

/** Encodes as UTF-8 JSON, for MQTT and HTTP. */
export function encode(message: DownMessage | UpMessage | Presence): string {
  return JSON.stringify(message);
}

/** Decodes a message to a box; unknown fields are dropped (PROTOCOL.md, clause MSG-3). Never throws. */
export function decodeDown(bytes: Uint8Array | string): Decoded<DownMessage> {
  return decodeWith(downMessage, bytes);
}

/** Decodes a message from a box; unknown fields are dropped (PROTOCOL.md, clause MSG-3). Never throws. */
export function decodeUp(bytes: Uint8Array | string): Decoded<UpMessage> {
  return decodeWith(upMessage, bytes);
}

/** Returns the presence with which a box asks for the gateway's run (PROTOCOL.md, clause PRE-4). */
export function askingPresence(sessionId: string): string {
  return encode({ v: MESSAGE_VERSION, online: true, sessionId, asks: true });
}

/**
 * Returns the message on a box's presence topic (PROTOCOL.md, clause PRE-1). If the box has gone, it has a proof under
 * its secret.
 */
export function boxPresence(
  { secret, terminalCode }: { secret: string; terminalCode: string },
  sessionId: string,
  online: boolean,
): string {
  const said = { v: MESSAGE_VERSION, online, sessionId } as const;
  return encode(online ? said : { ...said, proof: goneProofOf(secret, terminalCode, sessionId) });
}

/** Decodes a presence. Never throws. */
export function decodePresence(bytes: Uint8Array | string): Decoded<Presence> {
  return decodeWith(presence, bytes);
}

/** Decodes UTF-8 JSON of at most `bytesMax` bytes by a schema (PROTOCOL.md, clause LIM-7). Never throws. */
export function decodeWith<T>(
  schema: z.ZodType<T>,
  bytes: Uint8Array | string,
  bytesMax: number = LIMITS.messageBytesMax,
): Decoded<T> {
  const size = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.byteLength;
  if (size > bytesMax) return { ok: false, reason: `message of ${size} bytes, the limit is ${bytesMax}` };
  let json: unknown;
  try {
    json = JSON.parse(typeof bytes === 'string' ? bytes : new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return { ok: false, reason: 'message is not UTF-8 JSON' };
  }
  if (isTooDeep(json)) return { ok: false, reason: `message is nested more than ${LIMITS.jsonDepthMax} deep` };
  const parsed = schema.safeParse(json);
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, reason: issuesOf(parsed.error) };
}

/**
 * Returns whether arrays and objects are nested deeper than anybody writes them: reading or writing them could fill the
 * stack.
 */
function isTooDeep(json: unknown): boolean {
  let level = [json];
  for (let depth = 0; depth <= LIMITS.jsonDepthMax; depth += 1) {
    level = level.flatMap((it) => (typeof it === 'object' && it !== null ? Object.values(it) : []));
    if (level.length === 0) return false;
  }
  return true;
}

/** Returns whether a decoded JSON value is an object, not an array. */
export function isObject(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/**
 * Returns the first three problems that zod found, as `path: problem`, in one line; with what was checked also the word
 * that was meant.
 */
export function issuesOf(error: z.ZodError, checked?: Checked): string {
  const shown = error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.join('.') || 'body'}: ${expectedBy(issue, checked)}`);
  const more = error.issues.length - shown.length;
  return shown.join('; ') + (more > 0 ? `; and ${more} more` : '');
}
