import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { connectFakeBox, type FakeBoxOptions } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  BOX1,
  BOX2,
  BOX3,
  BOX4,
  expectRefused,
  expectRefusedInOrder,
  FOREIGN_ACCOUNT,
  OTHER_ACCOUNT,
  push,
  qrFor,
  qrWithoutText,
  SEND_QR,
  type TestGateway,
  testGateway,
} from './harness.ts';

const md5 = (text: string) => createHash('md5').update(text, 'utf8').digest('hex');
const SUCCESS = { status: 'SUCCESS', message: '' };
const boxOf = (gateway: TestGateway, onShow?: FakeBoxOptions['onShow']) =>
  connectFakeBox({ gateway, identity: BOX1, transport: 'http', ...(onShow === undefined ? {} : { onShow }) });

describe('SND-9', () => {
  const shows = (box: { of(type: 'show'): unknown[] }) => box.of('show').length;

  it('SND-9 is one push while it is awaited and while it is on the screen', async () => {
    const gateway = await testGateway();
    const box = await boxOf(gateway);
    const both = await Promise.all([gateway.sendQr(), gateway.sendQr()]);
    expect(both.map((it) => it.body)).toEqual([SUCCESS, SUCCESS]);
    expect((await gateway.sendQr()).body).toEqual(SUCCESS);
    expect(shows(box)).toBe(1);
    expect((await gateway.mock('/orders')).length).toBe(1);
  });

  it('SND-9 warns of a push whose order is paid already, or cancelled', async () => {
    const gateway = await testGateway();
    await boxOf(gateway);
    const warned = async () => {
      const { status, headers } = await gateway.sendQr();
      return [status, headers.get('x-paybox-warning')];
    };
    expect(await warned()).toEqual([200, null]);
    await gateway.mock('/orders/DH001/pay', 'POST');
    expect(await warned()).toEqual([200, 'qrCode: its order is paid, and the box asks for the money once more']);
  });

  it('SND-9 answers both calls with one refusal', async () => {
    const gateway = await testGateway();
    const box = await boxOf(gateway, (it, { pushId }) =>
      it.send({ type: 'rejected', pushId, code: 'DISPLAY_FAULT', reason: 'unplugged' }),
    );
    const both = await Promise.all([gateway.sendQr(), gateway.sendQr()]);
    expect(both.map((it) => it.body.message)).toEqual(['DISPLAY_FAULT', 'DISPLAY_FAULT']);
    expect(shows(box)).toBe(1);
    await gateway.sendQr();
    expect(shows(box)).toBe(2);
  });

  it('SND-9 MSG-10 is a new push to a box that was swapped, and does not show it', async () => {
    const gateway = await testGateway();
    await boxOf(gateway);
    expect((await gateway.sendQr()).body).toEqual(SUCCESS);
    const other = await boxOf(gateway);
    expect((await gateway.sendQr()).body).toEqual(SUCCESS);
    expect(shows(other)).toBe(1);
    const [order] = await gateway.mock('/orders');
    expect(order?.pushes).toMatchObject([{ status: 'ended' }, { status: 'shown' }]);
  });

  it('SND-9 is one push also after another one that the box refused', async () => {
    const gateway = await testGateway();
    const box = await boxOf(gateway, (it, show) =>
      show.orderId === 'DH001'
        ? it.shown(show)
        : it.send({ type: 'rejected', pushId: show.pushId, code: 'QR_TOO_DENSE', reason: '41 modules' }),
    );
    expect((await gateway.sendQr()).body).toEqual(SUCCESS);
    expect((await gateway.sendQr({ orderId: 'DH002' })).body.message).toBe('QR_TOO_DENSE');
    expect((await gateway.sendQr()).body).toEqual(SUCCESS);
    expect(shows(box)).toBe(2);
  });

  it('SND-9 is a new push with another QR, without an orderId, and once the first has ended or is paid', async () => {
    const gateway = await testGateway({ callback: { url: 'http://127.0.0.1:9/' } });
    const box = await boxOf(gateway);
    const sent = async (request: object) => {
      expect((await gateway.post(SEND_QR, request)).body).toEqual(SUCCESS);
      return shows(box);
    };
    expect(await sent(push())).toBe(1);
    expect(await sent(push({ amount: '60000', qrCode: qrFor({ amount: 60_000 }) }))).toBe(2);
    expect(await sent(push())).toBe(3);
    expect(await sent(push({ orderId: '' }))).toBe(4);
    expect(await sent(push({ orderId: '' }))).toBe(5);
    // A push without an orderId is one of the order that has its QR.
    expect(await sent(push())).toBe(5);
    const last = box.of('show').at(-1);
    const pushId = last?.pushId ?? '';
    await box.send({ type: 'ended', pushId, orderId: 'DH001', how: 'dismissed' }, pushId);
    await box.next('ack');
    expect(await sent(push())).toBe(6);
    expect((await gateway.testCallback()).status).toBe(200);
    expect(await sent(push())).toBe(7);
  });

  it.each([
    ['another QR', push({ amount: '60000', qrCode: qrFor({ amount: 60_000 }) }), push()],
    ['no orderId', push({ orderId: '' }), push({ orderId: '' })],
  ])('SND-9 are two pushes at once with %s', async (_name, one, two) => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const both = await Promise.all([one, two].map((request) => gateway.post(SEND_QR, request)));
    expect(both.map((it) => it.body)).toEqual([SUCCESS, SUCCESS]);
    expect(shows(box)).toBe(2);
  });

  it('SND-7 takes no order for its own that another partner has made of the same QR and orderId', async () => {
    const gateway = await testGateway();
    await boxOf(gateway);
    const authorization = `Bearer ${await gateway.token('other')}`;
    const { qrCode } = (await gateway.generate({}, { authorization })).body;
    expect((await gateway.sendQr({ qrCode })).body).toEqual(SUCCESS);
    expect(await gateway.mock('/orders')).toMatchObject([
      { partner: 'demo', status: 'shown' },
      { partner: 'other', status: 'created' },
    ]);
  });
});

describe('SUM', () => {
  it('SUM-1 takes the MD5 of password, bankAccount, amount and bankCode as other programs compute it', async () => {
    const gateway = await testGateway();
    await boxOf(gateway);
    // printf '%s' demo-secret012345678950000MB | md5sum
    const answer = await gateway.sendQr({ checkSum: '2e8427e49a7f6eec53c231a941c059ab' });
    expect([answer.status, answer.body]).toEqual([200, SUCCESS]);
  });

  it('SUM-1 takes the password as UTF-8', async () => {
    const password = 'mật-khẩu';
    const accounts = ['0123456789'];
    const gateway = await testGateway({ config: { partners: [{ username: 'demo', password, accounts }] } });
    const authorization = `Bearer ${await gateway.token('demo', password)}`;
    const answer = await gateway.sendQr(
      { checkSum: md5(`${password}012345678950000MB`) },
      {
        authorization,
      },
    );
    expect(answer.body.message).toBe('BOX_OFFLINE');
  });

  it('SUM-1 SND-2 refuses any other checkSum with E39, and tells neither it nor the password', async () => {
    const gateway = await testGateway();
    const wrong = [
      md5('demo-secret012345678950000MB').toUpperCase(),
      // Of another order of the fields, another password, another amount, and without a bank.
      md5('0123456789demo-secret50000MB'),
      md5('other-secret012345678950000MB'),
      md5('demo-secret012345678950001MB'),
      md5('demo-secret012345678950000'),
      ...[md5('demo-secret012345678950000MB').slice(0, 31), '', 'a'.repeat(20_000)],
    ];
    await expectRefused(
      gateway,
      wrong.map((checkSum) => [SEND_QR, push({ checkSum }), 'E39']),
    );
    const log = JSON.stringify(gateway.log);
    expect(log).not.toContain(push().checkSum);
    expect(log).not.toContain('demo-secret');
  });

  it('SUM-1 compares bankCode as sent, a BIN as a BIN', async () => {
    const gateway = await testGateway();
    const bin = { bankCode: '970422' };
    expect((await gateway.sendQr(bin)).body.message).toBe('BOX_OFFLINE');
    expect((await gateway.sendQr({ ...bin, checkSum: push().checkSum })).body.message).toBe('E39');
  });
});

/** One wrong thing for each refusal, in the order of clause SND-2. */
const WRONG: [string, Record<string, unknown>][] = [
  ['E46', { qrCode: undefined }],
  ['E02', { amount: '0' }],
  ['E39', { checkSum: '0'.repeat(32) }],
  ['E36', { bankAccount: 'NOSUCH' }],
  ['E77', { bankAccount: FOREIGN_ACCOUNT.bankAccount }],
  ['E24', { bankCode: 'NOBANK' }],
  ['E51', { bankCode: 'VCB' }],
  ['E35', { terminalCode: 'VVB999999', serialNumber: '' }],
  ['E36', { terminalCode: BOX3.terminalCode, serialNumber: '' }],
  ['QR_INVALID', { qrCode: 'x' }],
  ['QR_MISMATCH', { qrCode: qrFor({ amount: 1 }) }],
  ['BOX_OFFLINE', {}],
];

const MORE: [string, Record<string, unknown>][] = [
  ...['', '-1', '1.5', '050000', '5e4', '50,000', ' 50000', '10000000000000', '9'.repeat(400), '٥', '50000\0'].map(
    (amount): [string, Record<string, unknown>] => ['E02', { amount }],
  ),
  ['E36', { bankAccount: '' }],
  ['E36', { bankAccount: '0'.repeat(2000) }],
  ['E24', { bankCode: '' }],
  ['E51', { bankCode: '970436' }],
  ['E35', { serialNumber: BOX2.serialNumber }],
  ['E35', { terminalCode: '', serialNumber: 'VVB999999' }],
  ['E35', { terminalCode: BOX1.serialNumber, serialNumber: '' }],
  ['E35', { terminalCode: 'x'.repeat(2000), serialNumber: '' }],
  ['QR_INVALID', { qrCode: '' }],
  ['QR_INVALID', { qrCode: qrFor().replace(/.$/, (last) => (last === '0' ? '1' : '0')) }],
  ['QR_INVALID', { qrCode: `${qrFor()} ` }],
  ['QR_INVALID', { qrCode: 'x'.repeat(20_000) }],
  ['QR_MISMATCH', { qrCode: qrFor({ account: OTHER_ACCOUNT.bankAccount }) }],
  ['QR_MISMATCH', { qrCode: qrFor({ bin: '970436' }) }],
  ['QR_STATIC', { qrCode: qrFor({ amount: undefined }) }],
  ['QR_STATIC', { qrCode: qrFor({ amount: undefined, initiation: 'static' }) }],
  ['QR_MISMATCH', { qrCode: qrFor({ service: 'card' }) }],
  ['QR_MISMATCH', { terminalCode: BOX4.terminalCode, serialNumber: BOX4.serialNumber }],
  ['E46', { content: 'x'.repeat(100) }],
  ['E46', { orderId: 'x'.repeat(65) }],
];

describe('SND', () => {
  it('SND-1 ERR-3 LEN-1 refuses to the letter with E46 what lacks a field, or has an amount of another type', async () => {
    const gateway = await testGateway({ config: { strict: true } });
    const changes = [
      ...['bankAccount', 'bankCode', 'amount', 'qrCode', 'checkSum'].map((field) => ({ [field]: undefined })),
      { terminalCode: undefined, serialNumber: undefined },
      { terminalCode: '', serialNumber: '' },
      ...[50_000, null, true, ['50000'], {}].map((amount) => ({ amount })),
    ];
    await expectRefused(
      gateway,
      changes.map((change) => [SEND_QR, { ...push(), ...change }, 'E46']),
    );
  });

  it('SND-1 SND-3 takes a push without what is not required', async () => {
    const gateway = await testGateway();
    const box = await boxOf(gateway);
    const changes = [
      ...[{ terminalCode: '' }, { serialNumber: '' }, { terminalCode: undefined }, { serialNumber: undefined }],
      ...[{ content: undefined, orderId: undefined }, { content: '' }],
    ];
    for (const [at, change] of changes.entries()) {
      // Another orderId each time, except where there is none: a push that is on the screen is not said again.
      const own = 'orderId' in change ? {} : { orderId: `DH${at}` };
      expect([change, (await gateway.sendQr({ ...own, ...change })).body]).toEqual([change, SUCCESS]);
      expect(box.of('show')).toHaveLength(at + 1);
    }
  });

  it('LIM-3 SND-1 takes 99 characters of content in any script, and an orderId of 64', async () => {
    const gateway = await testGateway();
    const box = await boxOf(gateway);
    const long = { content: 'Thanh toán <b>"đơn" \u{1F4B5}</b>'.padEnd(99, 'ế'), orderId: 'x'.repeat(64) };
    expect((await gateway.sendQr({ ...long, qrCode: qrWithoutText() })).body).toEqual(SUCCESS);
    expect(await box.next('show')).toMatchObject(long);
    expect(await gateway.mock('/orders')).toMatchObject([long]);
  });

  it('SND-2 ERR-1 ERR-5 refuses a wrong value with its code', async () => {
    const gateway = await testGateway();
    await expectRefused(
      gateway,
      [...WRONG, ...MORE].map(([code, change]) => [SEND_QR, push(change), code]),
    );
  });

  it('SND-2 refuses in its order when several things are wrong', async () => {
    const gateway = await testGateway();
    await expectRefusedInOrder(WRONG, (change) => gateway.sendQr(change));
  });

  it('SND-2 SND-5 refuses a push to a box that is not connected although others of the account are', async () => {
    const gateway = await testGateway();
    const other = await connectFakeBox({ gateway, identity: BOX2, transport: 'http' });
    expect((await gateway.sendQr()).body.message).toBe('BOX_OFFLINE');
    expect(other.of('show')).toEqual([]);
  });

  it('SND-7 keeps a push as an order of its own unless a generate call made its QR', async () => {
    const gateway = await testGateway();
    await boxOf(gateway);
    const own = push({ orderId: 'OWN', content: '', qrCode: qrFor({ purpose: 'from the QR' }) });
    expect((await gateway.post(SEND_QR, own)).body).toEqual(SUCCESS);
    const { body: made } = await gateway.generate();
    expect((await gateway.sendQr({ qrCode: made.qrCode })).body).toEqual(SUCCESS);
    expect((await gateway.sendQr({ qrCode: made.qrCode, orderId: '' })).body).toEqual(SUCCESS);
    const orders = await gateway.mock('/orders');
    expect(orders.map((it) => [it.orderId, it.content, Array.isArray(it.pushes) && it.pushes.length])).toEqual([
      ['DH001', 'DH001', 2],
      ['OWN', 'from the QR', 1],
    ]);
    expect((await gateway.sendQr({ qrCode: made.qrCode, orderId: 'NEW' })).body).toEqual(SUCCESS);
    expect(await gateway.mock('/orders')).toMatchObject([{ orderId: 'NEW' }, { orderId: 'DH001' }, { orderId: 'OWN' }]);
  });

  it('SND-8 replaces the push on the screen by a newer one', async () => {
    const gateway = await testGateway();
    const box = await boxOf(gateway, async (it, show) => {
      const [first] = it.of('show');
      if (first !== undefined && first !== show) {
        const { pushId, orderId } = first;
        await it.send({ type: 'ended', pushId, orderId, how: 'replaced' }, pushId);
      }
      await it.shown(show);
    });
    expect((await gateway.sendQr()).body).toEqual(SUCCESS);
    expect((await gateway.sendQr({ orderId: 'DH002' })).body).toEqual(SUCCESS);
    await box.next('ack');
    const orders = await gateway.mock('/orders');
    expect(orders.map((it) => [it.orderId, it.status])).toEqual([
      ['DH002', 'shown'],
      ['DH001', 'replaced'],
    ]);
  });

  it('SND-8 gives the screen to the newer of two pushes that are both awaited', async () => {
    const gateway = await testGateway();
    const box = await boxOf(gateway, async (it, show) => {
      const [first] = it.of('show');
      if (first === undefined || first === show) return;
      await it.send({ type: 'rejected', pushId: first.pushId, code: 'REPLACED', reason: 'a newer push' });
      await it.shown(show);
    });
    const older = gateway.sendQr();
    await eventually('the older push to arrive', () => box.of('show').length === 1);
    expect((await gateway.sendQr({ orderId: 'DH002' })).body).toEqual(SUCCESS);
    expect((await older).body.message).toBe('REPLACED');
  });
});
