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
  // Writes the address in the form that a store can hold. It leads to the same place.
  .transform((url) => (isPlainText(url) ? url : new URL(url).href));

/** Logs and the console show addresses, so an address must not contain a password. */
export function hasUserInfo(address: string): boolean {
  const url = new URL(address);
  return url.username !== '' || url.password !== '';
}

/** Returns an address without its query, for readers who must not see secrets. A query may contain a key. */
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

/** The address at which a partner receives its callbacks, with their login and form (PROTOCOL.md, clause SYN). */
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
    .describe(
      'which answers mean that the partner processed a callback: every 2xx, or only 200, as the specification says',
    ),
  decimals: z.boolean().default(false).describe('the amount as 25000.0'),
});

/** A callback as a file has it, where defaults may be missing. */
export type CallbackInput = z.input<typeof callback>;
export type CallbackConfig = z.output<typeof callback>;
export type CallbackAuth = CallbackConfig['auth'];
