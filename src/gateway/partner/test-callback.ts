import { z } from 'zod';
import { findBank } from '../../protocol/banks.ts';
import { isObject } from '../../protocol/codec.ts';
import { amountVnd, bankAccount, freeText, LIMITS } from '../../protocol/fields.ts';
import type { Account, Directory, Partner } from '../common/directory.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import { isTestable } from '../money/content.ts';
import { allCodesIn } from '../money/matching.ts';
import type { CallNotes } from './call-notes.ts';
import { EXPECTED } from './expected.ts';

/** A content of the specification, or a bank's text that contains the code of a QR. */
const content = freeText(LIMITS.pushContentMax);
const transType = z.enum(['C', 'D']).default('C');

/** A payment to simulate. */
export interface Simulated {
  account: Account;
  content: string;
  amount: number;
  transType: 'C' | 'D';
}

export interface TestCallbackDeps {
  directory: Directory;
  sandbox: boolean;
  notes: CallNotes;
  /** The default for accounts without their own. With a code, a bank's text is accepted (PROTOCOL.md, clause CBK-8). */
  contentPrefix: NonNullable<Account['contentPrefix']>;
}

/**
 * Checks a test callback in the order of PROTOCOL.md, clause CBK-2. It decodes field by field, because a missing or
 * wrongly typed field has its own code here, not E46.
 */
export async function decideTestCallback(
  json: unknown,
  partner: Partner,
  { directory, sandbox, notes, contentPrefix }: TestCallbackDeps,
): Promise<Result<Simulated>> {
  if (!sandbox)
    return refuse('E75', 'this gateway takes real money, and only money pays its orders: expected a sandbox');
  if (!isObject(json)) return refuse('E46', 'body: expected a JSON object');
  const fields = {
    bankAccount: bankAccount.safeParse(json.bankAccount),
    content: content.safeParse(json.content),
    amount: amountVnd.safeParse(json.amount),
    transType: transType.safeParse(json.transType),
  };
  if (!fields.bankAccount.success) return refuse('010', EXPECTED.bankAccount);
  const account = await directory.account(fields.bankAccount.data);
  const hasCodes = (account?.contentPrefix ?? contentPrefix) !== 'none';
  if (!fields.content.success || !isTaken(fields.content.data, hasCodes ? notes : undefined)) {
    return refuse('009', `content: expected 1 to ${LIMITS.testCallbackContentMax} letters, digits and spaces`);
  }
  if (!fields.amount.success) return refuse('002', EXPECTED.amount);
  if (!fields.transType.success) return refuse('003', EXPECTED.transType);

  if (account?.partner !== partner.username) return refuse('E77', EXPECTED.ownAccount);
  if (json.bankCode !== undefined && !isBankOf(account, json.bankCode)) {
    return refuse('E51', EXPECTED.ownBank);
  }
  if (partner.callback === undefined)
    return refuse('E76', 'expected callback.url of this partner in the configuration of the gateway');
  return accept({
    account,
    content: fields.content.data,
    amount: fields.amount.data,
    transType: fields.transType.data,
  });
}

function isTaken(text: string, notes: CallNotes | undefined): boolean {
  if (isTestable(text)) return true;
  return (
    allCodesIn(text).length > 0 && notes?.takes('content: the text of a bank, for the code of a QR in it') === true
  );
}

function isBankOf(account: Account, bankCode: unknown): boolean {
  return typeof bankCode === 'string' && findBank(bankCode)?.bin === account.bank.bin;
}
