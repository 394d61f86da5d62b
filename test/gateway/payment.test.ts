import { expect, it } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config.ts';
import { createDirectory } from '../../src/gateway/directory.ts';
import { paymentEffects } from '../../src/gateway/service/payment-effects.ts';
import type { OrderRow } from '../../src/store/schema/tables.ts';
import { order } from '../store/rows.ts';
import { ACCOUNT, BOX1, BOX2, BOXES } from './harness.ts';

/** Which boxes hear of a payment of an order that box 1 showed last, where these boxes are in the configuration. */
function toldOf(boxes: readonly unknown[], transType: 'C' | 'D' = 'C') {
  const { bankAccount, bankCode } = ACCOUNT;
  const partner = { username: 'demo', password: 'demo-secret', accounts: [bankAccount] };
  const config = parseGatewayConfig({ dataDir: '.', accounts: [ACCOUNT], boxes, partners: [partner] }, 'test');
  const shown = { status: 'shown', shown_on: BOX1.terminalCode, shown_push_id: 'p', last_push_id: 'p' } as const;
  const row: OrderRow = { ...order('a'), ...shown, seq: 1, failure: null, updated_at_ms: 1, paid_at_ms: null };
  const money = { partner: 'demo', bank_account: bankAccount, content: 'x', amount: 1, trans_type: transType };
  const ids = { transactionId: 't', callbackId: 'c', referenceNumber: 'r', paidAtMs: 5 };
  const isOnline = (terminalCode: string) => terminalCode === BOX1.terminalCode;
  return paymentEffects({ money, bankCode, ...ids, isOnline }, row, createDirectory(config)).notices;
}

const linked = BOXES.filter((it) => it.account === ACCOUNT.bankAccount);

it('CBK-7 tells the box that showed the order, and no debit to any', () => {
  expect(toldOf(linked)).toEqual([{ terminal_code: BOX1.terminalCode, push_id: 'p', told_at_ms: 5 }]);
  expect(toldOf(linked, 'D')).toEqual([]);
});

it('CBK-7 tells the others of the account when the box that showed it is not in the configuration any more', () => {
  const others = linked.filter((it) => it !== BOX1);
  expect(toldOf(others)).toEqual([{ terminal_code: BOX2.terminalCode, push_id: null, told_at_ms: null }]);
});
