import { describe, expect, it } from 'vitest';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import { ACCOUNT, expectRefused, expectRefusedInOrder, GENERATE, order, testGateway } from './harness.ts';

const staticQr = (change = {}) => order({ qrType: 1, terminalCode: 'VVB000001', amount: undefined, ...change });
const semi = (change = {}) => order({ qrType: 3, terminalCode: 'VVB000001', serviceCode: 'S1', ...change });

const decoded = (payload: unknown) => {
  const qr = decodeVietQr(String(payload));
  if (!qr.ok) throw new Error(qr.reason);
  return qr.value;
};

describe('GEN', () => {
  it('GEN-4 GEN-5 GEN-6 answers with every field and a QR that carries what was asked', async () => {
    const gateway = await testGateway();
    const { status, body } = await gateway.generate({ additionalData: [{ a: 1 }] });
    expect(status).toBe(200);
    expect(body).toEqual({
      ...ACCOUNT,
      bankName: expect.stringContaining('Quân đội'),
      amount: '50000',
      content: 'DH001',
      qrCode: expect.any(String),
      imgId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      existing: 1,
      transactionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      transactionRefId: expect.stringMatching(/^[\w-]{22}$/),
      qrLink: expect.stringContaining(gateway.origin),
      terminalCode: '',
      subTerminalCode: '',
      serviceCode: '',
      orderId: 'DH001',
      additionalData: [{ a: 1 }],
    });
    expect(decoded(body.qrCode)).toEqual({
      bin: '970422',
      account: '0123456789',
      service: 'account',
      initiation: 'dynamic',
      amount: 50_000,
      purpose: 'DH001',
    });
    const picture = await fetch(String(body.qrLink));
    expect(picture.headers.get('content-type')).toContain('image/svg+xml');
    expect(await picture.text()).toContain('<svg');
  });

  it('GEN-1 takes a missing qrType for 0', async () => {
    const gateway = await testGateway();
    const { body } = await gateway.generate({ qrType: undefined });
    expect(decoded(body.qrCode).initiation).toBe('dynamic');
  });

  it('GEN-5 GEN-7 makes a static QR without an amount, which is no order', async () => {
    const gateway = await testGateway();
    const { body } = await gateway.post(GENERATE, staticQr({ amount: 5 }));
    expect(decoded(body.qrCode)).toMatchObject({ initiation: 'static', amount: undefined });
    expect(body).toMatchObject({ amount: '', terminalCode: 'VVB000001' });
    expect((await fetch(String(body.qrLink))).status).toBe(200);
    expect(await gateway.mock('/orders')).toEqual([]);
  });

  it('GEN-7 keeps types 0 and 3 as orders, newest first', async () => {
    const gateway = await testGateway();
    await gateway.generate();
    await gateway.post(GENERATE, semi({ orderId: 'DH002' }));
    const orders = await gateway.mock('/orders');
    expect(orders.map((it) => [it.orderId, it.status, it.amount])).toEqual([
      ['DH002', 'created', 50_000],
      ['DH001', 'created', 50_000],
    ]);
  });

  it('GEN-3 GEN-4 takes a BIN for a bankCode, and an account that is not in the system', async () => {
    const gateway = await testGateway();
    const { body } = await gateway.generate({ bankCode: '970436', bankAccount: 'NEW1' });
    expect(body).toMatchObject({ existing: 0, bankCode: '970436' });
    expect(decoded(body.qrCode).bin).toBe('970436');
  });

  it('GEN-1 ERR-3 LEN-1 refuses to the letter with E46 what lacks a field, or has one of another type', async () => {
    const gateway = await testGateway({ config: { strict: true } });
    const requests = [
      ...['bankCode', 'bankAccount', 'userBankName', 'content', 'amount', 'orderId', 'transType'].map((field) =>
        order({ [field]: undefined }),
      ),
      staticQr({ terminalCode: undefined }),
      ...['amount', 'terminalCode', 'serviceCode'].map((field) => semi({ [field]: undefined })),
      order({ orderId: '' }),
      order({ qrType: 2 }),
      order({ qrType: '0' }),
      order({ amount: '50000' }),
      order({ content: null }),
      order({ orderId: 'x'.repeat(65) }),
    ];
    await expectRefused(
      gateway,
      requests.map((request) => [GENERATE, request, 'E46']),
    );
  });

  const WRONG: [string, Record<string, unknown>][] = [
    ['E02', { amount: 0 }],
    ['E03', { transType: 'X' }],
    ['E10', { bankAccount: '01-23' }],
    ['E24', { bankCode: 'NOBANK' }],
    ['E26', { content: 'é'.repeat(26) }],
    ['E34', { content: 'Cà phê' }],
    ['E35', { terminalCode: 'VVB999999' }],
  ];
  const MORE: [string, Record<string, unknown>][] = [
    ...[1.5, -1, 10_000_000_000_000, 1e300].map((amount): [string, Record<string, unknown>] => ['E02', { amount }]),
    ['E03', { transType: 'c' }],
    ['E10', { bankAccount: '' }],
    ['E10', { bankAccount: '1'.repeat(20) }],
    ['E10', { bankAccount: '1'.repeat(2000) }],
    ['E24', { bankCode: '' }],
    ['E24', { bankCode: '97042' }],
    ['E24', { bankCode: '9704222' }],
    ['E26', { content: 'x'.repeat(2000) }],
    ['E34', { content: 'a\nb' }],
    ['E34', { content: 'a\0b' }],
    ['E34', { content: '\ud800' }],
    ['E34', { content: 'a&b' }],
    ['E34', { content: '<script>' }],
    ['E35', { terminalCode: 'x'.repeat(2000) }],
  ];

  it('GEN-2 ERR-1 ERR-3 LIM-3 refuses a wrong value with the code of its field', async () => {
    const gateway = await testGateway();
    await expectRefused(
      gateway,
      [...WRONG, ...MORE].map(([code, change]) => [GENERATE, order(change), code]),
    );
  });

  it('GEN-2 refuses in its order when several things are wrong', async () => {
    const gateway = await testGateway();
    await expectRefusedInOrder(WRONG, (change) => gateway.generate(change));
  });

  it('LIM-1 LIM-2 LIM-3 GEN-5 takes the longest of everything', async () => {
    const gateway = await testGateway();
    const longest = { amount: 9_999_999_999_999, bankAccount: 'Z'.repeat(19), content: 'aZ0 .,-_/:#'.padEnd(25, 'x') };
    const { body } = await gateway.generate({ ...longest, orderId: 'x'.repeat(64) });
    const { amount, bankAccount, content } = longest;
    expect(decoded(body.qrCode)).toMatchObject({ amount, account: bankAccount, purpose: content });
    expect(body.orderId).toHaveLength(64);
  });
});
