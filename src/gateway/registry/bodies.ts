import { z } from 'zod';
import { bankAccount, boxCode } from '../../protocol/fields.ts';
import { strongSecret } from '../../protocol/secret.ts';
import { password, username } from '../config/boxes-config.ts';
import { callback } from '../config/callback-config.ts';
import { account } from '../config/partners-config.ts';
import { sourceSecret } from '../money/sources/fields.ts';
import { sourceOptions } from '../money/sources/registry.ts';

/** Bodies of new rows. */
export const NEW_ROWS = {
  partners: z.strictObject({
    username,
    password: password.optional().describe('left out: the gateway makes one'),
    callback: callback.optional(),
  }),
  accounts: account.extend({ partner: username.optional() }),
  boxes: z.strictObject({
    terminalCode: boxCode,
    serialNumber: boxCode,
    account: bankAccount.optional(),
    secret: strongSecret.optional().describe('left out: the box enrols'),
  }),
  sources: sourceOptions.describe("as an entry of sources in the gateway's file"),
};

/** Bodies of changes: what is left out stays as it is; null takes away. */
export const CHANGES = {
  partners: z.strictObject({ callback: callback.nullable() }).partial(),
  accounts: account
    .omit({ bankAccount: true, contentPrefix: true })
    .extend({ contentPrefix: account.shape.contentPrefix.nullable(), partner: username.nullable() })
    .partial(),
  boxes: z.strictObject({ serialNumber: boxCode, account: bankAccount.nullable() }).partial(),
  sources: z
    .record(z.string(), z.unknown())
    .describe('keys of its kind but kind and name, each replaced as a whole; null takes one away'),
};

/** Bodies of `link`: to what. */
export const LINKS = {
  accounts: z.strictObject({ partner: username }),
  boxes: z.strictObject({ account: bankAccount }),
};

/** Bodies of `rotate`. */
export const ROTATIONS = {
  partners: z.strictObject({ password: password.optional().describe('left out: the gateway makes one') }),
  boxes: z.strictObject({
    enrol: z.boolean().optional().describe('true: a box with a secret of its own enrols from now on'),
  }),
  sources: z.strictObject({
    key: sourceSecret.optional().describe('the new key, from the provider; left out: the gateway makes one'),
  }),
};

export type NewRow<Table extends keyof typeof NEW_ROWS> = z.output<(typeof NEW_ROWS)[Table]>;
export type Change<Table extends keyof typeof CHANGES> = z.output<(typeof CHANGES)[Table]>;
