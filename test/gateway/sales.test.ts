import { describe, expect, it } from 'vitest';
import { type Random, systemRandom } from '../../src/lib/random.ts';
import { makeOrderCode } from '../../src/protocol/order-code.ts';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { BOX1, BOX2, BOX3, partnerServer, processed, type TestGateway, testGateway } from './harness.ts';
import { SEPAY, sepayBody, tellHook } from './hooks.ts';

interface SaleView {
  id: string;
  code: string;
  amount: number;
  content: string;
  status: string;
  paid: number;
  qrCode: string;
  terminalCode: string;
}

async function ask(gateway: TestGateway, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const sent = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } };
  const init = body === undefined ? { headers } : { ...sent, body: JSON.stringify(body) };
  return fetch(`${gateway.origin}/admin/v1/sales${path}`, init);
}
const json = async <T>(answer: Promise<Response>) => {
  const came = await answer;
  return { status: came.status, body: (await came.json()) as T };
};

/** A gateway with one connected box that shows what it is sent. */
async function counter(config: Record<string, unknown> = {}, random: Random = systemRandom) {
  const { url } = await partnerServer(processed);
  const gateway = await testGateway({ config, callback: { url }, random });
  const box = await connectFakeBox({
    gateway,
    identity: BOX1,
    transport: 'http',
    onShow: (it, show) => void it.shown(show),
  });
  return { gateway, box };
}
const sell = (gateway: TestGateway, change: object = {}) =>
  json<SaleView>(ask(gateway, '', { amount: 50_000, terminalCode: BOX1.terminalCode, ...change }));
const find = (gateway: TestGateway, id: string) => json<SaleView>(ask(gateway, `/${id}`));

describe('SEL', () => {
  it('SEL-1 SEL-2 an amount becomes a QR with a code on the box, and the money for it pays the sale', async () => {
    const { gateway } = await counter();
    const { status, body: sale } = await sell(gateway, { note: 'ban 7' });
    expect([status, sale.status, sale.amount, sale.content]).toEqual([201, 'shown', 50_000, `${sale.code} ban 7`]);
    expect(sale.code).toMatch(/^PB[2-9A-HJ-NP-Z]{7}$/);
    expect(decodeVietQr(sale.qrCode)).toMatchObject({
      ok: true,
      value: { amount: 50_000, purpose: sale.content, initiation: 'dynamic' },
    });
    await gateway.testCallback({ content: sale.content });
    expect((await find(gateway, sale.id)).body).toMatchObject({ status: 'paid', paid: 50_000 });
    expect((await find(gateway, sale.code)).body.id).toBe(sale.id);
  });

  it('SEL-1 MAT-6 THR-44 a note has no code of an order, so that money for the QR is for no other order', async () => {
    const { gateway } = await counter({ sources: [SEPAY] });
    const { body: other } = await sell(gateway);
    const tails = ['7 PB2345ABC', '7 VQR01234'];
    const coded = [other.code, other.code.toLowerCase(), other.code.replace('PB', 'P B'), `a${other.code}`];
    const begun = [other.code.slice(0, 8), other.code.slice(0, 5), 'VQR0a1b2c3d4', 'vqr 0a1'];
    const refused = [...coded, ...begun, 'VQR0a1b2c3d4e', 'VQR0a 1B2c3d4e'];
    for (const note of refused) {
      const { status, body } = await json<{ message: string; reason: string }>(
        ask(gateway, '', { amount: 50_000, terminalCode: BOX1.terminalCode, note }),
      );
      expect([note, status, body.message, body.reason]).toEqual([
        note,
        400,
        'E46',
        expect.stringMatching(/^note: .*PB/),
      ]);
    }
    expect(await gateway.mock('/orders')).toHaveLength(1);
    const plain = ['7 PB', 'pb 12', 'VQR', 'SPB 34', ...tails.map((it) => `${it} x0`)];
    for (const [i, note] of plain.entries()) {
      const { body: sale } = await sell(gateway, { note });
      const text = `MBVCB.12.${sale.content.toUpperCase().replaceAll(' ', '')}CT tu 99 toi 01`;
      expect((await tellHook(gateway, sepayBody({ id: i + 1, referenceCode: `FT${i}`, content: text }))).status).toBe(
        200,
      );
      expect([note, (await find(gateway, sale.id)).body.status]).toEqual([note, 'paid']);
    }
    expect((await find(gateway, other.id)).body.paid).toBe(0);
  });

  it('SEL-1 MAT-6 a code that is two codes together with the note is not taken', async () => {
    const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
    const secretOf = (chars: string) => Buffer.from([...chars].map((it) => alphabet.indexOf(it))).toString('base64url');
    const codeOf = (chars: string) => makeOrderCode({ ...systemRandom, secret: () => secretOf(chars) });
    const [first, second] = [codeOf('ABPB23'), codeOf('ABCDEF')];
    const next = [first, second].map((it) => secretOf(it.slice(2, 8)));
    const secret = (bytes: number) => (bytes === 6 ? next.shift() : undefined) ?? systemRandom.secret(bytes);
    const { gateway } = await counter({}, { ...systemRandom, secret });
    const within = codeOf(`23${first.at(-1)}456`);
    const note = within.slice(5);
    expect(`${first}${note}`).toContain(within);
    expect((await sell(gateway, { note })).body.content).toBe(`${second} ${note}`);
  });

  it('SEL-3 a cancelled sale leaves the box, and cannot be cancelled once it is paid', async () => {
    const { gateway, box } = await counter();
    const { body: sale } = await sell(gateway);
    const cancelled = await json<SaleView>(ask(gateway, `/${sale.code}/cancel`, {}));
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled']);
    await eventually('the withdrawal', () => box.received.some((it) => it.type === 'withdraw'));
    const { body: other } = await sell(gateway);
    await gateway.testCallback({ content: other.content });
    expect((await json<object>(ask(gateway, `/${other.id}/cancel`, {}))).status).toBe(400);
    expect((await find(gateway, other.id)).body.status).toBe('paid');
  });

  it('SEL-4 the sales of a day in Vietnam, page by page, with their sum, and as a file', async () => {
    const { gateway } = await counter();
    const sold: SaleView[] = [];
    for (const amount of [10_000, 20_000, 30_000]) sold.push((await sell(gateway, { amount })).body);
    const [first, , third] = sold as [SaleView, SaleView, SaleView];
    for (const { content, amount } of [first, third]) await gateway.testCallback({ content, amount });
    interface Day {
      day: string;
      sales: number;
      paid: number;
      amount: number;
      rows: SaleView[];
    }
    const { body: day } = await json<Day>(ask(gateway, '?limit=2'));
    const today = new Date(Date.now() + 7 * 3_600_000).toISOString().slice(0, 10);
    expect([day.sales, day.paid, day.amount]).toEqual([3, 2, 40_000]);
    expect([today, new Date(Date.now() + 7 * 3_600_000 - 60_000).toISOString().slice(0, 10)]).toContain(day.day);
    expect(day.rows.map((it) => it.amount)).toEqual([30_000, 20_000]);
    const { body: rest } = await json<Day>(ask(gateway, `?limit=2&day=${day.day}&before=${day.rows[1]?.id}`));
    expect(rest.rows.map((it) => it.amount)).toEqual([10_000]);
    const { body: other } = await json<Day>(ask(gateway, '?day=2020-02-29'));
    expect(other).toEqual({ day: '2020-02-29', sales: 0, paid: 0, amount: 0, rows: [] });
    const file = await ask(gateway, `.csv?day=${day.day}`);
    expect(file.headers.get('content-disposition')).toContain(`sales-${day.day}.csv`);
    const lines = (await file.text()).split('\r\n').map((line) => line.split(','));
    expect(lines.map((it) => it[8])).toEqual(['cashier', 'loopback', 'loopback', 'loopback', '', undefined]);
    expect(lines.map((it) => [it[2], it[3], it[4]])).toEqual([
      ['amount', 'paid', 'status'],
      ['10000', '10000', 'paid'],
      ['20000', '0', expect.stringMatching(/shown|replaced/)],
      ['30000', '30000', 'paid'],
      ['', '40000', ''],
      [undefined, undefined, undefined],
    ]);
  });

  it('SEL-4 MOD-3 a sandbox counts its test payments, and a live gateway none of them', async () => {
    const { url } = await partnerServer(processed);
    const options = { dataDir: await temporaryFolder(), callback: { url } };
    const sandbox = await testGateway(options);
    await connectFakeBox({ gateway: sandbox, identity: BOX1, transport: 'http' });
    const { body: sale } = await sell(sandbox);
    await sandbox.testCallback({ content: sale.content });
    const day = async (gateway: TestGateway) => {
      const { sales, paid, amount } = (await json<Record<string, unknown>>(ask(gateway, ''))).body;
      return { sales, paid, amount };
    };
    expect(await day(sandbox)).toEqual({ sales: 1, paid: 1, amount: 50_000 });
    await sandbox.close();
    const live = await testGateway({ ...options, config: { sandbox: false } });
    expect(await day(live)).toEqual({ sales: 1, paid: 0, amount: 0 });
    expect((await find(live, sale.id)).body.paid).toBe(0);
  });

  it('SEL-4 a sale for which too little came is not paid, until the rest comes', async () => {
    const { gateway } = await counter({ sources: [SEPAY] });
    const { body: sale } = await sell(gateway);
    const day = async () => {
      const { sales, paid, amount } = (await json<Record<string, unknown>>(ask(gateway, ''))).body;
      return [sales, paid, amount];
    };
    for (const [id, transferAmount, is] of [
      [1, 20_000, [1, 0, 20_000]],
      [2, 30_000, [1, 1, 50_000]],
    ] as const) {
      await tellHook(gateway, sepayBody({ id, referenceCode: `FT${id}`, content: sale.content, transferAmount }));
      expect(await day()).toEqual(is);
    }
  });

  it('SEL-2 SEL-3 a sale that ends with too little has the word of its order, and what came', async () => {
    const { gateway } = await counter({ sources: [SEPAY] });
    const { body: sale } = await sell(gateway);
    await tellHook(gateway, sepayBody({ id: 1, referenceCode: 'FT1', content: sale.content, transferAmount: 20_000 }));
    expect((await find(gateway, sale.id)).body).toMatchObject({ status: 'underpaid', isOpen: true, paid: 20_000 });
    const cancelled = await json<SaleView>(ask(gateway, `/${sale.id}/cancel`, {}));
    expect(cancelled.body).toMatchObject({ status: 'cancelled', isOpen: false, paid: 20_000 });
    expect(await gateway.mock('/orders')).toMatchObject([{ status: 'cancelled', paidAmount: 20_000 }]);
  });

  it('SEL-1 the form of the console takes a note with accents, and says what else it takes', async () => {
    const page = await (await fetch(`${(await testGateway()).origin}/`)).text();
    const [, pattern = '', title] = /name="note"[^>]* pattern="([^"]+)" title="([^"]+)"/.exec(page) ?? [];
    const isTaken = (note: string) => new RegExp(`^(?:${pattern})$`, 'v').test(note);
    expect([isTaken('Cà phê sữa'), isTaken('bàn #7')]).toEqual([true, false]);
    expect(title).toContain('letters, digits and spaces');
  });

  it.each(['Cà phê sữa Đắk', 'Cà phê sữa Đắk'.normalize('NFD')])(
    'SEL-1 drops the accents of the note %s',
    async (note) => {
      const { gateway } = await counter();
      const { status, body } = await sell(gateway, { note });
      expect([status, body.content]).toEqual([201, `${body.code} Ca phe sua Dak`]);
    },
  );

  it.each([
    ['no amount', { amount: undefined }, 'E46'],
    ['half a dong', { amount: 0.5 }, 'E46'],
    ['nothing', { amount: 0 }, 'E46'],
    ['more than a QR can say', { amount: 1e13 }, 'E46'],
    ['a note with a sign', { note: 'bàn #7' }, 'E46'],
    ['a long note', { note: 'à'.repeat(16) }, 'E46'],
    ['a field that is none', { price: 1 }, 'E46'],
    ['an unknown box', { terminalCode: 'VVB999999' }, 'E35'],
    ['a box without an account', { terminalCode: BOX3.terminalCode }, 'E36'],
    ['a box that is not connected', { terminalCode: 'VVB000002' }, 'BOX_OFFLINE'],
  ])('SEL-1 refuses %s, and stores nothing', async (_what, change, code) => {
    const { gateway } = await counter();
    const { status, body } = await sell(gateway, change);
    expect([status, body]).toMatchObject([400, { status: 'FAILED', message: code, reason: expect.any(String) }]);
    expect(await gateway.mock('/orders')).toEqual([]);
  });

  it('SEL-1 without a box sells at the only one that is connected, and otherwise names those there are', async () => {
    const { gateway, box } = await counter();
    expect((await sell(gateway, { terminalCode: '' })).body).toMatchObject({ terminalCode: BOX1.terminalCode });
    const reason = async (change: object) =>
      (await json<{ message: string; reason: string }>(ask(gateway, '', { amount: 1_000, ...change }))).body;
    expect(await reason({ terminalCode: 'VVB999999' })).toMatchObject({
      message: 'E35',
      reason: 'terminalCode: expected that of a box in the system: VVB000001, VVB000002, VVB000004',
    });
    await connectFakeBox({ gateway, identity: BOX2, transport: 'http' });
    expect(await reason({ terminalCode: '' })).toMatchObject({
      message: 'E35',
      reason: 'terminalCode: expected one of the boxes that are connected: VVB000001, VVB000002',
    });
    expect(await gateway.mock('/orders')).toHaveLength(1);
    await box.close();
    await eventually(
      'one box',
      async () => (await sell(gateway, { terminalCode: '' })).body.terminalCode === 'VVB000002',
    );
  });

  it.each(['?day=2026-02-30', '?day=today', '?limit=0', '?limit=1000'])('SEL-4 refuses the list %s', async (query) => {
    const { gateway } = await counter();
    expect((await ask(gateway, query)).status).toBe(400);
  });

  it('SEL-5 only an admin sells', async () => {
    const adminToken = 'Admin-token-of-this-test-only-1';
    const { gateway } = await counter({ adminToken });
    expect((await ask(gateway, '', { amount: 1 })).status).toBe(401);
    expect((await ask(gateway, '')).status).toBe(401);
    expect((await ask(gateway, '', undefined, { authorization: `Bearer ${adminToken}` })).status).toBe(200);
  });

  it('SEL-1 an account without a partner can sell, too', async () => {
    const gateway = await testGateway({ config: { partners: [] } });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http', onShow: (it, show) => void it.shown(show) });
    expect((await sell(gateway)).status).toBe(201);
  });
});
