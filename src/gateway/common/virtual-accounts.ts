import type { VirtualAccounts } from '../../protocol/virtual-accounts.ts';

/** Holds the virtual accounts that QRs may pay to. The open sources write the table, and a welcome reads it. */
export class VirtualAccountTable {
  #byAccount: ReadonlyMap<string, readonly VirtualAccounts[]> = new Map();

  of(bankAccount: string): readonly VirtualAccounts[] {
    return this.#byAccount.get(bankAccount) ?? [];
  }

  replace(byAccount: ReadonlyMap<string, readonly VirtualAccounts[]>): void {
    this.#byAccount = byAccount;
  }
}
