import { findBank } from '../../protocol/banks.ts';
import { faultOfContent } from '../../protocol/faults.ts';
import type { Account } from '../gateway-at.ts';
import { generateBody } from './calls.ts';
import type { Recording } from './recording.ts';

/** A terminalCode that the bench gives to no box. */
export const NO_BOX = 'VVB999999';

/** Who took part in a session, as a scenario calls them: one account, and its boxes by number. */
export class Stand {
  readonly account: Account;
  /** terminalCodes, in the order in which they were heard of. */
  readonly boxes: readonly string[];
  readonly #serials: ReadonlyMap<string, string>;
  /** From when on something went wrong by order. */
  readonly #faultyMs: number;

  constructor({ heard, sights, account, serials }: Recording) {
    this.account = account ?? accountOf(heard) ?? { bankAccount: '', bankCode: '', userBankName: '' };
    const told = heard.flatMap((it) => (it.kind === 'message' ? [it.box] : []));
    this.boxes = [...new Set([...sights.map(({ box }) => box), ...told])];
    this.#serials = serials;
    this.#faultyMs = heard.find(isFaultOrder)?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Whether a call is about the account of the session. */
  isOurs({ bankAccount, bankCode }: Pick<Account, 'bankAccount' | 'bankCode'>): boolean {
    return bankAccount === this.account.bankAccount && this.isOurBank(bankCode);
  }

  /** Whether it is the bank of the account, by whatever name. */
  isOurBank(bankCode: string): boolean {
    return bankCode === this.account.bankCode || findBank(bankCode)?.bin === findBank(this.account.bankCode)?.bin;
  }

  /** The terminalCode of a box by either of its codes; undefined for one that is none of the session. */
  boxOf(terminalCode: string, serialNumber: string): string | undefined {
    return this.boxes.find((it) => it === terminalCode || (terminalCode === '' && this.serialOf(it) === serialNumber));
  }

  serialOf(terminalCode: string): string | undefined {
    return this.#serials.get(terminalCode);
  }

  /** What a step says to be about this box: nothing for the first. */
  boxKey(terminalCode: string | undefined): { box?: number } {
    const index = terminalCode === undefined ? 0 : this.boxes.indexOf(terminalCode);
    return index <= 0 ? {} : { box: index + 1 };
  }

  /** How the file refers to a box. */
  boxVariable(terminalCode: string): string | undefined {
    const index = this.boxes.indexOf(terminalCode);
    return index < 0 ? undefined : `\${boxes.${index}.terminalCode}`;
  }

  /** Whether a fault had been ordered by then. */
  isFaulty(atMs: number): boolean {
    return atMs >= this.#faultyMs;
  }
}

function isFaultOrder(it: Recording['heard'][number]): boolean {
  if (it.kind !== 'call') return false;
  if (it.path.startsWith('/_mock/faults') && it.method === 'POST') return true;
  const body = generateBody.safeParse(it.body);
  return body.success && faultOfContent(body.data.content) !== undefined;
}

/** Whose money a session is about, by its first order. */
function accountOf(heard: Recording['heard']): Account | undefined {
  for (const it of heard) {
    const body = it.kind === 'call' ? generateBody.safeParse(it.body) : undefined;
    if (body?.success) {
      const { bankAccount, bankCode, userBankName } = body.data;
      return { bankAccount, bankCode, userBankName };
    }
  }
  return undefined;
}
