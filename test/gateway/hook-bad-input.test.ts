import { describe, expect, it } from 'vitest';
import { bodyWith, type HookCall, moved, PROVIDERS, type Proof, type Provider } from '../support/providers.ts';
import { ACCOUNT, kept, type TestGateway, testGateway } from './harness.ts';

const MINUTE_MS = 60_000;
type Json = Record<string, unknown>;
/** One bad input: the call, its status, and the event of its one line in the log. */
type Row = [what: string, call: HookCall, status: number, event: string];

const isOf = (provider: Provider, ...kinds: string[]) => kinds.includes(provider.options.kind);
const inArray = (body: Json): Json =>
  Array.isArray(body.data) ? { ...body, data: body.data[0] } : { ...body, data: [body.data] };

function rowsOf(provider: Provider, proof: Proof, known: Json): Row[] {
  const { at } = provider;
  const body = provider.body(moved({ id: 2, reference: 'FT2', atMs: proof.nowMs, bankAccount: ACCOUNT.bankAccount }));
  const right = provider.call(body, proof);
  const call = (change: Json, how: Partial<Proof> = {}) => provider.call(change, { ...proof, ...how });
  const amount = (it: unknown) => call(bodyWith(body, at.amount, it));
  const bytes = (text: string): HookCall => ({
    ...right,
    body: text,
    headers: { ...right.headers, ...provider.sign(text, proof) },
  });
  const unsigned = isOf(provider, 'payos')
    ? { ...right, body: JSON.stringify({ ...body, signature: '' }) }
    : { ...right, headers: {} };
  const [refused, ignored] = ['request-refused', 'credit-ignored'];
  const all: Row[] = [
    ['a proof with another key', call(body, { key: 'another', token: 'another' }), 401, refused],
    ['no proof', unsigned, 401, refused],
    ['an amount as text', amount('50000đ'), 400, refused],
    ['a fraction', amount(0.5), 400, refused],
    ['too large an amount', amount(1e13), 400, refused],
    ['no amount', amount(undefined), 400, refused],
    [
      'a negative amount',
      amount(-50_000),
      isOf(provider, 'casso') ? 200 : 400,
      isOf(provider, 'casso') ? ignored : refused,
    ],
    ['no money', amount(0), 200, ignored],
    [
      'a body that is no JSON',
      bytes('{'),
      isOf(provider, 'casso') && provider.proof === 'signature' ? 401 : 400,
      refused,
    ],
    ['an array', bytes('[]'), 400, refused],
    ['another path', { ...right, path: '/another' }, 400, refused],
    ['a body over the limit', call(bodyWith(body, at.text, 'x'.repeat(70_000))), 413, refused],
    ['what was told before', call(known), 200, 'credit-repeated'],
    [
      'the same with another content type',
      { ...call(known), headers: { ...call(known).headers, 'content-type': 'text/plain' } },
      200,
      'credit-repeated',
    ],
    [
      'a debit',
      call(provider.body(moved({ id: 3, reference: 'FT3', out: true, bankAccount: ACCOUNT.bankAccount }))),
      200,
      ignored,
    ],
  ];
  if ('data' in body) all.push(['an array for an object', call(inArray(body)), 400, refused]);
  if (!isOf(provider, 'vietqr')) all.push(['a test call', call(provider.body(moved({ id: 0 }))), 200, ignored]);
  else all.push(['an amount with a sign', amount('+50000'), 400, refused]);
  if (provider.expires && provider.proof === 'signature') {
    for (const minutes of [-6, 6, -1440]) {
      const nowMs = proof.nowMs + minutes * MINUTE_MS;
      all.push([`a clock that is ${minutes} min off`, call(body, { nowMs }), 401, refused]);
    }
  }
  if (provider.options.kind === 'casso' && provider.proof === 'signature') {
    const { previousKey } = provider.options.auth as { previousKey: string };
    all.push(['the key before, while it is changed', call(known, { key: previousKey }), 200, 'credit-repeated']);
  }
  return all;
}

async function tell(gateway: TestGateway, { path, headers, body }: HookCall) {
  const answer = await fetch(`${gateway.origin}/hooks/till${path}`, { method: 'POST', headers, body });
  return { status: answer.status, retryAfter: answer.headers.get('retry-after'), body: (await answer.json()) as Json };
}

describe.each(Object.entries(PROVIDERS))('bad input of %s', (_name, provider) => {
  it('SRC-2 SRC-3 SRC-5 SRC-26 each bad input of a hook is answered as documented, with one line in the log, and changes nothing', async () => {
    const gateway = await testGateway({ config: { sources: [{ name: 'till', ...provider.options }] } });
    const given = provider.askToken && (await tell(gateway, provider.askToken(provider.key))).body;
    const nowMs = Date.now();
    const proof: Proof = { nowMs, ...(given && { token: String(given.access_token) }) };
    const known = provider.body(
      moved({ id: 1, reference: 'FT1', atMs: nowMs - (nowMs % 1000), bankAccount: ACCOUNT.bankAccount }),
    );
    expect((await tell(gateway, provider.call(known, proof))).status).toBe(200);
    const everything = async () => [...(await kept(gateway)), await gateway.mock('/credits')];
    const before = await everything();
    for (const [what, call, status, event] of rowsOf(provider, proof, known)) {
      const { length } = gateway.log;
      const answer = await tell(gateway, call);
      const lines = gateway.log.slice(length).filter((it) => it.level !== 'debug');
      expect([what, answer.status, lines.map((it) => it.event)]).toEqual([what, status, [event]]);
      const isError = status !== 200;
      const shape = isOf(provider, 'vietqr') && status !== 413 ? { error: isError } : { success: !isError };
      expect([what, answer.body]).toEqual([what, expect.objectContaining(shape)]);
    }
    // A flood: what has no proof is answered with 429 in the end, and not listed any more; the log says from where it comes.
    const flood = provider.call(known, { ...proof, key: 'another', token: 'another' });
    const answers: Awaited<ReturnType<typeof tell>>[] = [];
    for (let i = 0; i < 40; i += 1) answers.push(await tell(gateway, flood));
    expect(answers.at(-1)).toMatchObject({ status: 429, retryAfter: expect.stringMatching(/^[12]$/) });
    expect((await tell(gateway, flood)).status).toBe(429);
    const refused = { status: 429, code: 'E74', reason: 'too many wrong proofs', address: '127.0.0.1' };
    expect(gateway.logged('request-refused').at(-1)).toMatchObject(refused);
    expect((await tell(gateway, provider.call(known, proof))).status).toBe(200);
    expect(await everything()).toEqual(before);
    expect(JSON.stringify(gateway.log)).not.toContain(provider.key);
  });
});
