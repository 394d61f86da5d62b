import { createHash } from 'node:crypto';
import { isPlainText, storable } from '../../lib/text.ts';
import { vietnamDay } from '../../lib/vietnam-time.ts';
import type { Due } from '../../protocol/messages.ts';
import type { CreditResult } from '../common/credit-result.ts';
import type { Account, MoneyDirectory } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { CallbackConfig } from '../config/callback-config.ts';
import type { GatewayConfig } from '../config/config.ts';
import { CREDIT_FRESH_MS, dueOf } from '../store/repositories/credit-sides.ts';
import type { NewCredit } from '../store/repositories/credits.ts';
import type { MoneyTransaction, Settlement } from '../store/repositories/money-transaction.ts';
import type { StoredPayment } from '../store/repositories/payments.ts';
import { listedId, spelled } from '../store/repositories/same-credit.ts';
import type { OrderRow } from '../store/schema/tables.ts';
import type { Store } from '../store/store.ts';
import { findOrder } from './matching.ts';
import { paymentEffects } from './payment-effects.ts';
import { type PaymentHearers, reportFromStore, reportPayment } from './receive-payment.ts';
import type { Credit } from './sources/source.ts';

/** A stored credit. `report` sends its payment, if it has one, to boxes and partner. */
export interface ReceivedCredit {
  result: CreditResult;
  report(): void;
}

/**
 * Stores a credit and its payment in one transaction (PROTOCOL.md, clauses CRE-1 to CRE-4). `caughtUp` means that the
 * gateway found the credit in a list. The caller first answers the source, then calls `report`. Rejects when the store
 * fails.
 */
export type ReceiveCredit = (source: string, credit: Credit, caughtUp: boolean) => Promise<ReceivedCredit>;

export function createReceiveCredit(world: World, stored: Stored, hearers: PaymentHearers): ReceiveCredit {
  const { clock, changes, log, config } = world;
  const { store, directory } = stored;
  return async (source, told, caughtUp) => {
    const receivedAtMs = clock.wallMs();
    const credit = rowOf(source, told, { receivedAtMs, caughtUp, virtualAccounts: config.virtualAccounts });
    const account = await accountOf(world, stored, store.paymentRequests, source, told, credit);
    const boxes = account === undefined ? [] : await directory.boxesOf(account.bankAccount);
    const received = await store
      .within(async (tx) => {
        const payee = account && (await payeeIn(directory.within(tx.registry), account, told));
        return storeCredit(tx, world, hearers, credit, payee);
      })
      .catch((error: unknown) => {
        if (account !== undefined) reportFromStore(hearers, account.partner ?? '', boxes);
        throw error;
      });
    const { bank_account: bankAccount, amount, reference } = credit;
    const facts = { source, id: credit.source_id, reference, bankAccount, amount };
    if (received.kind === 'payment') {
      const { stored: paid, due } = received;
      const isMatched = paid.payment.order_ref !== null;
      const time = credit.time_is_known ? undefined : 'unreadable';
      log.info('credit-received', {
        ...facts,
        transactionId: paid.payment.id,
        late: credit.late === 1,
        matched: isMatched,
        ...(time && { time }),
      });
      const report = () => {
        reportPayment(world, hearers, paid, { late: credit.late === 1, due });
        changes.publish('credits');
      };
      return { result: isMatched ? 'paid' : 'unmatched', report };
    }
    const report = () => changes.publish('credits');
    if (received.kind === 'duplicate') {
      // A list repeats known credits each time, so they are not logged.
      if (!caughtUp) log.info('credit-repeated', { source, id: credit.source_id });
      return { result: 'duplicate', report };
    }
    const result = received.isAccountKnown ? 'too-old' : 'account-unknown';
    log.warn('credit-not-paid-out', { ...facts, reason: result });
    return { result, report };
  };
}

interface RequestedAccounts {
  accountOf: Store['paymentRequests']['accountOf'];
  accountBehind: Store['paymentRequests']['accountBehind'];
}

/**
 * Returns the account that gets the money. The source may name the order; then it is the order's account. Otherwise it
 * is the virtual account, or the account behind it (PROTOCOL.md, clauses CRE-4 and PQR-4).
 */
export async function accountOf(
  { config }: World,
  { directory }: Stored,
  requests: RequestedAccounts,
  source: string,
  { orderCode }: Credit,
  { virtual_account, bank_account }: NewCredit,
): Promise<Account | undefined> {
  const ordered = orderCode === undefined ? undefined : await requests.accountOf(source, orderCode);
  const told = [virtual_account, bank_account].filter((it) => it !== '');
  const behind = async (name: string) => config.virtualAccounts.get(name) ?? (await requests.accountBehind(name));
  for (const name of [ordered ?? '', ...told]) {
    const account = name === '' ? undefined : await directory.account(name);
    if (account !== undefined) return account;
  }
  for (const name of told) {
    const account = await directory.account((await behind(name)) ?? '');
    if (account !== undefined) return account;
  }
  return undefined;
}

interface Heard {
  receivedAtMs: number;
  caughtUp: boolean;
  virtualAccounts: ReadonlyMap<string, string>;
}

/** Returns the row of a credit. */
export function rowOf(source: string, told: Credit, { receivedAtMs, caughtUp, virtualAccounts }: Heard): NewCredit {
  const reference = cleaned(told.reference);
  const bankAccount = cleaned(told.bankAccount);
  const bankTimeMs = told.bankTimeMs ?? receivedAtMs;
  const sourceId = storable(told.sourceId);
  const isLate = caughtUp || receivedAtMs - bankTimeMs > CREDIT_FRESH_MS;
  const virtualAccount = cleaned(told.virtualAccount);
  const main = virtualAccounts.get(bankAccount) ?? bankAccount;
  const key = reference === '' ? [source, told.sourceId] : [main, spelled(reference), String(told.amount)];
  const payee = virtualAccount === '' ? bankAccount : virtualAccount;
  const otherKeys = [
    [...key, payee],
    [...key, payee, vietnamDay(bankTimeMs)],
    [source, told.sourceId, bankAccount, ...key],
  ];
  return {
    id: creditId(key),
    other_ids: otherKeys.map(creditId),
    webhook: told.listed,
    time_is_known: told.bankTimeMs !== undefined,
    source,
    source_id: told.listed === undefined ? sourceId : listedId(sourceId),
    reference,
    bank_account: bankAccount,
    virtual_account: virtualAccount,
    amount: told.amount,
    text: cleaned(told.text),
    bank_time_ms: bankTimeMs,
    received_at_ms: receivedAtMs,
    late: isLate ? 1 : 0,
  };
}

/**
 * Returns the id of a credit and of its payment. The same credit has the same id after a restored backup, and from
 * another source, so that no box announces it twice (clause CRE-3).
 */
function creditId(key: readonly string[]): string {
  const hex = createHash('sha256').update(JSON.stringify(key)).digest('hex');
  const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Puts a bank's text into one line, without characters that a screen or a log could not show (PROTOCOL.md, clause
 * ERR-3).
 */
function cleaned(text: string): string {
  return [...text.toWellFormed()]
    .map((char) => (isPlainText(char) ? char : ' '))
    .join('')
    .trim();
}

/** The account that gets the money of a credit, and the order that its source names. */
interface CreditPayee {
  account: Account;
  partner: string;
  callbackTo: CallbackConfig | undefined;
  orderCode: number | undefined;
  code: string | undefined;
}

/** `kept` means that the credit is stored without a payment. */
type StoredCredit =
  | { kind: 'duplicate' | 'kept'; isAccountKnown: boolean }
  | { kind: 'payment'; stored: StoredPayment; due: Due | null };

/** Returns who gets the money now. Undefined if the account was removed a moment ago. */
async function payeeIn(
  directory: MoneyDirectory,
  { bankAccount }: Account,
  { orderCode, code }: Credit,
): Promise<CreditPayee | undefined> {
  const account = await directory.account(bankAccount);
  if (account === undefined) return undefined;
  const partner = account.partner ?? '';
  const callbackTo = (await directory.partner(partner))?.callback;
  return { account, partner, callbackTo, orderCode, code };
}

/**
 * Stores a credit, and for its payee a payment with notices and callback. A credit without a payee, or one that is too
 * old, has no payment.
 */
async function storeCredit(
  tx: MoneyTransaction,
  { random, config }: World,
  { hub }: PaymentHearers,
  credit: NewCredit,
  payee: CreditPayee | undefined,
): Promise<StoredCredit> {
  const taken = await tx.takeCredit(credit, config.virtualAccounts, payee !== undefined);
  if (taken.kind !== 'new') return { kind: taken.kind, isAccountKnown: payee !== undefined };
  if (payee === undefined) throw new Error('a credit without a payee has no payment');
  const { account, partner, callbackTo, orderCode, code } = payee;
  const { bankAccount, bankCode } = account;
  const finder = tx.ordersOf({ partner, bankAccount });
  const orderId = await findOrder({ ...credit, orderCode, code }, finder);
  const order = orderId === undefined ? undefined : await tx.order(orderId);
  const matched = order && { order, paid: (await tx.paidFor(order.id)) + credit.amount };
  const settlement = matched === undefined ? 'open' : settlementOf(matched, config);
  const due = matched === undefined ? null : dueOf(matched.order.amount, matched.paid);
  const incoming = {
    money: {
      partner,
      bank_account: bankAccount,
      content: credit.text,
      amount: credit.amount,
      trans_type: 'C' as const,
    },
    bankCode,
    transactionId: taken.id,
    callbackId: random.uuid(),
    referenceNumber: credit.reference || `${credit.source}-${credit.source_id}`,
    // The clock of a bank may be ahead.
    paidAtMs: Math.min(credit.bank_time_ms, credit.received_at_ms),
    toldAtMs: credit.received_at_ms,
    isOnline: (terminalCode: string) => hub.session(terminalCode) !== undefined,
    due,
    // A payment replaces the QR on the screen only if it settles the order.
    isOverQr: credit.late === 0 && settlement !== 'open',
  };
  const recipients = await tx.registry.recipients(order, bankAccount);
  const effects = paymentEffects(incoming, order, { recipients, callbackTo });
  const atMs = credit.received_at_ms;
  await tx.addPayment(effects, atMs);
  const withdrawn = order === undefined ? [] : await tx.settle(order, settlement, effects.notices, atMs);
  if (due !== null) await tx.noteDue(taken.id, due);
  return { kind: 'payment', stored: { ...effects, withdrawn }, due };
}

/** An order, and what is paid for it including this credit. */
interface Matched {
  order: OrderRow;
  paid: number;
}

function settlementOf({ order, paid }: Matched, { underpaid, overpaid }: GatewayConfig): Settlement {
  if (paid === order.amount) return 'paid';
  if (paid < order.amount) return underpaid === 'end' ? 'ended' : 'open';
  return overpaid === 'end' ? 'paid' : 'open';
}
