import { createHmac } from 'node:crypto';
import { equalSecrets } from './checksum.ts';

/** Allowed difference between the clocks of sender and receiver, in seconds. */
const TOLERANCE_SECONDS = 300;
const KEY_BYTES_MIN = 24;
const KEY_BYTES_MAX = 64;

/** Holds the headers of Standard Webhooks 1.0.0. */
export type WebhookHeaders = Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>;

/** Returns the key of a `whsec_…` secret, 24 to 64 bytes; `undefined` for any other text. */
export function webhookKey(secret: string): Buffer | undefined {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  const key = Buffer.from(encoded ?? '', 'base64');
  const isExact = key.toString('base64').replaceAll('=', '') === encoded?.replaceAll('=', '');
  return isExact && key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX ? key : undefined;
}

/**
 * Signs one attempt at `nowMs` (since 1970) with HMAC-SHA256, scheme `v1` of Standard Webhooks. `id` is the same at
 * every attempt; it must not contain a full stop. Throws RangeError for an invalid secret.
 */
export function signWebhook(secret: string, id: string, nowMs: number, body: string): WebhookHeaders {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = signatureOf(secret, id, timestamp, body);
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

/**
 * Returns why a webhook must be refused at `nowMs`; `undefined` if it is valid. One right signature of several is
 * enough.
 */
export function webhookProblem(
  secret: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string,
  nowMs: number,
): string | undefined {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return 'it is not signed';
  }
  if (!/^\d{1,12}$/.test(timestamp)) return 'its timestamp is not a number of seconds';
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return 'its timestamp is too old or too new';
  const right = `v1,${signatureOf(secret, id, timestamp, body)}`;
  return signatures.split(' ').some((it) => equalSecrets(it, right)) ? undefined : 'its signature is wrong';
}

function signatureOf(secret: string, id: string, timestamp: string, body: string): string {
  const key = webhookKey(secret);
  if (key === undefined) throw new RangeError('not a whsec_ secret of 24 to 64 bytes');
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`, 'utf8').digest('base64');
}
