import { DatabaseSync } from 'node:sqlite';
import { onTestFinished } from 'vitest';
import { dueOf } from '../../src/gateway/store/repositories/credit-sides.ts';
import type { NewCredit } from '../../src/gateway/store/repositories/credits.ts';
import type { Settlement } from '../../src/gateway/store/repositories/money-transaction.ts';
import type { PaymentEffects, StoredPayment } from '../../src/gateway/store/repositories/payments.ts';
import { openStore, type Store, type StorePlace } from '../../src/gateway/store/store.ts';
import type { Logger } from '../../src/lib/log.ts';
import { keptLog } from '../support/kept-log.ts';

export const BOX = 'VVB000001';

export const order = (id: string, change: Record<string, unknown> = {}) => ({
  id,
  partner: 'demo',
  order_id: id,
  bank_account: '1',
  bank_code: 'MB',
  user_bank_name: 'A',
  amount: 9_999_999_999_999,
  content: 'x',
  trans_type: 'C' as const,
  qr_code: `qr-${id}`,
  terminal_code: '',
  sub_terminal_code: '',
  service_code: '',
  sign: '',
  url_link: '',
  created_at_ms: 1,
  ...change,
});

export const push = (id: string, order_ref: string, change: Record<string, unknown> = {}) => ({
  id,
  order_ref,
  terminal_code: BOX,
  created_at_ms: 2,
  expires_at_ms: 1000,
  ...change,
});

export const attempt = (id: string, callback_id: string) => ({
  ...{ id, callback_id, by_hand: 0, started_at_ms: 6, duration_ms: 7, request_headers: '{}' },
  ...{ response_status: 500, response_body: 'no', error: null },
});

/** Keeps a payment of the order with this id, or of the money that every order here asks for. */
export function pay(
  store: Pick<Store, 'within'>,
  id: string,
  what: { orderRef?: string; atMs?: number } & Partial<Omit<PaymentEffects, 'payment'>> = {},
): Promise<StoredPayment> {
  const { orderRef, atMs = 5, notices: told = [], callback } = what;
  return store.within(async (tx) => {
    const paid = orderRef === undefined ? await tx.orderFor(order('any'), atMs) : await tx.order(orderRef);
    const payment = {
      ...{ id, order_ref: paid?.id ?? null, partner: 'demo', order_id: '', reference_number: 'r', bank_account: '1' },
      ...{ bank_code: 'MB', amount: 9_999_999_999_999, content: 'x', trans_type: 'C' as const, paid_at_ms: atMs },
    };
    const effects = { payment, notices: told, callback };
    await tx.addPayment(effects, atMs);
    const withdrawn = paid === undefined ? [] : await tx.settle(paid, 'paid', told, atMs);
    return { ...effects, withdrawn };
  });
}

/** A store that is closed when the test ends. */
export async function opened(place: StorePlace, log: Logger = keptLog().log): Promise<Store> {
  const store = await openStore(place, log);
  onTestFinished(() => store.close().catch(() => undefined));
  return store;
}

/** Changes rows of a SQLite store that nobody uses as a disk does it: past the engine, which would refuse or sum it. */
export function spoil(file: string, table: string, change: string): void {
  const db = new DatabaseSync(file);
  try {
    const kept = db.prepare('select sql from sqlite_schema where name = ?').get(`${table}_updated`);
    db.exec(`drop trigger ${table}_updated; update ${table} set ${change}; ${kept?.sql}`);
  } finally {
    db.close();
  }
}

/** A credit of 50,000 dong to the account `1`, heard of at once. */
export const credit = (id: string, change: Partial<NewCredit> = {}): NewCredit => ({
  id,
  other_ids: [`other ${id}`, `third ${id}`],
  time_is_known: true,
  source: 'bank',
  source_id: id,
  reference: '',
  bank_account: '1',
  virtual_account: '',
  amount: 50_000,
  text: 'x',
  bank_time_ms: 5,
  received_at_ms: 5,
  late: 0,
  ...change,
});

/** How a credit pays the order with this id, or none. */
export interface Paying extends Partial<Omit<PaymentEffects, 'payment'>> {
  orderRef?: string;
  settlement?: Settlement;
}

/**
 * Tells the store of a credit, as the gateway does; without `pays` nobody gets the money. `virtualAccounts`: accounts by
 * their virtual accounts.
 */
export function tellCredit(
  store: Pick<Store, 'within'>,
  told: NewCredit,
  pays: Paying | undefined,
  virtualAccounts: ReadonlyMap<string, string> = new Map(),
) {
  const { orderRef = '', settlement = 'paid', notices = [], callback } = pays ?? {};
  return store.within(async (tx) => {
    const taken = await tx.takeCredit(told, virtualAccounts, pays !== undefined);
    if (taken.kind !== 'new') return taken;
    const found = await tx.order(orderRef);
    const due = found === undefined ? null : dueOf(found.amount, (await tx.paidFor(found.id)) + told.amount);
    const payment = {
      ...{ id: taken.id, order_ref: found?.id ?? null, partner: 'demo', order_id: '', reference_number: 'r' },
      ...{
        bank_account: '1',
        bank_code: 'MB',
        amount: told.amount,
        content: 'x',
        trans_type: 'C' as const,
        paid_at_ms: 5,
      },
    };
    const effects = { payment, notices, callback };
    await tx.addPayment(effects, told.received_at_ms);
    const withdrawn = found === undefined ? [] : await tx.settle(found, settlement, notices, told.received_at_ms);
    if (due !== null) await tx.noteDue(taken.id, due);
    return { kind: 'payment' as const, stored: { ...effects, withdrawn }, due };
  });
}
