import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox, type FakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { bankTime } from '../support/providers.ts';
import {
  ACCOUNT,
  type Answer,
  BOX1,
  BOX2,
  kept,
  OTHER_ACCOUNT,
  partnerServer,
  processed,
  type TestGateway,
} from './harness.ts';
import { byKey, hookedGateway, SEPAY_KEY, sepayBody, signedBySepay, tellHook } from './hooks.ts';

const SECRET = 'whsec_0c1f5e8a3b7d49620c1f5e8a3b7d4962';
const HMAC = { kind: 'sepay', name: 'signed', auth: { kind: 'hmac', secret: SECRET } };
const MIN_MS = 60_000;
const success = { success: true };
const refusal = (message: string) => ({ success: false, message });
const warningOf = ({ headers }: Answer) => headers.get('x-paybox-warning');

/** A gateway with a partner, and box 1, on which the order DH001 stands unless told otherwise. */
async function shop({ config = {}, sell = true }: { config?: Record<string, unknown>; sell?: boolean } = {}) {
  const partner = await partnerServer(processed);
  const gateway = await hookedGateway({ callback: { url: partner.url }, config });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
  if (sell) expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
  const calls = (n: number) =>
    eventually(`callback ${n}`, () => partner.calls.length >= n && partner.calls.map((it) => JSON.parse(it.body)));
  return { partner, gateway, box, calls };
}

const idsOf = (box: FakeBox) => box.of('payment').map((it) => it.transactionId);
const orderNow = async (gateway: TestGateway) => (await gateway.mock('/orders'))[0];

describe('a webhook of a source', () => {
  it('SRC-1 SRC-2 CRE-1 CRE-6 a webhook pays the order on the box, is announced once, and the partner is told', async () => {
    const { gateway, box, calls } = await shop();
    const { pushId } = await box.next('show');
    const answer = await tellHook(gateway);
    expect([answer.status, answer.body, warningOf(answer)]).toEqual([200, success, null]);
    const payment = await box.next('payment');
    const { content } = sepayBody();
    expect(payment).toMatchObject({ pushId, orderId: 'DH001', amount: 50_000, content, late: false, due: null });
    const [told] = await calls(1);
    expect(told).toMatchObject({ referencenumber: 'FT26001000001', orderId: 'DH001', amount: 50_000, content });
    expect(told).toMatchObject({ transactionid: payment.transactionId, bankaccount: ACCOUNT.bankAccount });
    expect(told).not.toHaveProperty('orderAmount');
    expect(await orderNow(gateway)).toMatchObject({ status: 'paid', paidAmount: 50_000 });
    expect((await gateway.mock('/payments'))[0]).toMatchObject({ source: 'sepay', late: false, due: null });
  });

  it('CRE-2 CRE-3 THR-33 a transfer is one payment, however often and by whom it is reported, also at once', async () => {
    const { gateway, box, calls } = await shop({
      config: { sources: [{ kind: 'sepay', name: 'sepay', auth: { kind: 'apikey', key: SEPAY_KEY } }, HMAC] },
    });
    const body = JSON.stringify(sepayBody());
    const spelled = { id: 5, referenceCode: 'ft26-001.000001', content: 'as another source has it' };
    const other = JSON.stringify(sepayBody(spelled));
    const bySecret = () => tellHook(gateway, other, { name: 'signed', headers: signedBySepay(SECRET, other) });
    const answers = await Promise.all([1, 2, 3].flatMap(() => [tellHook(gateway, body), bySecret()]));
    expect(answers.map((it) => it.status)).toEqual(Array(6).fill(200));
    expect(answers.filter((it) => warningOf(it) === 'duplicate')).toHaveLength(5);
    await box.next('payment');
    expect((await tellHook(gateway, body)).body).toEqual(success);
    await calls(1);
    expect([await gateway.mock('/payments'), await gateway.mock('/credits')].map((it) => it.length)).toEqual([1, 1]);
    expect(new Set(idsOf(box)).size).toBe(1);
    expect(await gateway.mock('/callbacks')).toHaveLength(1);
  });

  it('CRE-2 CRE-3 a transfer is one payment for each id of a source, whatever its reference says', async () => {
    const { gateway, box } = await shop({ sell: false });
    const told = [
      { id: 1 },
      { id: 2 },
      { id: 3, transactionDate: bankTime(Date.now() - 25 * 60 * MIN_MS) },
      { id: 4, content: 'another payer' },
      ...[5, 6].map((id) => ({ id, referenceCode: 'N/A' })),
      { id: 7, referenceCode: 'FT1.23' },
      { id: 8, referenceCode: 'FT12.3' },
    ];
    for (const change of [...told, ...told]) expect((await tellHook(gateway, sepayBody(change))).status).toBe(200);
    await eventually('all notices', () => new Set(idsOf(box)).size === told.length);
    const payments = await gateway.mock('/payments');
    expect(payments.map(({ amount }) => amount)).toEqual(told.map(() => 50_000));
  });

  it('SRC-26 CRE-5 a webhook without a time of the bank counts as of now, and its line in the log says so', async () => {
    const { gateway, box } = await shop({ sell: false });
    expect((await tellHook(gateway, sepayBody({ transactionDate: '2026-02-30 10:00:00' }))).status).toBe(200);
    const { late, paidAtMs } = await box.next('payment');
    expect([late, Math.abs(Date.now() - paidAtMs) < 10 * MIN_MS]).toEqual([false, true]);
    expect(gateway.logged('credit-received')).toMatchObject([{ id: '92704', time: 'unreadable' }]);
  });

  it('CRE-5 MSG-13 a late webhook pays the order, takes its QR away, and is reported as late', async () => {
    const { gateway, box, calls } = await shop({ sell: false, config: { contentPrefix: 'code' } });
    const made = (await gateway.generate()).body;
    await gateway.sendQr({ qrCode: made.qrCode, content: '' });
    const { pushId } = await box.next('show');
    await tellHook(gateway, sepayBody({ content: made.content, transactionDate: bankTime(Date.now() - 6 * MIN_MS) }));
    expect(await box.next('payment')).toMatchObject({ pushId: null, orderId: 'DH001', late: true });
    expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'paid' });
    await calls(1);
    expect(await orderNow(gateway)).toMatchObject({ status: 'paid' });
    await tellHook(gateway, sepayBody({ id: 2, referenceCode: 'FT2', transactionDate: bankTime(Date.now() - MIN_MS) }));
    expect(await box.next('payment', 2)).toMatchObject({ late: false });
    await tellHook(gateway, sepayBody({ id: 3, referenceCode: 'FT3', transactionDate: bankTime(Date.now() + MIN_MS) }));
    const { late, paidAtMs, sentAtMs } = await box.next('payment', 3);
    expect([late, paidAtMs <= sentAtMs]).toEqual([false, true]);
  });

  it.each([
    { told: 20_000, is: 'shown', due: { amount: 50_000, paid: 20_000 }, over: false },
    { told: 20_000, config: { underpaid: 'end' }, is: 'underpaid', due: { amount: 50_000, paid: 20_000 }, over: true },
    { told: 70_000, is: 'paid', due: { amount: 50_000, paid: 70_000 }, over: true },
    { told: 70_000, config: { overpaid: 'open' }, is: 'shown', due: { amount: 50_000, paid: 70_000 }, over: false },
  ])(
    'MAT-5 MSG-13 SYN-11 THR-34 of $told for 50000, with $config, leaves the order $is',
    async ({ told, config, is, due, over }) => {
      const { gateway, box, calls } = await shop({ sell: false, config: { contentPrefix: 'code', ...config } });
      const made = (await gateway.generate()).body;
      await gateway.sendQr({ qrCode: made.qrCode, content: '' });
      const { pushId } = await box.next('show');
      await tellHook(gateway, sepayBody({ transferAmount: told, content: `x ${made.content}` }));
      expect(await box.next('payment')).toMatchObject({
        orderId: 'DH001',
        amount: told,
        due,
        pushId: over ? pushId : null,
      });
      const [sync] = await calls(1);
      expect(sync).toMatchObject({ amount: told, orderId: 'DH001', orderAmount: 50_000, orderPaid: told });
      expect(await orderNow(gateway)).toMatchObject({ status: is, paidAmount: told });
      const [credit] = await gateway.mock('/credits');
      expect(credit).toMatchObject({ amount: told, due, orderId: 'DH001' });
      if (is !== 'shown' || told > 50_000) return;
      await tellHook(
        gateway,
        sepayBody({ id: 2, referenceCode: 'FT2', transferAmount: 30_000, content: made.content }),
      );
      expect(await box.next('payment', 2)).toMatchObject({ due: null, pushId, amount: 30_000 });
      expect(await orderNow(gateway)).toMatchObject({ status: 'paid', paidAmount: 50_000 });
    },
  );

  it('MAT-3 a transfer booked before the order was made does not pay it, although the content matches', async () => {
    const { gateway, box, calls } = await shop();
    await box.next('show');
    await tellHook(gateway, sepayBody({ transactionDate: bankTime(Date.now() - 120 * MIN_MS) }));
    expect(await box.next('payment')).toMatchObject({ pushId: null, orderId: '', late: true });
    expect((await calls(1))[0]).toMatchObject({ orderId: '', amount: 50_000 });
    expect(await orderNow(gateway)).toMatchObject({ status: 'shown', paidAmount: 0 });
    await tellHook(gateway, sepayBody({ id: 2, referenceCode: 'FT2', transactionDate: bankTime(Date.now() - MIN_MS) }));
    expect(await box.next('payment', 2)).toMatchObject({ orderId: 'DH001', late: false });
    expect(await orderNow(gateway)).toMatchObject({ status: 'paid' });
  });

  it('MAT-4 CRE-4 a transfer that fits no order is a payment to the account, announced at its boxes', async () => {
    const { gateway, box, calls } = await shop();
    const other = await connectFakeBox({ gateway, identity: BOX2, transport: 'mqtt' });
    await tellHook(gateway, sepayBody({ content: 'NGUYEN VAN B chuyen tien' }));
    const payment = { orderId: '', pushId: null, amount: 50_000 };
    expect(await box.next('payment')).toMatchObject(payment);
    expect(await other.next('payment')).toMatchObject(payment);
    expect((await calls(1))[0]).toMatchObject({ orderId: '', amount: 50_000 });
    expect(await orderNow(gateway)).toMatchObject({ status: 'shown', paidAmount: 0 });
  });

  it('CRE-4 a transfer goes to the virtual account that is in the system, and to nobody if no account is', async () => {
    const { gateway, box } = await shop({ sell: false });
    const { bankAccount } = ACCOUNT;
    await tellHook(gateway, sepayBody({ accountNumber: '999', subAccount: bankAccount }));
    expect(await box.next('payment')).toMatchObject({ bankAccount });
    const answer = await tellHook(gateway, sepayBody({ id: 2, referenceCode: 'FT2', accountNumber: '999' }));
    expect([answer.status, answer.body, warningOf(answer)]).toEqual([200, success, 'account-unknown']);
    const [nobody] = await gateway.mock('/credits');
    expect(nobody).toMatchObject({ bankAccount: '999', transactionId: null, source: 'sepay', sourceId: '2' });
    expect(await gateway.mock('/payments')).toHaveLength(1);
    expect(gateway.logged('credit-not-paid-out')).toMatchObject([{ reason: 'account-unknown', bankAccount: '999' }]);
  });

  it('CRE-4 a transfer is announced at the boxes of an account that has no partner', async () => {
    const partners = [{ username: 'demo', password: 'demo-secret', accounts: [OTHER_ACCOUNT.bankAccount] }];
    const gateway = await hookedGateway({ config: { partners } });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    await tellHook(gateway);
    expect(await box.next('payment')).toMatchObject({ amount: 50_000 });
    expect(await gateway.mock('/callbacks')).toEqual([]);
  });

  it('CRE-6 a transfer with a long text is sent to the box cut, and to the partner whole', async () => {
    const { box, gateway, calls } = await shop({ sell: false });
    const content = 'Chuyển tiền '.repeat(20).trim();
    await tellHook(gateway, sepayBody({ content }));
    expect((await box.next('payment')).content).toBe(content.slice(0, 99));
    expect((await calls(1))[0]).toMatchObject({ content });
  });
});

describe('contentPrefix: code', () => {
  it('GEN-10 MAT-1 MAT-2 contentPrefix: code puts a code before a content, which pays its order in whatever banks make of it', async () => {
    const { gateway, box } = await shop({ sell: false, config: { contentPrefix: 'code' } });
    const made = [];
    for (const orderId of ['DH001', 'DH002']) made.push((await gateway.generate({ orderId, content: 'CAFE' })).body);
    const [first, second] = made.map((it) => String(it.content));
    for (const it of [first, second]) expect(it).toMatch(/^PB[2-9A-HJ-NP-Z]{7} CAFE$/);
    const text = `mbvcb.32789.${second?.slice(0, 4).toLowerCase()}\n${second?.slice(4).toLowerCase()}.ct tu 9990001`;
    await tellHook(gateway, sepayBody({ content: text }));
    expect(await box.next('payment')).toMatchObject({ orderId: 'DH002', due: null });
    expect((await gateway.generate({ qrType: 1, terminalCode: BOX1.terminalCode })).body.content).toBe('DH001');
    const tested = await gateway.testCallback({ content: `CT ${first}` });
    expect([tested.body.status, (await box.next('payment', 2)).orderId]).toEqual(['SUCCESS', 'DH001']);
  });
});

describe('a hook refuses', () => {
  const gatewayOf = (clock: Clock = systemClock) =>
    hookedGateway({
      clock,
      config: {
        sources: [
          { ...HMAC, name: 'signed' },
          { ...HMAC, name: 'sepay', auth: { kind: 'apikey', key: SEPAY_KEY } },
        ],
      },
    });

  it('SRC-3 SRC-6 SRC-7 THR-33 a hook refuses wrong proofs and bodies: each answered as documented, logged, and nothing changed', async () => {
    const gateway = await gatewayOf();
    const before = await kept(gateway);
    const right = JSON.stringify(sepayBody());
    const stale = signedBySepay(SECRET, right, Date.now() - 6 * MIN_MS);
    const cases: [what: string, status: number, code: string, body: unknown, how?: Parameters<typeof tellHook>[2]][] = [
      ['unknown', 404, 'E46', right, { name: 'nobody' }],
      ['below', 400, 'E46', right, { name: 'sepay/x' }],
      ['no proof', 401, 'E74', right, { headers: {} }],
      ['another scheme', 401, 'E74', right, { headers: { authorization: `Bearer ${SEPAY_KEY}` } }],
      ['another key', 401, 'E74', right, { headers: { authorization: 'Apikey other' } }],
      ['another secret', 401, 'E74', right, { name: 'signed', headers: signedBySepay('other', right) }],
      ['a changed body', 401, 'E74', `${right} `, { name: 'signed', headers: signedBySepay(SECRET, right) }],
      ['a stale proof', 401, 'E74', right, { name: 'signed', headers: stale }],
      [
        'another stamp',
        401,
        'E74',
        right,
        { name: 'signed', headers: { ...signedBySepay(SECRET, right), 'x-sepay-timestamp': '1' } },
      ],
      ['no body', 400, 'E46', ''],
      ['no JSON', 400, 'E46', 'id=1&amount=50000'],
      ['a list', 400, 'E46', [sepayBody()]],
      ['null', 400, 'E46', 'null'],
      ['a text as the amount', 400, 'E46', sepayBody({ transferAmount: '50000' })],
      ['a fraction', 400, 'E46', sepayBody({ transferAmount: 0.5 })],
      ['a negative amount', 400, 'E46', sepayBody({ transferAmount: -5 })],
      ['no id', 400, 'E46', sepayBody({ id: undefined })],
      ['another direction', 400, 'E46', sepayBody({ transferType: 'both' })],
      ['too much', 413, 'E46', sepayBody({ description: 'x'.repeat(70_000) })],
    ];
    for (const [what, status, code, body, how] of cases) {
      const { length } = gateway.logged('request-refused');
      const answer = await tellHook(gateway, body, how);
      const logged = gateway.logged('request-refused').slice(length);
      expect([what, answer.status, answer.body, logged.length]).toEqual([what, status, refusal(code), 1]);
      expect(answer.headers.get('x-paybox-reason')).toBe(logged[0]?.reason);
      expect(JSON.stringify(logged)).not.toMatch(new RegExp(`${SEPAY_KEY}|${SECRET}`));
    }
    expect(await kept(gateway)).toEqual(before);
    expect(await gateway.mock('/credits')).toEqual([]);
    expect((await tellHook(gateway, right, { name: 'signed', headers: signedBySepay(SECRET, right) })).status).toBe(
      200,
    );
    expect((await fetch(`${gateway.origin}/hooks/sepay`)).status).toBe(405);
  });

  it('SRC-2 SRC-7 a hook answers debits and test calls as success, and announces them to nobody', async () => {
    const gateway = await gatewayOf();
    for (const [change, why] of [
      [{ transferType: 'out' }, '92704: a debit'],
      [{ id: 0 }, '0: a test call'],
      [{ transferAmount: 0 }, '92704: no money'],
    ] as const) {
      const answer = await tellHook(gateway, sepayBody(change));
      expect([answer.status, answer.body, warningOf(answer)]).toEqual([200, success, why]);
    }
    expect(await gateway.mock('/credits')).toEqual([]);
    expect(gateway.logged('credit-ignored')).toHaveLength(3);
  });

  it('SRC-5 SRC-8 a hook refuses a flood of wrong proofs, and accepts every right one meanwhile', async () => {
    const clock = new VirtualClock(Date.now());
    const gateway = await gatewayOf(clock);
    const wrong = () => tellHook(gateway, sepayBody(), { headers: { authorization: 'Apikey wrong' } });
    const answers = await Promise.all(Array.from({ length: 60 }, wrong));
    expect(answers.map((it) => it.status).toSorted()).toEqual([...Array(30).fill(401), ...Array(30).fill(429)]);
    const late = answers.find((it) => it.status === 429);
    expect([late?.headers.get('retry-after'), late?.body]).toEqual(['2', refusal('E74')]);
    const body = JSON.stringify(sepayBody({ transactionDate: bankTime(clock.wallMs()) }));
    expect((await tellHook(gateway, body)).status).toBe(200);
    const headers = signedBySepay(SECRET, body, clock.wallMs());
    expect((await tellHook(gateway, body, { name: 'signed', headers })).status).toBe(200);
    expect((await gateway.mock('/calls')).filter((it) => it.status === 429)).toEqual([]);
    await clock.advance(2_000);
    expect([(await wrong()).status, (await wrong()).status]).toEqual([401, 429]);
  });
});

it('SRC-8 CRE-8 calls of hooks are listed with their reasons, without secrets, and credits with a limit; metrics count them', async () => {
  const gateway = await hookedGateway();
  await tellHook(gateway, sepayBody(), { headers: { authorization: 'Apikey wrong-key-of-somebody' } });
  for (const id of [1, 2, 3])
    await tellHook(gateway, sepayBody({ id, referenceCode: `FT${id}`, accountNumber: '999' }));
  const calls = await gateway.mock('/calls');
  expect(calls.map((it) => [it.path, it.by, it.status, it.warnings])).toEqual([
    ...Array(3).fill(['/hooks/sepay', 'sepay', 200, ['account-unknown']]),
    ['/hooks/sepay', 'sepay', 401, []],
  ]);
  const wire = await (await fetch(`${gateway.origin}/_mock/wire`)).text();
  expect(wire).toContain('/hooks/sepay');
  expect(wire).not.toMatch(new RegExp(`${SEPAY_KEY}|wrong-key`));
  const [newest, ...older] = await gateway.mock('/credits');
  expect(newest).toMatchObject({
    sourceId: '3',
    reference: 'FT3',
    amount: 50_000,
    late: false,
    due: null,
    orderId: '',
  });
  expect(await gateway.mock(`/credits?before=${newest?.id}`)).toEqual(older);
  expect(await gateway.mock('/credits?limit=1')).toEqual([newest]);
  const metrics = await (await fetch(`${gateway.origin}/metrics`)).text();
  expect(metrics).toContain('paybox_gateway_credits_total{source="sepay",result="account-unknown"} 3');
  expect(metrics).toContain('paybox_gateway_credits_total{source="sepay",result="refused"} 1');
});

it('SRC-1 a hook accepts any content type, and repeated slashes', async () => {
  const gateway = await hookedGateway();
  const body = JSON.stringify(sepayBody());
  for (const [path, type] of [
    ['sepay', 'text/plain'],
    ['sepay', 'json'],
    ['sepay', 'application/json, application/json'],
    ['sepay/', 'application/json; charset=utf-8'],
    ['sepay//', ''],
  ] as const) {
    const headers = { ...byKey, 'content-type': type };
    expect([path, (await tellHook(gateway, Buffer.from(body), { name: path, headers })).status]).toEqual([path, 200]);
  }
  expect(await gateway.mock('/credits')).toHaveLength(1);
});

it('FLT-7 no fault changes, doubles or delays money that a source tells, whatever its text orders', async () => {
  const gateway = await hookedGateway();
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  for (const fault of ['wrong-amount', 'wrong-content', 'wrong-account', 'paid-twice', 'paid-late']) {
    const answer = await fetch(`${gateway.origin}/_mock/faults`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ fault }),
    });
    expect([fault, answer.status]).toEqual([fault, 201]);
  }
  const content = 'FAULT PAID TWICE';
  expect((await tellHook(gateway, sepayBody({ content }))).status).toBe(200);
  expect(await box.next('payment')).toMatchObject({ amount: 50_000, content, bankAccount: ACCOUNT.bankAccount });
  expect(await gateway.mock('/payments')).toMatchObject([{ amount: 50_000, content }]);
  const { standing } = await gateway.mock<{ standing: { happened: number }[] }>('/faults');
  expect(standing.map((it) => it.happened)).toEqual([0, 0, 0, 0, 0]);
});
