import { z } from 'zod';
import { isPlainText } from '../../lib/text.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { webhookKey } from '../../protocol/webhook.ts';
import { loginName, password } from './boxes-config.ts';
import { addressProblem } from './callback-destination.ts';

const httpUrl = z
  .url({ protocol: /^https?$/, error: 'an http:// or https:// address', abort: true })
  .max(LIMITS.urlMax)
  .refine((url) => !hasUserInfo(url), 'expected an address without a user name and password: use auth')
  .refine((url) => addressProblem(new URL(url)) === undefined, {
    error: ({ input }) => `expected the address of a partner: ${addressProblem(new URL(String(input)))}`,
  })
  // The same address, as a store can hold it.
  .transform((url) => (isPlainText(url) ? url : new URL(url).href));

/** Logs and the console show addresses, so an address must not contain a password. */
export function hasUserInfo(address: string): boolean {
  const url = new URL(address);
  return url.username !== '' || url.password !== '';
}

/** An address for whoever must not read secrets: a query may be a key. */
export function withoutQuery(url: string): string {
  return url.replace(/\?.*/s, '');
}

const callbackAuth = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('none') }),
  z.strictObject({ kind: z.literal('bearer'), token: z.string().min(1).max(4096) }),
  z
    .strictObject({ kind: z.literal('token'), url: httpUrl, username: loginName, password })
    .describe('fetched before each attempt'),
]);

/** Where a partner gets its callbacks, and how (PROTOCOL.md, clause SYN). */
export const callback = z.strictObject({
  url: httpUrl,
  auth: callbackAuth.default({ kind: 'none' }),
  signingSecret: z
    .string()
    .refine((secret) => webhookKey(secret) !== undefined, 'expected whsec_ and 24 to 64 random bytes in base64')
    .optional()
    .describe('signs each attempt by the Standard Webhooks scheme'),
  payload: z
    .enum(['public', 'camel', 'strings'])
    .default('public')
    .describe('the keys as the public service sends them, in camelCase, or with every value as a text'),
  success: z
    .union([z.literal('any2xx'), z.literal(200)], 'expected any2xx or 200')
    .default('any2xx')
    .describe('which answers say that a callback was processed: every 2xx, or 200 alone, as the specification has it'),
  decimals: z.boolean().default(false).describe('the amount as 25000.0'),
});

/** As in a file, where defaults may be left out. */
export type CallbackInput = z.input<typeof callback>;
export type CallbackConfig = z.output<typeof callback>;
export type CallbackAuth = CallbackConfig['auth'];
