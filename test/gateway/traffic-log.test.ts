import { describe, expect, it } from 'vitest';
import { Changes } from '../../src/gateway/common/changes.ts';
import { TrafficLog, withoutSecrets } from '../../src/gateway/common/traffic-log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { PATHS } from '../../src/protocol/http-api.ts';
import { wirePage } from '../../src/protocol/wire.ts';

const NOTES = { reason: null, lenient: [], warnings: [] };
const CALL = { by: 'demo', method: 'POST', path: '/x', status: 200, tookMs: 1, ...NOTES };

function wire() {
  const clock = new VirtualClock();
  return { clock, wire: new TrafficLog({ clock, random: systemRandom, changes: new Changes() }) };
}

const MD5 = '0123456789abcdef0123456789ABCDEF';
const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJkZW1vIn0.c2lnbmF0dXJl';
const MISSPELT = { checkSun: '***', checksumm: '***', chekSum: '***', sum: '***', orderId: MD5 };

describe('the wire', () => {
  it('numbers what it hears, and tells what came since a number', async () => {
    const { wire: it, clock } = wire();
    expect(it.since(0, 10)).toMatchObject({ entries: [], next: 0, lost: 0, upMs: 0 });
    it.box('VVB000001', true, 'mqtt');
    await clock.advance(1_500);
    it.call({ ...CALL, body: '{"a":1}', answer: 'no JSON' }, true);
    it.box('VVB000001', false, 'gone');
    const all = wirePage.parse(it.since(0, 10));
    expect(all.entries.map(({ n, kind, upMs }) => [n, kind, upMs])).toEqual([
      [1, 'box', 0],
      [2, 'call', 1_500],
      [3, 'box', 1_500],
    ]);
    expect(all.entries[1]).toMatchObject({ body: { a: 1 }, answer: 'no JSON', by: 'demo' });
    expect(all).toMatchObject({ next: 3, lost: 0, upMs: 1_500 });
    expect(it.since(1, 1)).toMatchObject({ entries: [{ n: 2 }], next: 2, lost: 0 });
    expect(it.since(3, 10)).toMatchObject({ entries: [], next: 3, lost: 0 });
    expect(it.since(99, 10)).toMatchObject({ entries: [], next: 3, lost: 0 });
    expect(it.since(0, 1).run).toBe(all.run);
    expect(wire().wire.since(0, 1).run).not.toBe(all.run);
  });

  it('tells no token of an answer to a callback', () => {
    const { wire: it } = wire();
    const ofOne = { id: 'a', transactionId: 'b', partner: 'demo', byHand: false, result: 'delivered' as const };
    const attempt = { ...ofOne, status: 200, warning: null, error: null, tookMs: 1 };
    it.callback({ ...attempt, body: '{"amount":1}', answer: '{"access_token":"abc","error":false}' });
    it.callback({ ...attempt, body: '{"amount":1}', answer: null });
    expect(it.since(0, 10).entries).toMatchObject([
      { body: { amount: 1 }, answer: { access_token: '***', error: false } },
      { answer: null },
    ]);
  });

  it('keeps the newest 20,000, and says how many it has lost', () => {
    const { wire: it } = wire();
    for (let n = 1; n <= 45_000; n += 1) it.box('VVB000001', true, String(n));
    const page = it.since(10, 2);
    expect(page.entries).toMatchObject([
      { n: 25_001, why: '25001' },
      { n: 25_002, why: '25002' },
    ]);
    expect(page).toMatchObject({ next: 25_002, lost: 24_990 });
    expect(it.since(44_999, 10)).toMatchObject({ entries: [{ n: 45_000, why: '45000' }], lost: 0 });
  });

  it('keeps 16 million characters at most, and the beginning of what is long', () => {
    const { wire: it } = wire();
    const body = 'x'.repeat(65_000);
    for (let n = 1; n <= 2_000; n += 1) it.call({ ...CALL, body, answer: '' }, true);
    const { entries, lost } = it.since(0, 2_000);
    expect(lost).toBe(2_000 - Math.floor(16_000_000 / (16_384 + 200)));
    expect(String((entries[0] as { body: unknown }).body)).toHaveLength(16_384);
    // One answer is no longer than a reader takes.
    expect(entries.length).toBe(Math.floor(4_000_000 / (16_384 + 200)));
  });

  it('keeps the beginning of a path, and counts all texts of a call', () => {
    const { wire: it } = wire();
    const notes = { lenient: ['l'.repeat(3_500)], warnings: ['w'.repeat(3_500)], reason: 'r'.repeat(500) };
    for (let n = 1; n <= 3_000; n += 1)
      it.call({ ...CALL, ...notes, path: `/${'x'.repeat(16_000)}`, body: '', answer: '' }, true);
    const { entries, lost } = it.since(0, 1);
    expect(String((entries[0] as { path: unknown }).path)).toHaveLength(500);
    expect(lost).toBe(3_000 - Math.floor(16_000_000 / (3_500 + 3_500 + 500 + 500 + 200)));
  });

  it('lets callers who have not proved who they are push nobody out of the lists', async () => {
    const { wire: it, clock } = wire();
    const refused = { ...CALL, path: PATHS.generate, status: 400, reason: 'amount', body: '', answer: '' };
    for (let n = 1; n <= 40; n += 1) it.call(refused, true);
    const stranger = { ...refused, by: null, status: 401, reason: 'no bearer' };
    for (let n = 1; n <= 30_000; n += 1) it.call(stranger, false);
    const reasons = () => it.noted().map((entry) => (entry as { reason: unknown }).reason);
    expect(reasons()).toEqual([...Array(10).fill('no bearer'), ...Array(40).fill('amount')]);
    expect(it.since(0, 1_000)).toMatchObject({ lost: 0, next: 240 });
    await clock.advance(1_000);
    for (let n = 1; n <= 3; n += 1) it.call(stranger, false);
    expect(it.since(0, 1_000)).toMatchObject({ lost: 0, next: 241 });
  });

  it.each([
    ['', null],
    ['{"checkSum":"0f0f","amount":"1"}', { checkSum: '***', amount: '1' }],
    [
      '{"a":[{"access_token":"t","Password":"p"}],"secretKey":{"b":1}}',
      { a: [{ access_token: '***', Password: '***' }], secretKey: '***' },
    ],
    ['{"checkSum":"0f0f","amount":', '{"checkSum":***,"amount":'],
    ['{"password":"a\\"b', '{"password":***'],
    [`{"checkSun":"${MD5}","checksumm":"${MD5}","chekSum":"0f","sum":"${MD5}","orderId":"${MD5}"}`, MISSPELT],
    [`{"orderId":"${JWT}","apiKey":"k","monkeys":2}`, { orderId: '***', apiKey: '***', monkeys: 2 }],
    [`{"chksm":"${MD5}","a":1,`, '{"chksm":"***","a":1,'],
    [`{'password': 'it is mine', 'apiKey': k1 k2, "amount": 5`, `{'password': ***, 'apiKey': ***, "amount": 5`],
    ['{"token" "abc def" "secret": ["x", "y"], "b":1', '{"token" *** "secret": ***, "b":1'],
    [`Bearer ${JWT} {`, 'Bearer ***'],
    [`{"x":"${JWT}"`, '{"x":"***"'],
    ['username=x&password=y&z=1', 'username=x&password=***&z=1'],
    ['"a text"', 'a text'],
    [`${'['.repeat(20)}{"token":"t"}${']'.repeat(20)}`, `${'['.repeat(20)}{"token":***}${']'.repeat(20)}`],
  ])('tells %s without its secrets', (text, told) => {
    expect(withoutSecrets(text)).toEqual(told);
  });
});
