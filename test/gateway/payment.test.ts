import { expect, it } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { paymentEffects } from '../../src/gateway/money/payment-effects.ts';
import { writeFileRows } from '../../src/gateway/registry/seed.ts';
import type { OrderRow } from '../../src/gateway/store/schema/tables.ts';
import { opened, order } from '../store/rows.ts';
import { temporaryFolder } from '../support/net.ts';
import { ACCOUNT, BOX1, BOX2, BOXES } from './harness.ts';

/** Which boxes hear of a payment of an order, by default one that box 1 showed last, where these boxes are in the configuration, and some are disabled. */
async function toldOf(
  boxes: readonly unknown[],
  transType: 'C' | 'D' = 'C',
  disabled: readonly string[] = [],
  made: Pick<OrderRow, 'shown_on' | 'shown_push_id' | 'terminal_code'> = {
    ...{ shown_on: BOX1.terminalCode, shown_push_id: 'p', terminal_code: '' },
  },
) {
  const { bankAccount, bankCode } = ACCOUNT;
  const partner = { username: 'demo', password: 'demo-secret', accounts: [bankAccount] };
  const config = parseGatewayConfig({ dataDir: '.', accounts: [ACCOUNT], boxes, partners: [partner] }, 'test');
  const shown = { status: 'shown', last_push_id: 'p' } as const;
  const row: OrderRow = { ...order('a'), ...shown, ...made, seq: 1, failure: null, updated_at_ms: 1, paid_at_ms: null };
  const money = { partner: 'demo', bank_account: bankAccount, content: 'x', amount: 1, trans_type: transType };
  const ids = { transactionId: 't', callbackId: 'c', referenceNumber: 'r', paidAtMs: 5 };
  const isOnline = (terminalCode: string) => terminalCode === BOX1.terminalCode;
  const { registry } = await opened({ dataDir: await temporaryFolder() });
  await writeFileRows(registry, config, 1);
  for (const name of disabled) {
    const box = await registry.find('boxes', name);
    if (box !== undefined) await registry.put('boxes', { ...box, disabled: 1 });
  }
  const audience = { recipients: await registry.recipients(row, bankAccount), callbackTo: undefined };
  return paymentEffects({ money, bankCode, ...ids, isOnline }, row, audience).notices;
}

const linked = BOXES.filter((it) => it.account === ACCOUNT.bankAccount);

it('CBK-7 tells the box that showed the order, and no debit to any', async () => {
  expect(await toldOf(linked)).toEqual([{ terminal_code: BOX1.terminalCode, push_id: 'p', told_at_ms: 5 }]);
  expect(await toldOf(linked, 'D')).toEqual([]);
});

it('CBK-7 tells the box that an order was made for, where none has shown it, and all where it was made for a store', async () => {
  const madeFor = (terminal_code: string) =>
    toldOf(linked, 'C', [], { terminal_code, shown_on: null, shown_push_id: null });
  const ofBox2 = { terminal_code: BOX2.terminalCode, push_id: null, told_at_ms: null };
  expect(await madeFor(BOX2.terminalCode)).toEqual([ofBox2]);
  const ofBox1 = { terminal_code: BOX1.terminalCode, push_id: null, told_at_ms: 5 };
  expect(await madeFor('QUAN1')).toEqual([ofBox1, ofBox2]);
});

it('CBK-7 tells the others of the account when the box that showed it is not in the configuration any more', async () => {
  const others = linked.filter((it) => it !== BOX1);
  const toOther = [{ terminal_code: BOX2.terminalCode, push_id: null, told_at_ms: null }];
  expect(await toldOf(others)).toEqual(toOther);
});

it('CBK-7 REG-6 tells the others of the account when the box that showed it is disabled, and no disabled one', async () => {
  const toOther = [{ terminal_code: BOX2.terminalCode, push_id: null, told_at_ms: null }];
  expect(await toldOf(linked, 'C', [BOX1.terminalCode])).toEqual(toOther);
  expect(await toldOf(linked, 'C', [BOX1.terminalCode, BOX2.terminalCode])).toEqual([]);
});
