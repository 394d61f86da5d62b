import { describe, expect, it } from 'vitest';
import { accountCheckSum, checkSum } from '../../src/protocol/checksum.ts';
import { crc16 } from '../../src/protocol/crc16.ts';
import { PATHS } from '../../src/protocol/http-api.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { BOX1, failed, partnerServer, processed, qrFor, status, type TestGateway, testGateway } from './harness.ts';

const { generate, sendQr, testCallback, checkOrder, token: TOKEN } = PATHS;
const ORDER = '"bankAccount":"0123456789","bankCode":"MB","userBankName":"NGUYEN VAN A","content":"BAN 7"';
const PAID = '"bankAccount":"0123456789","bankCode":"MB","content":"BAN 7","transType":"C"';
const sum = checkSum('demo-secret', { bankAccount: '0123456789', amount: '79000', bankCode: 'MB' });
const QR = qrFor({ amount: 79_000, purpose: 'BAN 7' });
const PUSH = `"bankAccount":"0123456789","bankCode":"MB","content":"BAN 7","qrCode":"${QR}","terminalCode":"VVB000001","checkSum":"${sum}"`;
const NULLS = '"terminalCode":null,"subTerminalCode":null,"serviceCode":null,"sign":null,"urlLink":null,"note":null';
const asked = accountCheckSum('0123456789', 'demo');

interface Shape {
  /** Whose request it is, or what is odd in it. */
  who: string;
  path: string;
  body: string;
  /** What was taken leniently; the strict gateway refuses with `strict` unless there is nothing. */
  lenient: string[];
  strict?: string;
  /** A part of the answer. */
  answer?: object;
}

const SUCCESS = { status: 'SUCCESS' };

/** Requests that the public service takes and the letter does not. */
const ODD: Shape[] = [
  {
    who: 'unset optional fields of generate as null',
    path: generate,
    body: `{${ORDER},"qrType":0,"amount":79000,"orderId":"B7","transType":"C",${NULLS},"additionalData":null}`,
    lenient: ['terminalCode', 'subTerminalCode', 'serviceCode', 'sign', 'urlLink', 'note', 'additionalData'].map(
      (field) => `${field}: null where it is left out`,
    ),
    strict: 'E46',
  },
  {
    who: 'unset optional fields of send-qr as null',
    path: sendQr,
    body: `{${PUSH},"amount":"79000","serialNumber":null,"orderId":null}`,
    lenient: ['serialNumber: null where it is left out', 'orderId: null where it is left out'],
    strict: 'E46',
  },
  {
    who: 'unset optional fields of the test callback as null',
    path: testCallback,
    body: '{"bankAccount":"0123456789","content":"BAN 7","amount":79000,"bankCode":null,"transType":null}',
    lenient: ['bankCode: null where it is left out', 'transType: null where it is left out'],
    strict: '003',
  },
  {
    who: 'amount and qrType of generate as texts',
    path: generate,
    body: `{${ORDER},"qrType":"0","amount":"79000","orderId":"B7","transType":"C"}`,
    lenient: ['qrType: a text for a number', 'amount: a text for a number'],
    strict: 'E46',
    answer: { amount: '79000', qrCode: expect.stringContaining('540579000') },
  },
  {
    who: 'an amount of the test callback as a text',
    path: testCallback,
    body: `{${PAID},"amount":"79000"}`,
    lenient: ['amount: a text for a number'],
    strict: '002',
    answer: SUCCESS,
  },
  {
    who: 'an amount of send-qr as a number, the checkSum over its digits',
    path: sendQr,
    body: `{${PUSH},"amount":79000,"orderId":"NUMBER"}`,
    lenient: ['amount: a number for a text'],
    strict: 'E46',
    answer: SUCCESS,
  },
  {
    who: 'no orderId in generate',
    path: generate,
    body: `{${ORDER},"qrType":0,"amount":79000,"transType":"C"}`,
    lenient: ['orderId: missing, the order has none'],
    strict: 'E46',
    answer: { orderId: '' },
  },
  {
    who: 'no transType in generate, and an order number',
    path: generate,
    body: `{${ORDER},"qrType":0,"amount":79000,"orderId":20260131}`,
    lenient: ['orderId: a number for a text', 'transType: missing, taken as C'],
    strict: 'E46',
    answer: { orderId: '20260131' },
  },
  {
    who: 'additionalData as an object',
    path: generate,
    body: `{${ORDER},"qrType":0,"amount":79000,"orderId":"B7","transType":"C","additionalData":{"table":"7"}}`,
    lenient: ['additionalData: an object for a list'],
    strict: 'E46',
    answer: { additionalData: [{ table: '7' }] },
  },
  {
    who: 'the code of a store as terminalCode',
    path: generate,
    body: `{${ORDER},"qrType":3,"amount":79000,"terminalCode":"QUAN-1","serviceCode":"S1"}`,
    lenient: ['terminalCode: the code of a store, not of a box'],
    strict: 'E35',
    answer: { terminalCode: 'QUAN-1' },
  },
];

/** Request shapes of public clients of the service; values and words are our own. */
const CLIENTS: Shape[] = [
  {
    who: 'NestJS shop: generates with numbers as the documentation has them',
    path: generate,
    body: `{${ORDER},"amount":79000,"transType":"C","orderId":"SHOP7","qrType":0}`,
    lenient: [],
    answer: { orderId: 'SHOP7', content: 'BAN 7' },
  },
  {
    who: 'NestJS shop: its test callback names the bank',
    path: testCallback,
    body: `{"bankAccount":"0123456789","content":"BAN 7","amount":79000,"transType":"C","bankCode":"MB"}`,
    lenient: [],
    answer: SUCCESS,
  },
  {
    who: 'donation page in React: content cut at 23 characters, orderId cut from a UUID',
    path: generate,
    body: '{"bankCode":"MB","bankAccount":"0123456789","userBankName":"NGUYEN VAN A","content":"Ung ho quy tre em nam 7","qrType":0,"amount":79000,"orderId":"1A2B3C4D-5E6F","transType":"C"}',
    lenient: [],
    answer: { content: 'Ung ho quy tre em nam 7' },
  },
  {
    who: 'Laravel clinic: a note beside the order',
    path: generate,
    body: `{${ORDER},"qrType":0,"amount":79000,"orderId":"PK7","transType":"C","note":"Phieu kham PK7"}`,
    lenient: [],
    answer: { orderId: 'PK7' },
  },
  {
    who: 'Laravel shop: the BIN as bankCode, the content as orderId',
    path: generate,
    body: '{"bankCode":"970422","bankAccount":"0123456789","userBankName":"NGUYEN VAN A","amount":79000,"content":"BAN7","orderId":"BAN7","qrType":0,"transType":"C"}',
    lenient: [],
    answer: { bankCode: '970422' },
  },
  {
    who: '.NET client: every property of its class, the unset ones as null',
    path: generate,
    body: `{${ORDER},"qrType":0,"amount":79000,"orderId":"NET7","transType":"C",${NULLS}}`,
    lenient: ['terminalCode', 'subTerminalCode', 'serviceCode', 'sign', 'urlLink', 'note'].map(
      (field) => `${field}: null where it is left out`,
    ),
    strict: 'E46',
  },
  {
    who: 'Spring client over Feign: boxed fields as null, the amount as a text',
    path: generate,
    body: `{${ORDER},"amount":"79000","orderId":"JAVA7","transType":"C","qrType":0,"terminalCode":null}`,
    lenient: ['amount: a text for a number', 'terminalCode: null where it is left out'],
    strict: 'E46',
  },
  {
    who: 'React page for testers: the amount of a form field in the test callback',
    path: testCallback,
    body: '{"bankAccount":"0123456789","content":"BAN 7","amount":"79000","bankCode":"MB","transType":"C"}',
    lenient: ['amount: a text for a number'],
    strict: '002',
    answer: SUCCESS,
  },
  {
    who: 'vending controller: additionalData as one object, a store as terminalCode',
    path: generate,
    body: `{${ORDER},"qrType":0,"amount":79000,"orderId":"VM7","transType":"C","terminalCode":"MAY07","additionalData":{"additionalData1":"khay 3"}}`,
    lenient: ['additionalData: an object for a list', 'terminalCode: the code of a store, not of a box'],
    strict: 'E46',
  },
  {
    who: 'Laravel clinic: checks its order by number, type as an integer',
    path: checkOrder,
    body: `{"bankAccount":"0123456789","type":0,"value":"FIRST","checkSum":"${asked}"}`,
    lenient: [],
  },
  {
    who: 'FastAPI service: checks its order, type as a text',
    path: checkOrder,
    body: `{"bankAccount":"0123456789","type":"0","value":"FIRST","checkSum":"${asked}"}`,
    lenient: [],
  },
  {
    who: 'PHP till: pushes with unset optionals as null and the amount as a number',
    path: sendQr,
    body: `{${PUSH},"amount":79000,"serialNumber":null,"orderId":"TILL7"}`,
    lenient: ['amount: a number for a text', 'serialNumber: null where it is left out'],
    strict: 'E46',
    answer: SUCCESS,
  },
];

/** A gateway with a box, a partner's endpoint, and an order FIRST. */
async function shop(config: object = {}) {
  const partner = await partnerServer(processed);
  const gateway = await testGateway({ callback: { url: partner.url }, config: { mqtt: null, ...config } });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  await gateway.generate({ orderId: 'FIRST' });
  return { gateway, partner, box };
}

const calls = async (gateway: TestGateway) => {
  const page = await gateway.mock<{ entries: Record<string, unknown>[] }>('/wire');
  return page.entries.filter((it) => it.kind === 'call' && it.path !== TOKEN);
};

describe.each([
  ['what public service takes', ODD],
  ['public clients', CLIENTS],
])('LEN %s', (_name, shapes) => {
  it.each(shapes)('LEN-1 LEN-2 LEN-3 LEN-4 LEN-5 takes $who', async ({ path, body, lenient, strict, answer }) => {
    const { gateway } = await shop();
    for (const time of ['first', 'second']) {
      const taken = await gateway.post(path, body);
      expect([time, taken.status, taken.body]).toEqual([time, 200, taken.body]);
      if (answer !== undefined) expect(taken.body).toMatchObject(answer);
      expect(taken.headers.get('x-paybox-lenient')).toBe(lenient.length === 0 ? null : lenient.join('; '));
      expect(taken.headers.get('x-paybox-reason')).toBe(null);
    }
    expect(gateway.logged('call-tolerated').map((it) => it.what)).toEqual(lenient);
    expect((await calls(gateway)).at(-1)).toMatchObject({ path, lenient, reason: null });

    const letter = await shop({ strict: true });
    const judged = await letter.gateway.post(path, body);
    expect([judged.status, judged.body.message]).toEqual(
      strict === undefined ? [200, judged.body.message] : [400, strict],
    );
    expect(letter.gateway.logged('call-tolerated')).toEqual([]);
  });
});

it('LEN-3 takes no account, no checkSum and no amount in another way', async () => {
  const { gateway } = await shop();
  const order = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'A', content: 'BAN 7', transType: 'C' };
  const refused: [string, object, string][] = [
    [generate, { ...order, bankAccount: 123_456_789, amount: 1000 }, 'E46'],
    ...['79.000', '79,000', '079000', '79000.0', ' 79000', '7.9e4', '', '-1'].map(
      (amount): [string, object, string] => [generate, { ...order, amount }, 'E46'],
    ),
    [generate, { ...order, amount: 79_000.5 }, 'E02'],
    [generate, { ...order, amount: 1000, terminalCode: 'VVB999999' }, 'E35'],
    [generate, { ...order, amount: 1000, terminalCode: 'VVB1' }, 'E35'],
    [generate, { ...order, amount: 1000, orderId: 'a\u202eb' }, 'E46'],
    [sendQr, JSON.parse(`{${PUSH},"amount":79000.5}`), 'E46'],
    [sendQr, JSON.parse(`{${PUSH},"amount":790000}`), 'E39'],
    [sendQr, { ...JSON.parse(`{${PUSH},"amount":"79000"}`), checkSum: 5 }, 'E46'],
    [testCallback, { bankAccount: 123_456_789, content: 'BAN 7', amount: 1000 }, '010'],
    [testCallback, { bankAccount: '0123456789', content: 'BAN 7', amount: '1.000' }, '002'],
  ];
  for (const [path, body, code] of refused) {
    const answer = await gateway.post(path, body);
    expect([body, answer.status, answer.body]).toEqual([body, 400, failed(code)]);
  }
  expect(await gateway.mock('/payments')).toEqual([]);
});

describe('ERR-7', () => {
  it.each([
    [generate, `{${ORDER},"amount":0,"orderId":"B7","transType":"C"}`, 'E02', /^amount: expected whole dong/],
    [generate, '{"amount":1}', 'E46', /^bankCode: .*expected a text/],
    [generate, '{"amount":', 'E46', /^body: expected UTF-8 JSON: the body is not JSON \(it is cut at position 10\)$/],
    [generate, '{"amount":1,}', 'E46', /^body: expected UTF-8 JSON: the body is not JSON \(at position 12\)$/],
    [
      generate,
      `{${ORDER},"amount":1,"terminalCode":"VVB7"}`,
      'E35',
      /^terminalCode: expected that of a box.*VVB000001$/,
    ],
    [generate, `{${ORDER},"amount":"079000"}`, 'E46', /^amount: expected a number, as 79000 .*leading zero/],
    [generate, `{${ORDER},"qrType":"x"}`, 'E46', /^qrType: expected 0 .dynamic., 1 /],
    [generate, `{${ORDER},"amount":1,"terminalCode":"QUAN 1"}`, 'E35', /or of a store: 1 to 64 .*without .*spaces$/],
    [sendQr, `{${PUSH},"amount":"79,000"}`, 'E02', /^amount: expected/],
    [sendQr, `{${PUSH.replace(sum, 'f'.repeat(32))},"amount":"79000"}`, 'E39', /^checkSum: expected .*MD5/],
    [sendQr, `{${PUSH.replace(QR, 'x')},"amount":"79000"}`, 'QR_INVALID', /^qrCode: /],
    [testCallback, `{${PAID.replace('BAN 7', 'BÀN 7')},"amount":1}`, '009', /^content: expected 1 to 19/],
    [checkOrder, `{"bankAccount":"0123456789","type":5,"value":"x","checkSum":"${asked}"}`, 'E95', /^type: expected 0/],
  ])('ERR-7 tells why %s refuses %s', async (path, body, code, reason) => {
    const { gateway } = await shop();
    const answer = await gateway.post(path, body);
    expect([answer.status, answer.body]).toEqual([400, failed(code)]);
    const told = answer.headers.get('x-paybox-reason') ?? '';
    expect(told).toMatch(reason);
    expect(gateway.logged('request-refused').at(-1)).toMatchObject({ code, reason: told });
    expect((await calls(gateway)).at(-1)).toMatchObject({ path, status: 400, reason: told });
    expect(await gateway.mock('/calls')).toMatchObject([{ path, status: 400, reason: told }]);
    const everything = JSON.stringify([gateway.log, await calls(gateway), told]);
    for (const secret of ['demo-secret', sum, asked, 'eyJhbGci']) expect(everything).not.toContain(secret);
  });

  it('ERR-7 TOK-4 tells no caller whether a user exists', async () => {
    const { gateway } = await shop();
    const reasons = [];
    for (const user of ['demo', 'nobody']) {
      const authorization = `Basic ${Buffer.from(`${user}:wrong`).toString('base64')}`;
      const answer = await gateway.post(TOKEN, {}, { authorization });
      expect(answer.status).toBe(401);
      reasons.push(answer.headers.get('x-paybox-reason'));
    }
    expect(reasons).toEqual(['wrong credentials of a partner', 'wrong credentials of a partner']);
  });
});

describe('a token', () => {
  it.each([
    ['Node script', undefined, ''],
    ['.NET client', '{}', 'application/json; charset=utf-8'],
    ['WordPress plugin', '[]', 'application/json'],
    ['Flutter app', '{"unused":null}', 'application/json'],
  ])('TOK-3 is given to a %s with the body %s', async (_who, body, type) => {
    const { gateway } = await shop();
    const headers = { authorization: `Basic ${Buffer.from('demo:demo-secret').toString('base64')}` };
    const more = type === '' ? {} : { 'content-type': type };
    const answer = await fetch(`${gateway.baseUrl}${TOKEN}`, {
      method: 'POST',
      headers: { ...headers, ...more },
      body,
    } as RequestInit);
    expect([answer.status, ((await answer.json()) as { token_type: string }).token_type]).toEqual([200, 'Bearer']);
  });
});

describe('contents', () => {
  it.each(['x'.repeat(20), 'a_b', 'BAN-7', ''])('GEN-8 warns of the content "%s"', async (content) => {
    const { gateway } = await shop();
    const answer = await gateway.generate({ content });
    expect([answer.status, answer.headers.get('x-paybox-warning')]).toEqual([200, expect.stringContaining('009')]);
    expect((await gateway.testCallback({ content })).body.message).toBe('009');
    expect((await calls(gateway)).at(-2)).toMatchObject({ warnings: [expect.stringContaining('content:')] });
    expect(await gateway.mock('/calls')).toHaveLength(2);
  });

  it('GEN-8 warns of an orderId that another open order of the account has, and of no other', async () => {
    const { gateway } = await shop();
    const warned = async (change: Record<string, unknown>) =>
      (await gateway.generate(change)).headers.get('x-paybox-warning');
    expect(await warned({ content: 'A1', orderId: 'A1' })).toBe(null);
    expect(await warned({ content: 'A1', orderId: 'A1' })).toContain('orderId: another order of this account');
    expect(await warned({ content: 'B1', orderId: 'B1' })).toBe(null);
    for (let n = 0; n < 2; n += 1) expect((await gateway.testCallback({ content: 'A1' })).status).toBe(200);
    expect(await warned({ content: 'A1', orderId: 'A1' })).toBe(null);
  });

  it('GEN-8 warns of nothing that the test callback takes', async () => {
    const { gateway } = await shop();
    const answer = await gateway.generate({ content: 'x'.repeat(19) });
    expect(answer.headers.get('x-paybox-warning')).toBe(null);
    expect(await gateway.mock('/calls')).toEqual([]);
  });

  it('GEN-9 CBK-8 has codes as the public service makes them, and takes what it returned', async () => {
    const { gateway, partner } = await shop({ contentPrefix: 'vietqr' });
    const made = await gateway.generate({ content: 'BAN-7 TANG1', orderId: 'CODE' });
    const content = String(made.body.content);
    expect(content).toMatch(/^VQR[0-9a-f]{10} BAN-7 TANG1$/);
    expect(made.body.qrCode).toContain(content);
    expect(made.headers.get('x-paybox-warning')).toBe(null);
    const paid = await gateway.testCallback({ content });
    expect([paid.status, paid.headers.get('x-paybox-lenient')]).toEqual([200, expect.stringContaining('code of a QR')]);
    await eventually('the callback', () => partner.calls.length === 1);
    expect(JSON.parse(partner.calls[0]?.body ?? '')).toMatchObject({ orderId: 'CODE', content });
    const long = await gateway.generate({ content: 'Thanh toan DH001', orderId: 'LONG' });
    expect(long.body.content).toMatch(/^VQR[0-9a-f]{10} Thanh toan$/);
    expect(long.headers.get('x-paybox-warning')).toContain('cut to the 25 characters');
    expect(long.body.qrCode).toContain(String(long.body.content));
    await gateway.testCallback({ content: long.body.content });
    expect((await gateway.mock('/payments'))[0]).toMatchObject({ orderId: 'LONG' });
    expect((await gateway.generate({ content: 'x'.repeat(26) })).body.message).toBe('E26');
  });

  it.each(['vietqr', 'code'] as const)(
    'GEN-9 GEN-10 MAT-6 THR-44 with contentPrefix: %s a content has no code but its own',
    async (contentPrefix) => {
      const { gateway } = await shop({ contentPrefix });
      const [code = ''] = String((await gateway.generate({ content: 'x' })).body.content).split(' ');
      const codes = ['VQR0a1b2c3d4e'.slice(0, contentPrefix === 'code' ? 13 : 11), code.slice(0, 11).toLowerCase()];
      for (const content of [...codes, code.replace(/^./, '$&-').slice(0, 11), `x ${code.slice(0, 8)}`]) {
        const { body, headers } = await gateway.generate({ content, orderId: 'STRANGE' });
        const reason = headers.get('x-paybox-reason');
        expect([content, body.message, reason]).toEqual([content, 'E09', expect.stringMatching(/^content: .*no code/)]);
      }
      expect((await gateway.generate({ content: 'DON SPB 12', orderId: 'PLAIN' })).status).toBe(200);
      expect((await gateway.mock<{ orderId: string }[]>('/orders')).map((it) => it.orderId)).toEqual([
        'PLAIN',
        'DH001',
        'FIRST',
      ]);
    },
  );

  it('CBK-8 finds an order by its code and amount in what a bank has made of it', async () => {
    const { gateway } = await shop({ contentPrefix: 'vietqr' });
    const codes: string[] = [];
    for (const orderId of ['ONE', 'TWO']) {
      codes.push(String((await gateway.generate({ content: 'BAN 7', orderId })).body.content));
    }
    const [one = '', two = ''] = codes;
    const code = (text: string) => text.slice(0, 13);
    const cases: [string, string, number][] = [
      [`MBVCB.7.${one}.CT tu 01 toi 02`, 'ONE', 50_000],
      [`FT26 ${two.toUpperCase()}`, 'TWO', 50_000],
      [`${code(two).slice(0, 7)} ${code(two).slice(7)}-tra ban`, 'TWO', 50_000],
      [`FT26 ${one}`, '', 49_000],
      ['VQR0000000000 BAN 7', '', 50_000],
    ];
    for (const [content, orderId, amount] of cases) {
      const paid = await gateway.testCallback({ content, amount });
      expect([content, paid.status]).toEqual([content, 200]);
      expect((await gateway.mock('/payments'))[0]).toMatchObject({ content, orderId, amount });
    }
    for (const content of ['BAN-7 without a code', `a\u200b${one}`, `${one}${'x'.repeat(99)}`]) {
      expect((await gateway.testCallback({ content })).body.message).toBe('009');
    }
  });

  it('CBK-8 SND-7 QRP-2 pushes a QR of the public service, whose purpose is longer than ours', async () => {
    const { gateway, box } = await shop();
    const purpose = 'VQR0a1b2c3d4e BAN 7 TANG 2 KHU B';
    const tag = (name: string, value: string) => `${name}${String(value.length).padStart(2, '0')}${value}`;
    const short = qrFor({ purpose: 'P' });
    const open = `${short.slice(0, -4).replace(tag('62', tag('08', 'P')), tag('62', tag('08', purpose)))}`;
    const long = `${open}${crc16(open)}`;
    expect((await gateway.sendQr({ qrCode: long, content: '' })).body).toEqual({ status: 'SUCCESS', message: '' });
    expect(await box.next('show')).toMatchObject({ qrCode: long, content: purpose });
  });
});

describe('LEN-6', () => {
  const origin = 'https://shop.example';
  const preflight = (gateway: TestGateway, from: string, path: string = generate) =>
    fetch(`${gateway.baseUrl}${path}`, {
      method: 'OPTIONS',
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    });

  it('LEN-6 lets pages of listed origins call, and reads nothing for others', async () => {
    const { gateway } = await shop({ cors: [origin] });
    for (const path of Object.values(PATHS)) {
      const allowed = await preflight(gateway, origin, path);
      const { headers } = allowed;
      expect([path, allowed.status, headers.get('access-control-allow-origin')]).toEqual([path, 204, origin]);
      expect(headers.get('access-control-allow-headers')).toBe('authorization, content-type');
      expect((await preflight(gateway, 'https://other.example', path)).status).toBe(405);
    }
    const answer = await gateway.generate({ amount: 0 }, { origin });
    expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
    expect(answer.headers.get('access-control-expose-headers')).toContain('x-paybox-reason');
    const stranger = await gateway.generate({}, { origin: 'https://other.example' });
    expect([stranger.status, stranger.headers.get('access-control-allow-origin')]).toEqual([200, null]);
    const mock = await fetch(`${gateway.origin}/_mock/orders`, { headers: { origin } });
    expect(mock.headers.get('access-control-allow-origin')).toBe(null);
  });

  it('LEN-6 is off by default', async () => {
    const { gateway } = await shop();
    const answer = await preflight(gateway, origin);
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([405, null]);
  });
});

describe('receivers', () => {
  const paidWith = async (callback: object, ...replies: Parameters<typeof partnerServer>) => {
    const partner = await partnerServer(...replies);
    const login = { kind: 'token', url: `${partner.origin}/token`, username: 'them', password: 'their-secret' };
    const auth = 'token' in callback ? { auth: login } : {};
    const { token: _, ...form } = callback as { token?: boolean };
    const gateway = await testGateway({ callback: { url: partner.url, ...auth, ...form }, config: { mqtt: null } });
    await gateway.generate({ terminalCode: 'QUAN-1' });
    expect((await gateway.testCallback()).status).toBe(200);
    const done = async () => (await gateway.mock('/callbacks'))[0]?.status !== 'pending';
    await eventually('the callback', done);
    return { gateway, partner, callback: (await gateway.mock('/callbacks'))[0] };
  };

  it.each([200, 201, 202])('SYN-1 gives a NestJS receiver whose token comes with %i its callback', async (code) => {
    const given = JSON.stringify({ access_token: 'theirs', token_type: 'Bearer' });
    const { partner, callback } = await paidWith({ token: true }, status(code, given), processed);
    expect(partner.calls.map((it) => it.authorization)).toEqual([expect.stringMatching(/^Basic /), 'Bearer theirs']);
    expect(callback).toMatchObject({ status: 'delivered', warning: null });
  });

  it.each([
    ['{"error":false,"errorReason":null,"toastMessage":"OK","object":{"reftransactionid":"r"}}', null],
    ['{"error":false,"errorReason":"000","toastMessage":null,"object":null}', null],
    ['{"error":true,"errorReason":"E17","toastMessage":"no such table","object":null}', 'E17, no such table'],
    ['{"error":true,"errorReason":null}', 'without a reason'],
    ['{"ok":true}', 'not the documented reply'],
  ])('SYN-3 judges the reply %s', async (reply, warning) => {
    const { callback } = await paidWith({}, status(200, reply));
    expect(callback).toMatchObject({
      status: 'delivered',
      warning: warning === null ? null : expect.stringContaining(warning),
    });
  });

  const FORMS: [object, string[], Record<string, unknown>][] = [
    [{}, ['"amount":50000,'], { bankaccount: '0123456789', transactiontime: expect.any(Number) }],
    [{ payload: 'camel' }, ['"amount":50000,'], { bankAccount: '0123456789', transactionId: expect.any(String) }],
    [{ payload: 'strings' }, ['"amount":"50000"'], { bankaccount: '0123456789', transactiontime: expect.any(String) }],
    [{ decimals: true }, ['"amount":50000.0,'], { amount: 50_000 }],
    [{ payload: 'strings', decimals: true }, ['"amount":"50000.0"'], { amount: '50000.0' }],
  ];
  it.each(FORMS)('SYN-10 LEN-5 writes the callback as %j says', async (form, texts, fields) => {
    const { partner, gateway } = await paidWith(form);
    const { body } = partner.calls[0] ?? { body: '' };
    for (const text of texts) expect(body).toContain(text);
    expect(JSON.parse(body)).toMatchObject({ ...fields, terminalCode: 'QUAN-1', orderId: 'DH001', transType: 'C' });
    expect(Object.keys(JSON.parse(body))).toHaveLength(13);
    const { id } = (await gateway.mock('/callbacks'))[0] as { id: string };
    await gateway.mock(`/callbacks/${id}/resend`, 'POST');
    expect(partner.calls[1]?.body).toBe(body);
  });
});
