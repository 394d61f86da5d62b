import { explained } from '../protocol/codes.ts';
import { printer } from './print.ts';
import { type PartnerOptions, partnerOf } from './push.ts';

/** `paybox pay`: the sandbox's test callback; exit code 1 when the service says no. */
export async function pay(
  options: PartnerOptions & { amount: number; content: string; debit?: boolean },
): Promise<void> {
  const print = printer(options.json === true);
  const partner = partnerOf(options);
  const token = await partner.token();
  const answer = await partner.testCallback(token, {
    bankAccount: options.account,
    content: options.content,
    amount: options.amount,
    transType: options.debit === true ? 'D' : 'C',
  });
  const paid = answer.status === 'SUCCESS';
  print('pay', answer, paid ? `SUCCESS: transaction ${answer.message}` : `FAILED: ${explained(answer.message)}`);
  if (!paid) process.exitCode = 1;
}
