import type { VirtualAccounts } from '../../protocol/virtual-accounts.ts';

/** The QRs of accounts may pay to these beside the account itself. The open sources write the table, and a welcome reads it. */
export class VirtualAccountTable {
  #byAccount: ReadonlyMap<string, readonly VirtualAccounts[]> = new Map();

  of(bankAccount: string): readonly VirtualAccounts[] {
    return this.#byAccount.get(bankAccount) ?? [];
  }

  replace(byAccount: ReadonlyMap<string, readonly VirtualAccounts[]>): void {
    this.#byAccount = byAccount;
  }
}
