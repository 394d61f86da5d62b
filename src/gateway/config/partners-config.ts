import { z } from 'zod';
import { findBank } from '../../protocol/banks.ts';
import { bankAccount, freeText, LIMITS } from '../../protocol/fields.ts';
import { password, username } from './boxes-config.ts';
import { callback } from './callback-config.ts';

/** The prefix that generate puts before a content (PROTOCOL.md, clauses GEN-9 and GEN-10). */
export const contentPrefix = z.enum(['none', 'vietqr', 'code']);

export const partner = z.strictObject({
  username,
  password,
  accounts: z.array(bankAccount).default([]),
  callback: callback.optional(),
});

export const account = z.strictObject({
  bankAccount,
  bankCode: z
    .string()
    .refine((code) => findBank(code) !== undefined, 'expected the short name of a bank, as MB, or a BIN, as 970422'),
  userBankName: freeText(LIMITS.userBankNameMax).min(1),
  contentPrefix: contentPrefix.optional().describe("for its QRs, in place of the gateway's"),
});
