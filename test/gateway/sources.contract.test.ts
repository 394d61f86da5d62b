import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SOURCE_KINDS } from '../../src/gateway/money/sources/registry.ts';
import type { Heard, Source } from '../../src/gateway/money/sources/source.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { anyChar, fc } from '../support/properties.ts';
import {
  bodyWith,
  type HookCall,
  linkOf,
  type Moved,
  moved,
  PROVIDERS,
  type Proof,
  type Provider,
} from '../support/providers.ts';

const NOW_MS = Date.parse('2026-01-05T09:12:00+07:00');
const MINUTE_MS = 60_000;

/** A source of this kind at 9:12, with the clock of its gateway. */
function opened(options: Record<string, unknown>, nowMs = NOW_MS) {
  const kind = SOURCE_KINDS.get(String(options.kind));
  if (kind === undefined) throw new Error(`no kind ${options.kind}`);
  const clock = new VirtualClock(nowMs);
  const source = kind.open({ name: 'till', ...options }, { clock, random: seededRandom(1) });
  return { source, clock };
}

const hear = (
  source: Source,
  { path, headers, body }: { path: string; headers: object; body: string | Buffer },
): Heard => {
  const heard = source.hear({ path, headers: { ...headers }, body: Buffer.from(body) });
  if (heard.kind === 'form') throw new Error('expected a body that is no form');
  return heard;
};

/** What a provider needs to prove a call now: a token, if it works with tokens. */
function proofFor(source: Source, { askToken, key }: Provider, nowMs = NOW_MS): Proof {
  if (askToken === undefined) return { nowMs };
  const heard = hear(source, askToken(key));
  const token = heard.kind === 'answered' && 'access_token' in heard.body ? String(heard.body.access_token) : undefined;
  return token === undefined ? { nowMs } : { nowMs, token };
}

/** The credit that every source makes of `moved`. */
const credit = (money: Moved, sourceId: unknown = expect.stringMatching(/./)) => ({
  sourceId,
  reference: money.reference,
  bankAccount: money.bankAccount,
  virtualAccount: money.virtualAccount,
  amount: money.amount,
  text: money.text,
  bankTimeMs: money.atMs,
});
const told = (...credits: object[]) => ({ kind: 'told', credits, ignored: [] });
const ignored = { kind: 'told', credits: [], ignored: [expect.stringMatching(/./)] };
const refused = (status: 400 | 401) => ({
  kind: 'refused',
  status,
  reason: expect.stringMatching(/^[\x20-\x7e]+$/),
  body: expect.anything(),
});

/** A source that hears this provider, and calls to it with a right proof unless `how` says otherwise. */
function rightOf(provider: Provider) {
  const { source, clock } = opened(provider.options);
  const proof = proofFor(source, provider);
  const call = (body: Record<string, unknown>, how: Partial<Proof> = {}) =>
    hear(source, provider.call(body, { ...proof, ...how }));
  return { source, clock, proof, call };
}

it('SRC-26 has a provider for each kind of source', () => {
  const kinds = Object.values(PROVIDERS).map(({ options }) => options.kind);
  expect([...new Set(kinds)].sort()).toEqual([...SOURCE_KINDS.keys()].sort());
});

describe.each(Object.entries(PROVIDERS))('%s', (name, provider) => {
  const extra = provider.options.kind === 'payos' ? { orderCode: 4711 } : {};
  const right = () => rightOf(provider);
  const body = provider.body(moved());

  it('SRC-26 hears money, and the same money by the same key when it is told again', () => {
    const { call, source } = right();
    const money = moved(provider.options.kind === 'vietqr' ? {} : { virtualAccount: 'VA01' });
    const first = call(provider.body(money));
    expect(first).toEqual(told({ ...credit(money), ...extra }));
    expect(call(provider.body(money))).toEqual(first);
    expect(Object.keys(source.success)).not.toEqual([]);
  });

  it('SRC-26 takes a text with what nobody can see as blanks, and a long one cut', () => {
    const { call } = right();
    const strange = bodyWith(body, provider.at.text, `a\nDH001\u0000\u200b${'x'.repeat(3000)}`);
    const heard = call(strange);
    expect(heard).toMatchObject({ kind: 'told', credits: [{ text: `a DH001  ${'x'.repeat(1991)}` }] });
    expect(call(bodyWith(body, provider.at.text, undefined))).toMatchObject({ kind: 'told', credits: [{ text: '' }] });
  });

  it('SRC-26 refuses a proof that is missing or wrong, in each of its characters', () => {
    const { source, proof } = right();
    const call = provider.call(body, proof);
    expect(
      hear(source, {
        ...call,
        headers: provider.options.kind === 'payos' ? call.headers : {},
        body: call.body.replace(/"signature":"../, '"signature":"'),
      }),
    ).toEqual(refused(401));
    const wrong = provider.call(body, { ...proof, key: 'another', token: 'another' });
    expect(hear(source, wrong)).toEqual(refused(401));
    for (const [name, value] of Object.entries(provider.sign(call.body, proof))) {
      for (let i = 0; i < value.length; i += 1) {
        // Letters of a scheme and of hexadecimal digits may be of either case.
        const other = value[i] === '7' ? '8' : '7';
        const headers = { ...call.headers, [name]: value.slice(0, i) + other + value.slice(i + 1) };
        expect([i, hear(source, { ...call, headers })]).toEqual([i, refused(401)]);
      }
      expect(hear(source, { ...call, headers: { ...call.headers, [name]: '' } })).toEqual(refused(401));
    }
  });

  it('SRC-26 refuses, ignores or takes an amount by one table', () => {
    const { call } = right();
    const withAmount = (amount: unknown) => call(bodyWith(body, provider.at.amount, amount));
    const isCasso = provider.options.kind === 'casso';
    const isVietqr = provider.options.kind === 'vietqr';
    const taken = (amount: number) => ({ kind: 'told', credits: [{ amount }], ignored: [] });
    const table: [amount: unknown, heard: object][] = [
      [1, taken(1)],
      [9_999_999_999_999, taken(9_999_999_999_999)],
      [0, ignored],
      [-50_000, isCasso ? ignored : refused(400)],
      ['50000', isVietqr ? taken(50_000) : refused(400)],
      ['50000.0', isVietqr ? taken(50_000) : refused(400)],
      ['5e4', refused(400)],
      ['', refused(400)],
      [0.5, refused(400)],
      [50_000.5, refused(400)],
      [10_000_000_000_000, refused(400)],
      [1e300, refused(400)],
      [true, refused(400)],
      [[50_000], refused(400)],
      [{}, refused(400)],
      [null, refused(400)],
      [undefined, refused(400)],
    ];
    for (const [amount, heard] of table) {
      expect([amount, withAmount(amount)]).toEqual([
        amount,
        heard.constructor === Object && 'status' in heard ? heard : expect.objectContaining(asMatch(heard)),
      ]);
    }
  });

  it('SRC-26 refuses an account or a time that is none', () => {
    const { call } = right();
    for (const account of [undefined, null, '', ' ', 12_345, ['0123456789']]) {
      const without = bodyWith(
        bodyWith(body, provider.at.account, account),
        [...provider.at.account.slice(0, -1), 'subAccId'],
        undefined,
      );
      expect([account, call(without)]).toEqual([account, refused(400)]);
    }
  });

  it('SRC-26 takes money whose other fields cannot be used: cut, left out, or without a time', () => {
    const { call } = right();
    const credits = (place: readonly string[], value: unknown) => call(bodyWith(body, place, value));
    const { account, time, reference, virtualAccount } = provider.at;
    expect(credits(account, 'x'.repeat(65))).toEqual(
      told({ ...credit({ ...moved(), bankAccount: 'x'.repeat(64) }), ...extra }),
    );
    const times = [
      undefined,
      null,
      '',
      'now',
      '2026-13-05 09:10:11',
      '2026-02-30 09:10:11',
      '05/01/2026 09:10',
      -1,
      {},
    ];
    for (const it of times) {
      expect([it, credits(time, it)]).toEqual([it, told({ ...credit(moved()), bankTimeMs: undefined, ...extra })]);
    }
    for (const it of [undefined, null, '', ' ', 'N/A', 'null', 'undefined', '-', '0', '000', '7', 'x', []]) {
      expect([it, credits(reference, it)]).toEqual([it, told({ ...credit({ ...moved(), reference: '' }), ...extra })]);
    }
    const long = (end: string) => credits(reference, `${'R'.repeat(200)}${end}`);
    expect(long('1')).toEqual(
      told({ ...credit({ ...moved(), reference: expect.stringMatching(/^R{95}#[0-9a-f]{32}$/) }), ...extra }),
    );
    expect(long('1')).not.toEqual(long('2'));
    for (const it of virtualAccount === undefined ? [] : [null, '', ' ']) {
      expect([it, credits(virtualAccount ?? [], it)]).toEqual([it, told({ ...credit(moved()), ...extra })]);
    }
  });

  it('SRC-26 takes a text in another encoding without its letters, unless its bytes are signed otherwise', () => {
    const { source, proof } = right();
    const call = provider.call(bodyWith(body, provider.at.text, 'DH001 ZZ'), proof);
    if (['casso V2', 'payos', 'sepay signed'].includes(name)) return;
    const latin = Buffer.from(call.body.replace('ZZ', '\u00e9\u00ea'), 'latin1');
    expect(hear(source, { ...call, body: latin })).toEqual(
      told({ ...credit({ ...moved(), text: 'DH001 \ufffd\ufffd' }), ...extra }),
    );
  });

  it('LIM-7 SRC-3 refuses what is nested too deeply, with a short reason', () => {
    const { source, proof } = right();
    // Others sign what was read.
    const signed = (bytes: string) => (provider.options.kind === 'sepay' ? bytes : 'null');
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const deep = (depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`;
      for (const it of [deep(10_000), `{"error":0,"signature":"x","data":{"a":${deep(10_000)}}}`]) {
        const heard = hear(source, { path: pathOf(provider), headers: provider.sign(signed(it), proof), body: it });
        expect(heard).toMatchObject({
          kind: 'refused',
          reason: expect.stringMatching(/^[^\n]*nested more than 32 deep$/),
        });
      }
    }
  });

  it('SRC-26 refuses what is no such body', () => {
    const { source, proof, call } = right();
    const bytes = ['', 'x', 'null', '[]', '1', '""', '{}', '{"data":null}', '{"data":[]', '['.repeat(30_000)];
    for (const it of [...bytes, `[${JSON.stringify(body)}]`, `{"data":${'['.repeat(2_000)}${']'.repeat(2_000)}}`]) {
      const heard = hear(source, { path: pathOf(provider), headers: provider.sign(it, proof), body: it });
      expect([it.slice(0, 40), heard]).toEqual([it.slice(0, 40), expect.objectContaining({ kind: 'refused' })]);
    }
    const notUtf8 = Buffer.from([0x7b, 0xff, 0x7d]);
    expect(hear(source, { path: pathOf(provider), headers: provider.sign('', proof), body: notUtf8 }).kind).toBe(
      'refused',
    );
    // An object where an array belongs, and the other way round.
    if (!('data' in body)) return;
    const { data } = body;
    expect(call({ ...body, data: Array.isArray(data) ? data[0] : [data] })).toMatchObject({ kind: 'refused' });
  });

  it('SRC-26 hears nothing at another path', () => {
    const { source, proof } = right();
    const call = provider.call(body, proof);
    for (const path of ['/x', '/api', '/api/token_generate/x', '/bank/api/transaction-sync/']) {
      expect([path, hear(source, { ...call, path })]).toEqual([path, { ...refused(400), isUnproved: true }]);
    }
  });

  it('SRC-26 ignores debits, and calls that only try the hook', () => {
    const { call } = right();
    expect(call(provider.body(moved({ out: true })))).toEqual(ignored);
    if (provider.options.kind !== 'vietqr') expect(call(provider.body(moved({ id: 0 })))).toEqual(ignored);
  });

  it('SRC-26 leaves fields alone that it does not know', () => {
    const { call } = right();
    const more = bodyWith(
      bodyWith(body, ['__proto__'], { amount: 1 }),
      [...provider.at.amount.slice(0, -1), 'newer'],
      [null, { b: 1, a: 'ế' }],
    );
    expect(call(more)).toEqual(call(body));
  });

  it('SRC-26 never throws, and never says its key, whatever a peer sends', () => {
    const { source, proof } = right();
    const any = fc.record({
      path: fc.constantFrom('', '/api/token_generate', '/bank/api/transaction-sync', '/x'),
      value: fc.jsonValue(),
      text: fc.string({ unit: anyChar, maxLength: 40 }),
      place: fc.constantFrom(provider.at.amount, provider.at.account, provider.at.time, provider.at.text),
      how: fc.constantFrom('value', 'text', 'field'),
    });
    const property = fc.property(any, ({ path, value, text, place, how }) => {
      const json =
        how === 'field' ? bodyWith(body, place, value) : ({ ...body, ...Object(value) } as Record<string, unknown>);
      const call = provider.call(json, proof);
      const heard = hear(
        source,
        how === 'text' ? { path, headers: { ...call.headers, authorization: text }, body: text } : call,
      );
      expect(JSON.stringify(heard)).not.toContain(provider.key);
      if (heard.kind !== 'told') return;
      for (const { amount, bankAccount, sourceId, bankTimeMs } of heard.credits) {
        expect(Number.isSafeInteger(amount) && amount > 0 && (bankTimeMs ?? 0) >= 0).toBe(true);
        expect([bankAccount, sourceId]).not.toContain('');
      }
    });
    fc.assert(property, { numRuns: 500 });
  });
});

/** The part of a heard credit that a row of a table names. */
function asMatch(heard: object): object {
  if (!('credits' in heard)) return heard;
  const credits = (heard.credits as object[]).map((it) => expect.objectContaining(it));
  return { ...heard, credits };
}

const pathOf = ({ call, body }: Provider) => call(body(moved()), { nowMs: NOW_MS }).path;

describe.each(Object.entries(PROVIDERS).filter(([, { expires }]) => expires))('%s', (_name, provider) => {
  const body = provider.body(moved());

  it('SRC-26 refuses a proof of more than 5 minutes', async () => {
    const { source, clock, proof } = rightOf(provider);
    const call = provider.call(body, proof);
    await clock.advance(5 * MINUTE_MS - 1000);
    expect(hear(source, call)).toMatchObject({ kind: 'told', credits: [{}] });
    await clock.advance(2000);
    expect(hear(source, call)).toEqual(refused(401));
  });
});

describe.each(Object.entries(PROVIDERS).filter(([, { proof }]) => proof === 'signature'))('%s', (_name, provider) => {
  const body = provider.body(moved());

  it('SRC-26 takes a clock that is up to 5 minutes ahead or behind', () => {
    if (!provider.expires) return;
    const { source } = rightOf(provider);
    for (const secondsOff of [-299, 299]) {
      const call = provider.call(body, { nowMs: NOW_MS + secondsOff * 1000 });
      expect(hear(source, call)).toMatchObject({ kind: 'told', credits: [{}] });
    }
    for (const secondsOff of [-301, 301, -86_400, 86_400]) {
      expect(hear(source, provider.call(body, { nowMs: NOW_MS + secondsOff * 1000 }))).toEqual(refused(401));
    }
  });

  it('SRC-26 refuses a body of which any byte was changed, or hears the same', () => {
    const { source, proof, call } = rightOf(provider);
    const sent = provider.call(body, proof);
    const bytes = Buffer.from(sent.body);
    const same = call(body);
    const change = fc.record({
      at: fc.nat(bytes.length - 1),
      byte: fc.nat(255),
      how: fc.constantFrom('set', 'cut', 'put'),
    });
    const property = fc.property(change, ({ at, byte, how }) => {
      const changed = Buffer.concat([
        bytes.subarray(0, at),
        how === 'cut' ? Buffer.alloc(0) : Buffer.from([byte]),
        bytes.subarray(how === 'put' ? at : at + 1),
      ]);
      const heard = hear(source, { ...sent, body: changed });
      if (heard.kind !== 'refused') expect(heard).toEqual(same);
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});

describe('signatures', () => {
  interface Vector {
    name: string;
    source: string;
    options: Record<string, unknown>;
    nowMs: number;
    headers: Record<string, string>;
    body: string;
    credits: number;
  }
  const vectors: Vector[] = JSON.parse(readFileSync(new URL('../vectors/webhooks.json', import.meta.url), 'utf8'));

  it.each(vectors)('SRC-20 SRC-22 SRC-26 fits $name ($source)', ({ options, nowMs, headers, body, credits }) => {
    const { source } = opened(options, nowMs);
    const heard = hear(source, { path: '', headers, body });
    expect(heard).toMatchObject({ kind: 'told', credits: Array.from({ length: credits }, () => ({})) });
    const wrong = opened({ ...options, ...otherKey(options) }, nowMs).source;
    expect(hear(wrong, { path: '', headers, body })).toEqual(refused(401));
  });

  const otherKey = ({ auth, checksumKey }: Record<string, unknown>) =>
    checksumKey === undefined
      ? {
          auth: Object.fromEntries(
            Object.entries(auth as object).map(([name, it]) => [name, name === 'kind' ? it : `${it}x`]),
          ),
        }
      : { checksumKey: `${checksumKey}x` };
});

const CASSO = PROVIDERS['casso V2'] as Provider;
const CASSO_V1 = PROVIDERS['casso V1'] as Provider;
const PAYOS = PROVIDERS.payos as Provider;
const VIETQR = PROVIDERS.vietqr as Provider;

describe('Casso', () => {
  it('SRC-20 takes the key before as long as it is in the file', () => {
    const auth = CASSO.options.auth as { key: string; previousKey: string };
    const call = CASSO.call(CASSO.body(moved()), { nowMs: NOW_MS, key: auth.previousKey });
    expect(hear(opened(CASSO.options).source, call)).toEqual(told(credit(moved(), '92704')));
    const { previousKey: _old, ...alone } = auth;
    expect(hear(opened({ ...CASSO.options, auth: alone }).source, call)).toEqual(refused(401));
  });

  it('SRC-20 signs the body as it is read: blanks and the order of keys do not matter', () => {
    const call = CASSO.call(CASSO.body(moved()), { nowMs: NOW_MS });
    const { data, ...rest } = JSON.parse(call.body);
    const turned = { data: Object.fromEntries(Object.entries(data).reverse()), ...rest };
    const written = {
      ...call,
      body: JSON.stringify(turned, undefined, 3).replaceAll('/', '\\/').replaceAll('ễ', '\\u1ec5'),
    };
    expect(written.body).toContain('\\u1ec5');
    expect(hear(opened(CASSO.options).source, written)).toEqual(told(credit(moved(), '92704')));
  });

  it('SRC-21 tells each transaction of an array by itself: a debit, a test call or a wrong one holds up none', () => {
    const { source } = opened(CASSO_V1.options);
    const [one, two, debit, test] = [moved({ id: 1 }), moved({ id: 2 }), moved({ id: 3, out: true }), moved({ id: 0 })];
    const items = [one, debit, test, two].map((it) => (CASSO_V1.body(it).data as object[])[0]);
    const body = { error: 0, data: [...items, { id: 9 }] };
    const heard = hear(source, CASSO_V1.call(body, { nowMs: NOW_MS }));
    expect(heard).toEqual({
      kind: 'told',
      credits: [credit(one, '1'), credit(two, '2')],
      ignored: [expect.stringMatching(/^item 4: amount/), '3: a debit', '0: a test call'],
    });
    expect(hear(source, CASSO_V1.call({ error: 0, data: [] }, { nowMs: NOW_MS }))).toEqual(told());
    expect(hear(source, CASSO_V1.call({ error: 0, data: [{ id: 9 }] }, { nowMs: NOW_MS }))).toEqual(refused(400));
  });
});

describe('payOS', () => {
  const call = (change: Record<string, unknown>) => {
    const body = PAYOS.body(moved());
    return hear(
      opened(PAYOS.options).source,
      PAYOS.call({ ...body, data: { ...(body.data as object), ...change } }, { nowMs: NOW_MS }),
    );
  };

  it('SRC-22 signs null, and the words for it, as nothing, so they mean nothing', () => {
    for (const reference of ['', null, 'null', 'undefined', undefined]) {
      expect(call({ reference })).toMatchObject({ kind: 'told', credits: [{ reference: '' }] });
    }
    expect(call({ accountNumber: 'null' })).toEqual(refused(400));
  });

  it('SRC-22 refuses data that is nested too deeply to be signed', () => {
    const body = `{"data":{"currency":${'['.repeat(20_000)}${']'.repeat(20_000)}},"signature":"x"}`;
    expect(hear(opened(PAYOS.options).source, { path: '', headers: {}, body })).toMatchObject({ status: 400 });
  });

  it('SRC-22 leaves alone what is not signed', () => {
    const body = { ...PAYOS.body(moved()), code: '99', desc: 'changed', success: false };
    expect(hear(opened(PAYOS.options).source, PAYOS.call(body, { nowMs: NOW_MS }))).toEqual(call({}));
  });

  it('SRC-22 THR-33 hears the same credit of one signature, however the borders of its fields are moved', () => {
    const { data } = PAYOS.body(moved()) as { data: Record<string, unknown> };
    const names = Object.keys(data).sort();
    const heardBy = (fields: Record<string, unknown>, signature: unknown) =>
      hear(opened(PAYOS.options).source, { path: '', headers: {}, body: JSON.stringify({ data: fields, signature }) });
    const piece = fc.record({
      name: fc.constantFrom(...names, 'other', ''),
      value: fc.constantFrom('', '7', 'B', 'USD'),
    });
    const any = fc.record({
      pieces: fc.array(piece, { maxLength: 6 }),
      reference: fc.constantFrom('', 'FT1', 'FT=1', undefined),
      lacks: fc.subarray(['currency', 'virtualAccountNumber', 'virtualAccountName', 'transactionDateTime']),
      kept: fc.infiniteStream(fc.boolean()),
      numbers: fc.boolean(),
    });
    const property = fc.property(any, ({ pieces, reference, lacks, kept, numbers }) => {
      const description = ['a & b = c', ...pieces.map(({ name, value }) => `${name}=${value}`)].join('&');
      const without = Object.fromEntries(lacks.map((name) => [name, undefined]));
      const right = PAYOS.call({ data: { ...data, description, reference, ...without } }, { nowMs: NOW_MS });
      const { data: sent, signature } = JSON.parse(right.body);
      const heard = hear(opened(PAYOS.options).source, right);
      const { bankAccount, amount, atMs, orderCode } = moved();
      const credit = {
        bankAccount,
        amount,
        bankTimeMs: lacks.includes('transactionDateTime') ? undefined : atMs,
        orderCode,
        virtualAccount: '',
        reference: reference ?? '',
      };
      expect(heard).toMatchObject({ kind: 'told', credits: [credit] });
      // Any of the borders in the text may be one, as long as the fields stay in their order.
      const text = Object.keys(sent)
        .sort()
        .map((name) => `${name}=${sent[name] ?? ''}`)
        .join('&');
      const others: [string, unknown][] = [];
      for (const it of text.split('&')) {
        const [name = '', ...rest] = it.split('=');
        const last = others.at(-1);
        const isField = rest.length > 0 && (last === undefined || (name > last[0] && kept.next().value));
        if (isField) others.push([name, rest.join('=')]);
        else if (last !== undefined) last[1] = `${last[1]}&${it}`;
      }
      const fields = Object.fromEntries(
        others.map(([name, it]) => {
          const isNumber = numbers && ['amount', 'orderCode'].includes(name) && /^\d+$/.test(String(it));
          return [name, isNumber ? Number(it) : it];
        }),
      );
      const again = heardBy(fields, signature);
      // It is proved, and says the same or nothing.
      expect(again).not.toMatchObject({ status: 401 });
      if (again.kind !== 'refused') expect(again).toEqual(heard);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it.each([
    ['description', '&virtualAccountNumber=5550001'],
    ['description', '&currency=USD'],
    ['description', '&reference=FT1&transactionDateTime=2020-01-01 00:00:00&virtualAccountNumber=5550001'],
    ['description', '&amount=1&accountNumber=5550001&code=01&orderCode=5&paymentLinkId=x'],
    ['counterAccountName', '&currency=USD'],
    ['counterAccountName', '&virtualAccountNumber=5550001&orderCode=5&reference=FT1'],
  ])('SRC-22 THR-34 reads no field that the data lacks out of what a payer writes: %s with %s', (field, written) => {
    const { data } = PAYOS.body(moved()) as { data: Record<string, unknown> };
    const optional = ['currency', 'virtualAccountName', 'virtualAccountNumber', 'reference', 'transactionDateTime'];
    const least = Object.fromEntries(Object.entries(data).filter(([name]) => !optional.includes(name)));
    const heardWith = (more: object) =>
      hear(opened(PAYOS.options).source, PAYOS.call({ data: { ...least, ...more } }, { nowMs: NOW_MS }));
    const { orderCode, bankAccount, amount } = moved();
    const plain = { orderCode, bankAccount, amount, virtualAccount: '', reference: '', bankTimeMs: undefined };
    expect(heardWith({})).toMatchObject({ kind: 'told', credits: [plain] });
    expect(heardWith({ [field]: `NGUYEN${written}` })).toMatchObject({ kind: 'told', credits: [plain] });
    // What it has counts all the same.
    expect(heardWith({ [field]: `NGUYEN${written}`, currency: 'USD' })).toEqual(refused(400));
    const has = { currency: 'VND', virtualAccountNumber: '777', reference: 'FT9' };
    const counts = { virtualAccount: '777', reference: 'FT9' };
    expect(heardWith({ [field]: `NGUYEN${written}`, ...has })).toMatchObject({ credits: [{ ...plain, ...counts }] });
  });

  it('SRC-22 takes the documented replay with a reference that is folded into the field before for a duplicate', () => {
    const { data } = PAYOS.body(moved()) as { data: Record<string, unknown> };
    const right = PAYOS.call({ data }, { nowMs: NOW_MS });
    const { signature } = JSON.parse(right.body);
    const { reference, ...others } = data;
    const folded = { ...others, paymentLinkId: `${data.paymentLinkId}&reference=${reference}` };
    const { source } = opened(PAYOS.options);
    const heard = hear(source, { path: '', headers: {}, body: JSON.stringify({ data: folded, signature }) });
    expect(heard).toEqual(hear(source, right));
  });

  it('SRC-23 takes no other currency for đồng', () => {
    for (const currency of ['USD', 'vnd', 5]) {
      expect(call({ currency })).toEqual({ ...refused(400), reason: expect.stringMatching(/^currency: /) });
    }
    for (const currency of ['', null, undefined]) expect(call({ currency })).toEqual(call({}));
  });

  it('SRC-3 has no proof without data and a signature', () => {
    const rows: [body: string, heard: object][] = [
      ...['{}', '{"data":{}}', '{"signature":"x"}'].map((it): [string, object] => [it, refused(401)]),
      ...['', '{', '[]', '{"signature":"x","data":[]}'].map((it): [string, object] => [
        it,
        { ...refused(400), isUnproved: true },
      ]),
    ];
    for (const [body, heard] of rows) {
      expect([body, hear(opened(PAYOS.options).source, { path: '', headers: {}, body })]).toEqual([body, heard]);
    }
  });

  it('SRC-23 tells each transfer of an order by itself', () => {
    const keyOf = (heard: Heard) => (heard.kind === 'told' ? heard.credits.map((it) => it.sourceId) : []);
    const link = linkOf(4711);
    expect(keyOf(call({ reference: 'FT1' }))).toEqual([`${link}/FT1`]);
    expect(keyOf(call({ reference: 'FT2' }))).toEqual([`${link}/FT2`]);
    expect(keyOf(call({ reference: '' }))).toEqual([`${link}/${moved().atMs}-50000`]);
  });

  it('SRC-23 tells money of an order 123 that is no test call', () => {
    expect(call({ orderCode: 123 })).toMatchObject({ kind: 'told', credits: [{ orderCode: 123 }] });
    expect(call({ orderCode: 123, description: 'Ma giao dich thu nghiem' })).toEqual(ignored);
    expect(call({ description: 'VQRIO123' })).toMatchObject({ kind: 'told', credits: [{ orderCode: 4711 }] });
    for (const orderCode of ['4711', 1.5, -1, null]) expect(call({ orderCode })).toEqual(refused(400));
  });
});

describe('the public service', () => {
  const sync = (change: Record<string, unknown>, drop: string[] = []) => {
    const { source } = opened(VIETQR.options);
    const body = { ...VIETQR.body(moved()), ...change };
    const kept = Object.fromEntries(Object.entries(body).filter(([key]) => !drop.includes(key)));
    return hear(source, VIETQR.call(kept, proofFor(source, VIETQR)));
  };
  const ask = (source: Source, call: HookCall | undefined) => (call === undefined ? undefined : hear(source, call));

  it('SRC-24 gives a token for the right user name and password, whatever the body', () => {
    const { source } = opened(VIETQR.options);
    const call = VIETQR.askToken?.(VIETQR.key);
    const token = { access_token: expect.stringMatching(/^[\w.-]+$/), token_type: 'Bearer', expires_in: 300 };
    for (const body of ['{}', '', 'x']) {
      expect(ask(source, call && { ...call, body })).toEqual({ kind: 'answered', status: 200, body: token });
    }
    const wrongUser = `Basic ${Buffer.from(`other:${VIETQR.key}`).toString('base64')}`;
    const wrong = [undefined, '', 'Basic', 'Basic x', wrongUser].map(
      (authorization) => call && { ...call, headers: { ...(authorization === undefined ? {} : { authorization }) } },
    );
    for (const it of [...wrong, VIETQR.askToken?.('another'), VIETQR.askToken?.('')])
      expect(ask(source, it)).toEqual(refused(401));
  });

  it('SRC-24 takes no token of another source, nor of a run before', () => {
    const one = opened(VIETQR.options).source;
    const kind = SOURCE_KINDS.get('vietqr');
    const two = kind?.open(
      { name: 'till', ...VIETQR.options },
      { clock: new VirtualClock(NOW_MS), random: seededRandom(2) },
    );
    if (two === undefined) throw new Error('no source');
    expect(hear(two, VIETQR.call(VIETQR.body(moved()), proofFor(one, VIETQR)))).toEqual(refused(401));
  });

  it('SRC-25 reads both spellings, and times and amounts as numbers or digits', () => {
    const right = told(credit(moved(), moved().reference));
    const { bankaccount, transactionid, transactiontime, referencenumber } = VIETQR.body(moved());
    const newer = ['bankaccount', 'transactionid', 'transactiontime', 'referencenumber'];
    expect(sync({})).toEqual(right);
    expect(
      sync(
        {
          bankAccount: bankaccount,
          transactionId: transactionid,
          transactionTime: transactiontime,
          referenceNumber: referencenumber,
        },
        newer,
      ),
    ).toEqual(right);
    expect(sync({ transactiontime: String(transactiontime), amount: '50000' })).toEqual(right);
    expect(sync({ amount: '50000.0' })).toEqual(right);
  });

  it('SRC-25 knows a transaction by its reference, or without one by its id', () => {
    expect(sync({ referencenumber: '' })).toMatchObject({
      kind: 'told',
      credits: [{ sourceId: 't92704', reference: '' }],
    });
    const unnumbered = sync({ referencenumber: 'N/A', transactionid: null });
    expect(unnumbered).toMatchObject({
      credits: [{ sourceId: expect.stringMatching(/^[0-9a-f]{32}$/), reference: '' }],
    });
    expect(sync({ referencenumber: '', transactionid: '' })).toEqual(unnumbered);
    expect(sync({ referencenumber: '', transactionid: '', transactiontime: 1 })).not.toEqual(unnumbered);
    for (const transType of [undefined, 'X', 'c']) expect(sync({ transType })).toEqual(refused(400));
  });

  it('SRC-25 answers in the documented form', () => {
    const { source } = opened(VIETQR.options);
    expect(source.success).toEqual({
      error: false,
      errorReason: '',
      toastMessage: '',
      object: { reftransactionid: '' },
    });
    expect(sync({ amount: 'x' })).toMatchObject({
      body: { error: true, errorReason: 'E46', toastMessage: expect.stringMatching(/^amount/), object: null },
    });
  });
});
