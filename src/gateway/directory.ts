import type { Bank } from '../protocol/banks.ts';
import { findBank } from '../protocol/banks.ts';
import type { LinkedAccount } from '../protocol/messages.ts';
import type { AccountConfig, BoxConfig, GatewayConfig, PartnerConfig } from './config.ts';

/** An account with its bank and its partner, if any. */
export interface Account extends AccountConfig {
  bank: Bank;
  partner: string | undefined;
}

/** Secrets that boxes got at enrolment. */
export interface EnrolledSecrets {
  get(terminalCode: string, serialNumber: string): string | undefined;
}

/** Looks up partners, accounts and boxes of the configuration. */
export interface Directory {
  partner(username: string): PartnerConfig | undefined;
  account(bankAccount: string): Account | undefined;
  /**
   * A box with its secret from the configuration or from enrolment. Without a secret it cannot log in, as no box of the
   * dialect vietqr can.
   */
  box(terminalCode: string): BoxConfig | undefined;
  /** Whether the secret of this box comes from enrolment. */
  enrols(terminalCode: string): boolean;
  /** The box with this terminalCode or serialNumber; with both given, they must name the same box. */
  boxNamed(terminalCode: string, serialNumber: string): BoxConfig | undefined;
  boxesOf(bankAccount: string): BoxConfig[];
  boxes(): readonly BoxConfig[];
  /** The account that the welcome announces to a box; null without one (PROTOCOL.md, clause MSG-4). */
  accountOf(box: BoxConfig): LinkedAccount | null;
}

export function createDirectory(config: GatewayConfig, enrolled: EnrolledSecrets = new Map()): Directory {
  const partners = new Map(config.partners.map((it) => [it.username, it]));
  const partnerOf = new Map(config.partners.flatMap((it) => it.accounts.map((account) => [account, it.username])));
  const accounts = new Map<string, Account>();
  for (const it of config.accounts) {
    const bank = findBank(it.bankCode);
    if (bank !== undefined) accounts.set(it.bankAccount, { ...it, bank, partner: partnerOf.get(it.bankAccount) });
  }
  const byTerminal = new Map(config.boxes.map((it) => [it.terminalCode, it]));
  const bySerial = new Map(config.boxes.map((it) => [it.serialNumber, it]));
  return {
    partner: (username) => partners.get(username),
    account: (bankAccount) => accounts.get(bankAccount),
    box: (terminalCode) => {
      const box = byTerminal.get(terminalCode);
      if (box === undefined || box.dialect === 'vietqr') return box;
      return { ...box, secret: box.secret ?? enrolled.get(terminalCode, box.serialNumber) };
    },
    enrols: (terminalCode) => {
      const box = byTerminal.get(terminalCode);
      return box?.dialect === 'paybox' && box.secret === undefined;
    },
    boxNamed: (terminalCode, serialNumber) => {
      const box = terminalCode === '' ? bySerial.get(serialNumber) : byTerminal.get(terminalCode);
      return serialNumber === '' || box?.serialNumber === serialNumber ? box : undefined;
    },
    boxesOf: (bankAccount) => config.boxes.filter((it) => it.account === bankAccount),
    boxes: () => config.boxes,
    accountOf: (box) => {
      const account = box.account === undefined ? undefined : accounts.get(box.account);
      if (account === undefined) return null;
      const { bankAccount, bankCode, userBankName } = account;
      return { bankAccount, bankCode, userBankName };
    },
  };
}
