import { describe, expect, it } from 'vitest';
import type { Account } from '../../src/gateway/common/directory.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { type Asking, createAskSource } from '../../src/gateway/money/asking.ts';
import { Sources } from '../../src/gateway/money/open-sources.ts';
import { QrMakers } from '../../src/gateway/money/qr-makers.ts';
import { SOURCE_KINDS } from '../../src/gateway/money/sources/registry.ts';
import type { AskSource } from '../../src/gateway/money/sources/source.ts';
import type { RegistryStore } from '../../src/gateway/store/repositories/registry.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { findBank } from '../../src/protocol/banks.ts';
import { decodeVietQr, encodeVietQr } from '../../src/protocol/vietqr.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { PayosDouble, payosDouble, VIRTUAL, virtualOf } from '../support/payos-double.ts';
import { ACCOUNT, BOX1, failed, kept, OTHER_ACCOUNT, push, type TestGateway, testGateway } from './harness.ts';
import { CANCEL, LOOK, MAKE, shop, shopWith } from './payos-qr-fixture.ts';
import { NO_VAULT, only, storedOf, worldOf } from './stage-records.ts';

describe('payOS makes the QR', () => {
  it('PQR-1 PQR-3 PQR-4 of an order: it is on the box, its webhook pays it, and the partner is told', async () => {
    const { payos, gateway, box, calls, show, orderStatus } = await shop();
    const made = await show();
    const link = payos.newest();
    expect(made).toMatchObject({ qrCode: link.qrCode, content: link.description, amount: '50000', orderId: 'DH001' });
    expect(link.description).toMatch(/^CSPB[2-9A-HJ-NP-Z]{7}$/);
    const minutesLeft = (link.expiredAt * 1000 - Date.now()) / 60_000;
    expect([minutesLeft > 64, minutesLeft <= 65]).toEqual([true, true]);
    expect((await box.next('welcome')).link).toEqual({
      ...ACCOUNT,
      virtualAccounts: [{ bin: '970422', begins: VIRTUAL.begins }],
    });
    expect(await box.next('show')).toMatchObject({ ...ACCOUNT, amount: 50_000, qrCode: link.qrCode });
    // The text says nothing that another order would not say.
    const money = payos.pay(link, { text: 'chuyen tien' });
    expect(await payos.tell(gateway, money)).toEqual({ waitsMs: [], status: 200 });
    expect(await box.next('payment')).toMatchObject({ amount: 50_000, orderId: 'DH001', late: false, due: null });
    expect(await orderStatus()).toBe('paid');
    await eventually('the callback', () => calls.length === 1);
    expect(JSON.parse(calls[0]?.body ?? '')).toMatchObject({
      amount: 50_000,
      orderId: 'DH001',
      content: 'chuyen tien',
    });
    expect(payos.asked).toEqual([MAKE]);
    await payos.tell(gateway, money);
    expect(await gateway.mock('/payments')).toHaveLength(1);
  });

  it('PQR-1 SEL-1 of a sale', async () => {
    const { payos, gateway, box, sell } = await shop();
    const { status, body: sale } = await sell(70_000);
    const link = payos.newest();
    expect([status, sale.qrCode, sale.content, link.amount]).toEqual([201, link.qrCode, link.description, 70_000]);
    await payos.tell(gateway, payos.pay(link));
    expect(await box.next('payment')).toMatchObject({ amount: 70_000, orderId: sale.code });
  });

  it('PQR-1 not of a static QR, a debit, a fault that is ordered, another account and a stranger', async () => {
    const { payos, gateway } = await shop();
    const { bankAccount, bankCode } = OTHER_ACCOUNT;
    const rows: Record<string, unknown>[] = [
      { qrType: 1, terminalCode: BOX1.terminalCode },
      { transType: 'D' },
      { content: 'FAULT PUSH TWICE' },
      { bankAccount, bankCode },
      { bankCode: 'VCB' },
    ];
    for (const change of rows) expect([change, (await gateway.generate(change)).status]).toEqual([change, 200]);
    const token = await gateway.token('other');
    expect((await gateway.generate({}, { authorization: `Bearer ${token}` })).status).toBe(200);
    expect(payos.asked).toEqual([]);
  });

  it('PQR-4 MAT-5 of an order that is paid in parts: each is for it, until nothing is missing', async () => {
    const { payos, gateway, box, show, orderStatus } = await shop();
    await show();
    const link = payos.newest();
    await payos.tell(gateway, payos.pay(link, { amount: 20_000, text: 'x' }));
    expect(await box.next('payment')).toMatchObject({ pushId: null, due: { amount: 50_000, paid: 20_000 } });
    expect(await orderStatus()).toBe('shown');
    await payos.tell(gateway, payos.pay(link, { amount: 30_000, text: 'x' }));
    expect(await box.next('payment', 2)).toMatchObject({ amount: 30_000, due: null });
    expect(await orderStatus()).toBe('paid');
  });

  it('PQR-4 CRE-4 money for an order of payOS that is not stored is a payment to the account', async () => {
    const { payos, gateway, box, show } = await shop();
    await show();
    const money = payos.pay(payos.newest(), { text: 'x' });
    // As after a gateway that was killed between the answer of payOS and its own store.
    await payos.tell(gateway, { ...money, orderCode: 4711 });
    expect(await box.next('payment')).toMatchObject({ amount: 50_000, orderId: '', pushId: null });
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'shown' }]);
  });

  it('PQR-4 money for an order goes to its account, whatever account payOS names', async () => {
    const { payos, gateway, box, show } = await shop();
    await show();
    await payos.tell(gateway, payos.pay(payos.newest(), { bankAccount: '999', virtualAccount: '' }));
    expect(await box.next('payment')).toMatchObject({ orderId: 'DH001', bankAccount: ACCOUNT.bankAccount });
  });
});

describe('no QR', () => {
  const qrTo = (change: object) => (data: Record<string, unknown>) => {
    const qr = decodeVietQr(String(data.qrCode));
    if (!qr.ok) throw new Error(qr.reason);
    return { ...data, qrCode: encodeVietQr({ ...qr.value, ...change }) };
  };
  const rows: [what: string, spoil: (payos: PayosDouble) => unknown, reason: RegExp][] = [
    ['payOS is out of order', (it) => it.first.push({ status: 500 }), /answered with HTTP 500/],
    [
      'payOS refuses',
      (it) => it.first.push({ status: 200, body: { code: '20', desc: 'no' } }),
      /made no QR: code 20, no/,
    ],
    ['it says nothing', (it) => it.first.push({ status: 200, body: { code: '00' } }), /made no QR/],
    ['another key signed', (it) => Object.assign(it, { key: 'another' }), /does not fit checksumKey/],
    [
      'another order',
      (it) => Object.assign(it, { change: (data: object) => ({ ...data, orderCode: 1 }) }),
      /orderCode/,
    ],
    [
      'another amount',
      (it) => Object.assign(it, { change: (data: object) => ({ ...data, amount: 50_001 }) }),
      /amount/,
    ],
    ['another amount in the QR', (it) => Object.assign(it, { change: qrTo({ amount: 5_000 }) }), /amount/],
    ['no amount in the QR', (it) => Object.assign(it, { change: qrTo({ amount: undefined }) }), /amount/],
    ['another account in the QR', (it) => Object.assign(it, { change: qrTo({ account: 'VQRQ9' }) }), /account/],
    ['another bank in the QR', (it) => Object.assign(it, { change: qrTo({ bin: '970436' }) }), /account/],
    ['a QR to a card', (it) => Object.assign(it, { change: qrTo({ service: 'card' }) }), /expected the account itself/],
    [
      'other money',
      (it) => Object.assign(it, { change: (data: object) => ({ ...data, currency: 'USD' }) }),
      /currency/,
    ],
    ['no QR', (it) => Object.assign(it, { change: (data: object) => ({ ...data, qrCode: 'x' }) }), /no VietQR/],
  ];

  it('PQR-2 is made and nothing is stored: each reason is answered, logged once, and the next call works', async () => {
    const { payos, gateway, sell } = await shop();
    const before = await kept(gateway);
    const { change, key } = payos;
    for (const [what, spoil, reason] of rows) {
      spoil(payos);
      const { length } = gateway.log;
      const answer = await gateway.generate();
      expect([what, answer.status, answer.body]).toEqual([what, 400, failed('QR_NOT_MADE')]);
      expect([what, answer.headers.get('x-paybox-reason')]).toEqual([what, expect.stringMatching(reason)]);
      const lines = gateway.log.slice(length).filter((it) => it.level !== 'debug');
      expect([what, lines]).toEqual([
        what,
        [expect.objectContaining({ event: 'request-refused', code: 'QR_NOT_MADE' })],
      ]);
      Object.assign(payos, { change, key });
    }
    payos.first.push({ status: 503 });
    expect((await sell()).body).toMatchObject({ message: 'QR_NOT_MADE' });
    expect(await kept(gateway)).toEqual(before);
    expect((await gateway.generate()).status).toBe(200);
    expect(JSON.stringify(gateway.log)).not.toContain('sample-');
  });

  it('PQR-2 PQR-3 to a virtual account that the file does not name', async () => {
    const payos = await payosDouble();
    const { gateway } = await shopWith(payos, { source: payos.source({}, { virtualAccounts: [] }) });
    const answer = await gateway.generate();
    expect([answer.body.message, answer.headers.get('x-paybox-reason')]).toEqual([
      'QR_NOT_MADE',
      expect.stringMatching(/^the QR pays to VQRQ\d+ at 970422: expected the account itself, or one of qr.virtualAcc/),
    ]);
  });

  const bank = findBank(ACCOUNT.bankCode);
  const account = { ...ACCOUNT, bank, partner: 'demo', disabled: false } as Account;

  /** Makers on a virtual clock, with a payOS that is asked without a network. */
  function makersWith(answer: (clock: VirtualClock, signal: AbortSignal | undefined) => ReturnType<AskSource>) {
    const clock = new VirtualClock(Date.now());
    const random = seededRandom(1);
    const payos = new PayosDouble();
    const source = SOURCE_KINDS.get('payos')?.open({ ...payos.source(), api: undefined }, { clock, random });
    if (source === undefined) throw new Error('no payos');
    const ask: AskSource = (_url, { signal } = {}) => answer(clock, signal);
    const { maker } = source;
    const sources = only<Sources>({ makerFor: () => maker && { source, maker } });
    return { clock, makers: new QrMakers(worldOf({ clock, random }), sources, () => ask) };
  }
  const never = (_clock: VirtualClock, signal: AbortSignal | undefined) =>
    new Promise<never>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));

  it('PQR-2 no QR is shown when payOS does not answer within 10 s', async () => {
    const { clock, makers } = makersWith(never);
    const made = makers.make(account, 50_000);
    await clock.advance(10_000);
    expect(await made).toMatchObject({ ok: false, code: 'QR_NOT_MADE', reason: 'till: not done within 10000 ms' });
  });

  it('PQR-2 while 100 others are being made', async () => {
    const { clock, makers } = makersWith(never);
    const all = Array.from({ length: 100 }, () => makers.make(account, 1));
    expect(await makers.make(account, 1)).toMatchObject({ ok: false, reason: expect.stringContaining('100 QRs') });
    await clock.advance(10_000);
    await Promise.all(all);
    const again = makers.make(account, 1);
    await clock.advance(10_000);
    expect(await again).toMatchObject({ reason: 'till: not done within 10000 ms' });
  });

  it('PQR-2 SRC-31 waits for its turn after a 429, if that comes in time', async () => {
    const payos = await payosDouble();
    const { gateway } = await shopWith(payos);
    payos.first.push({ status: 429, headers: { 'retry-after': '1' } });
    const begunMs = performance.now();
    expect((await gateway.generate()).status).toBe(200);
    expect(performance.now() - begunMs).toBeGreaterThan(900);
    expect(payos.asked).toEqual([MAKE, MAKE]);
  });

  it('PQR-1 SRC-31 does not wait for requests that nobody waits for, but for the pause after a 429', async () => {
    const payos = await payosDouble();
    const clock = new VirtualClock(0);
    const ask = createAskSource(clock, { ownPorts: new Set(), lookup: () => () => undefined });
    const asked = (isUrgent: boolean) => ask(`${payos.url}/x`, { isUrgent }).then(() => clock.monotonicMs());
    expect(await asked(false)).toBe(0);
    const second = asked(false);
    expect(await asked(true)).toBe(0);
    await clock.advance(500);
    expect(await second).toBe(500);
  });
});

it('tells no box of the virtual accounts of a source that was taken away, although the store fails in that moment', async () => {
  const accounts = [ACCOUNT];
  const sources = [new PayosDouble().source({ api: undefined })];
  const world = worldOf({ config: parseGatewayConfig({ dataDir: 'none', accounts, sources }, 'test') });
  const row = { name: 'till', kind: 'payos', options: null, managed: 'file', disabled: 0, changed_at_ms: 1 } as const;
  const rows = new Map([[row.name, row]]);
  const stored = storedOf({
    vault: NO_VAULT,
    store: {
      registry: only<RegistryStore>({
        async *each() {
          yield* rows.values();
        },
        find: async () => rows.get(row.name),
      }),
      setting: async (_name, make) => make(),
      replaceSetting: async () => Promise.reject(new Error('the store is away')),
    },
  });
  const opened = await Sources.open(world, stored, only<Asking>({}), async () => undefined);
  expect(stored.virtualAccounts.of(ACCOUNT.bankAccount)).toMatchObject([{ begins: VIRTUAL.begins }]);
  // When the source last told something is stored at its end.
  opened.catchUp.told(row.name);
  rows.clear();
  await expect(opened.reload(row.name)).rejects.toThrow('the store is away');
  expect([opened.makers(), stored.virtualAccounts.of(ACCOUNT.bankAccount)]).toEqual([[], []]);
});

describe('the end of an order', () => {
  const closed = (gateway: TestGateway) => () => gateway.logged('payment-request-closed').length > 0;

  it('PQR-5 PQR-6 cancels it at payOS, and its QR is pushed no more', async () => {
    const { payos, gateway, show, orderStatus } = await shop();
    const { qrCode, content, transactionId } = await show();
    await gateway.mock(`/orders/${transactionId}/cancel`, 'POST');
    await eventually('its end at payOS', closed(gateway));
    expect([await orderStatus(), payos.newest().status]).toEqual(['cancelled', 'CANCELLED']);
    expect(payos.asked).toEqual([MAKE, CANCEL, LOOK]);
    const again = await gateway.sendQr({ qrCode, content });
    expect([again.status, again.body]).toEqual([400, failed('QR_ENDED')]);
  });

  it('PQR-5 cancels it when its QR expires on the box', async () => {
    const { payos, gateway, box, show } = await shop();
    await show();
    const { pushId, orderId } = await box.next('show');
    await box.send({ type: 'ended', pushId, orderId, how: 'expired' }, pushId);
    await eventually('its end at payOS', closed(gateway));
    expect(payos.newest().status).toBe('CANCELLED');
  });

  it('PQR-6 is that of its push, which payOS would not take money for any longer', async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, wallMs: () => Date.now() + aheadMs };
    const { gateway, box, show } = await shop({ clock });
    const { qrCode, content } = await show();
    const again = async () => {
      const headers = { authorization: `Bearer ${await gateway.token()}` };
      return (await gateway.sendQr({ qrCode, content, orderId: '' }, headers)).body;
    };
    aheadMs = 62 * 60_000;
    expect(await again()).toEqual({ status: 'SUCCESS', message: '' });
    const [first, second] = box.of('show').map((it) => it.expiresInMs);
    expect([first, Math.ceil((second ?? 0) / 60_000)]).toEqual([300_000, 3]);
    aheadMs = 66 * 60_000;
    expect(await again()).toEqual(failed('QR_ENDED'));
  });

  it('PQR-5 leaves one alone that was replaced: it can be pushed again', async () => {
    const { payos, gateway, show, box } = await shop();
    const first = await show();
    const { body: second } = await gateway.generate({ orderId: 'DH002' });
    await gateway.sendQr({ orderId: 'DH002', qrCode: second.qrCode, content: second.content });
    const { pushId, orderId } = await box.next('show');
    await box.send({ type: 'ended', pushId, orderId, how: 'replaced' }, pushId);
    await eventually('the replaced order', async () => (await gateway.mock('/orders'))[1]?.status === 'replaced');
    const again = await gateway.sendQr({ qrCode: first.qrCode, content: first.content });
    expect(again.body.status).toBe('SUCCESS');
    expect(payos.asked).toEqual([MAKE, MAKE]);
  });

  it('PQR-5 CRE-5 finds money that no webhook told, and tells it as late', async () => {
    const { payos, gateway, box, show } = await shop();
    const { transactionId } = await show();
    const tenMinutesAgo = Date.now() - 600_000;
    payos.pay(payos.newest(), { atMs: tenMinutesAgo - (tenMinutesAgo % 1000), text: 'x' });
    await gateway.mock(`/orders/${transactionId}/cancel`, 'POST');
    expect(await box.next('payment')).toMatchObject({ amount: 50_000, orderId: 'DH001', late: true });
    await eventually('its end at payOS', closed(gateway));
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'paid' }]);
  });

  it('PQR-5 SRC-28 an open one is asked for at the start, and what no webhook told is found', async () => {
    const payos = await payosDouble();
    const dataDir = await temporaryFolder();
    const first = await shopWith(payos, { dataDir });
    await first.show();
    await first.box.close();
    await first.gateway.close();
    const tenMinutesAgo = Date.now() - 600_000;
    payos.pay(payos.newest(), { atMs: tenMinutesAgo - (tenMinutesAgo % 1000), text: 'x' });
    const { gateway } = await shopWith(payos, { dataDir });
    await eventually('the credit', async () => (await gateway.mock('/sources'))[0]?.found === 1);
    expect(await gateway.mock('/orders')).toMatchObject([{ orderId: 'DH001', status: 'paid' }]);
  });
});

it('PQR-3 takes a QR to a virtual account only if payOS made it for an order of this account', async () => {
  const { payos, gateway } = await shop();
  await gateway.generate();
  const { qrCode } = payos.newest();
  const foreign = encodeVietQr({
    ...{ bin: '970422', account: virtualOf(1), service: 'account', initiation: 'dynamic', amount: 50_000 },
  });
  expect((await gateway.sendQr({ qrCode: foreign })).body).toEqual(failed('QR_MISMATCH'));
  expect((await gateway.sendQr({ qrCode, amount: '50001' })).body).toEqual(failed('QR_MISMATCH'));
  const { bankAccount, bankCode } = OTHER_ACCOUNT;
  const other = push({ qrCode, bankAccount, bankCode, terminalCode: 'VVB000004', serialNumber: 'VVB900004' });
  expect((await gateway.post('/api/tid/send-qr', other)).body).toEqual(failed('QR_MISMATCH'));
});

it('PQR-1 two sources for one account, and a maker without its keys, are refused by name', async () => {
  const payos = new PayosDouble();
  payos.url = 'http://127.0.0.1:1';
  const { apiKey: _none, ...without } = payos.source();
  await expect(testGateway({ config: { sources: [without] } })).rejects.toThrow(
    'expected clientId and apiKey beside it',
  );
  const sources = [payos.source(), payos.source({ name: 'other' })];
  await expect(testGateway({ config: { sources } })).rejects.toThrow(
    `sources.1.qr.accounts.0: the account ${ACCOUNT.bankAccount} is already taken`,
  );
});
