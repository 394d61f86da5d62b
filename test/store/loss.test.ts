import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { BOX1, BOX2, partnerServer, processed, status, testGateway } from '../gateway/harness.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { opened, pay, spoil } from './rows.ts';

const [STORE, MARK, ACCEPT] = ['gateway.sqlite', 'gateway.mark', 'gateway.accept-loss'];

/** A folder whose store has lost the second of three payments. */
async function damagedStore() {
  const dataDir = await temporaryFolder();
  const store = await opened({ dataDir });
  for (const id of ['a', 'b', 'c']) await pay(store, id);
  await store.close();
  spoil(join(dataDir, STORE), 'payments', "amount = 1 where id = 'b'");
  return { dataDir, accept: join(dataDir, ACCEPT), mark: join(dataDir, MARK) };
}

function rowsOf(dataDir: string, query: string): unknown[] {
  const db = new DatabaseSync(join(dataDir, STORE));
  try {
    return db.prepare(query).all();
  } finally {
    db.close();
  }
}

describe('a damaged or incomplete store', () => {
  it.each([
    ['with its mark', async () => undefined],
    ['without a mark', (mark: string) => rm(mark)],
    ['with a damaged mark', (mark: string) => writeFile(mark, 'what was a mark')],
  ])('STO-3 is refused %s, as often as it is started, until an admin accepts the loss', async (_name, change) => {
    const { dataDir, accept, mark } = await damagedStore();
    await change(mark);
    for (let n = 0; n < 2; n += 1) {
      await expect(opened({ dataDir })).rejects.toMatchObject({
        code: 'CONFIG',
        message: expect.stringContaining('damaged in payments: b'),
        fix: expect.stringContaining(`make the empty file ${accept} to go on`),
      });
    }
    expect(rowsOf(dataDir, 'select name from damaged_rows')).toEqual([]);
    await writeFile(accept, '');
    const { log, lines } = keptLog();
    const store = await opened({ dataDir }, log);
    expect((await store.payments.newest(10)).map(({ id }) => id)).toEqual(['c', 'a']);
    expect(lines.map((it) => it.event)).toContain('store-loss-accepted');
    await store.close();
    expect(rowsOf(dataDir, 'select name from damaged_rows')).toEqual([{ name: 'b' }]);
    expect(await readdir(dataDir)).toEqual([MARK, STORE]);
    // What was accepted was that loss, not the next.
    spoil(join(dataDir, STORE), 'payments', "amount = 1 where id = 'c'");
    await expect(opened({ dataDir })).rejects.toMatchObject({ fix: expect.stringContaining(accept) });
  });

  it('STO-3 is refused for a damaged mark alone, and goes on with a new one where there was none', async () => {
    const dataDir = await temporaryFolder();
    const [mark, accept] = [join(dataDir, MARK), join(dataDir, ACCEPT)];
    const first = await opened({ dataDir });
    await pay(first, 'a');
    await first.close();
    await writeFile(mark, 'what was a mark');
    await expect(opened({ dataDir })).rejects.toMatchObject({
      message: expect.stringContaining(`${mark} is damaged`),
      fix: expect.stringContaining(accept),
    });
    await writeFile(accept, '');
    const second = await opened({ dataDir });
    expect(await second.payments.newest(10)).toHaveLength(1);
    await second.close();
    await rm(mark);
    // Nothing is lost: an acceptance from before is not kept for what may be.
    await writeFile(accept, '');
    const { log, lines } = keptLog();
    await (await opened({ dataDir }, log)).close();
    expect(lines.map((it) => it.event)).toEqual(['mark-created', 'store-loss-not-found']);
    expect(await readdir(dataDir)).toEqual([MARK, STORE]);
  });
});

describe('a payment whose callback and notice are damaged before anybody was told', () => {
  /** Its order, shown on box 1, is paid while the partner fails; then the rows are spoilt, and the loss is accepted. */
  async function afterLoss(spoilt: Record<string, string>) {
    const dataDir = await temporaryFolder();
    const partner = await partnerServer(status(500), processed);
    const options = { dataDir, callback: { url: partner.url } };
    const first = await testGateway(options);
    const box = await connectFakeBox({ gateway: first, identity: BOX1, transport: 'http' });
    await first.sendQr();
    const { pushId } = await box.next('show');
    await eventually('the QR shown', async () => (await first.mock('/orders'))[0]?.status === 'shown');
    const id = String((await first.testCallback()).body.message);
    await eventually('the partner called', () => partner.calls.length === 1);
    const [callback] = await first.mock('/callbacks');
    await box.close();
    await first.close();
    for (const [table, change] of Object.entries(spoilt)) spoil(join(dataDir, STORE), table, change);
    await expect(testGateway(options)).rejects.toMatchObject({ message: expect.stringContaining(id) });
    await writeFile(join(dataDir, ACCEPT), '');
    const second = await testGateway(options);
    await eventually('the partner called again', () => partner.calls.length === 2);
    const callbacks = await second.mock('/callbacks');
    expect(callbacks).toEqual([expect.objectContaining({ transactionId: id })]);
    const [before, after] = partner.calls.map((it) => JSON.parse(it.body));
    const isSameId = callbacks[0]?.id === callback?.id;
    return {
      second,
      id,
      pushId,
      before,
      after,
      isSameBody: partner.calls[0]?.body === partner.calls[1]?.body,
      isSameId,
    };
  }

  it('STO-4 SYN-2 AGT-11 is told with the same bytes and id to its partner, and to its box as what may have been said', async () => {
    const { second, id, pushId, isSameBody, isSameId } = await afterLoss({
      callbacks: "body = '{}', status = 'delivered'",
      notices: 'reported_at_ms = 7',
    });
    expect([isSameBody, isSameId]).toEqual([true, true]);
    const [box1, box2] = [
      await connectFakeBox({ gateway: second, identity: BOX1, transport: 'http' }),
      await connectFakeBox({ gateway: second, identity: BOX2, transport: 'http' }),
    ];
    expect(await box1.next('payment')).toMatchObject({ transactionId: id, pushId, repeated: true });
    expect(await second.mock('/payments')).toEqual([
      expect.objectContaining({ boxes: [expect.objectContaining({ terminalCode: BOX1.terminalCode })] }),
    ]);
    expect(box2.of('payment')).toEqual([]);
  });

  it('STO-4 CBK-7 is told with what the payment itself knows where its order is damaged too', async () => {
    const { second, id, before, after } = await afterLoss({
      callbacks: "body = '{}'",
      notices: 'reported_at_ms = 7',
      orders: 'amount = 1',
    });
    expect(after).toEqual({ ...before, terminalCode: '' });
    const box1 = await connectFakeBox({ gateway: second, identity: BOX1, transport: 'http' });
    expect(await box1.next('payment')).toMatchObject({ transactionId: id, pushId: null, repeated: true });
  });

  it('STO-4 is told where neither row says any more which payment it was for', async () => {
    const { second, id, isSameBody } = await afterLoss({
      callbacks: "payment_id = 'x' || payment_id",
      notices: "payment_id = 'x' || payment_id",
    });
    expect(isSameBody).toBe(true);
    const box1 = await connectFakeBox({ gateway: second, identity: BOX1, transport: 'http' });
    expect(await box1.next('payment')).toMatchObject({ transactionId: id, repeated: true });
  });
});
