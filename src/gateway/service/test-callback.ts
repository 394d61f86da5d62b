import { z } from 'zod';
import { findBank } from '../../protocol/banks.ts';
import { amountVnd, bankAccount, LIMITS } from '../../protocol/fields.ts';
import type { PartnerConfig } from '../config.ts';
import { isObject } from '../decode.ts';
import type { Account, Directory } from '../directory.ts';
import { accept, type Result, refuse } from '../result.ts';

const content = z.string().regex(new RegExp(`^[A-Za-z0-9 ]{1,${LIMITS.testCallbackContentMax}}$`));
const transType = z.enum(['C', 'D']).default('C');

/** A payment to simulate. */
export interface Simulated {
  account: Account;
  content: string;
  amount: number;
  transType: 'C' | 'D';
}

/**
 * Checks a test callback in the order of PROTOCOL.md, clause CBK-2. It decodes field by field, because here a missing
 * or wrongly typed field has its own code, not E46.
 */
export function decideTestCallback(
  json: unknown,
  partner: PartnerConfig,
  directory: Directory,
  sandbox: boolean,
): Result<Simulated> {
  if (!sandbox) return refuse('E75', 'not a sandbox');
  if (!isObject(json)) return refuse('E46', 'the body is not a JSON object');
  const fields = {
    bankAccount: bankAccount.safeParse(json.bankAccount),
    content: content.safeParse(json.content),
    amount: amountVnd.safeParse(json.amount),
    transType: transType.safeParse(json.transType),
  };
  if (!fields.bankAccount.success) return refuse('010', 'bankAccount');
  if (!fields.content.success) return refuse('009', 'content');
  if (!fields.amount.success) return refuse('002', 'amount');
  if (!fields.transType.success) return refuse('003', 'transType');

  const account = directory.account(fields.bankAccount.data);
  if (account?.partner !== partner.username) return refuse('E77', 'bankAccount is not of this partner');
  if (json.bankCode !== undefined && !isBankOf(account, json.bankCode)) {
    return refuse('E51', 'bankCode is not the bank of the account');
  }
  if (partner.callback === undefined) return refuse('E76', 'the partner has no callback url');
  return accept({
    account,
    content: fields.content.data,
    amount: fields.amount.data,
    transType: fields.transType.data,
  });
}

function isBankOf(account: Account, bankCode: unknown): boolean {
  return typeof bankCode === 'string' && findBank(bankCode)?.bin === account.bank.bin;
}
