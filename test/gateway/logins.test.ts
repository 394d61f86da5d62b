import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { type LoginAttempt, Logins } from '../../src/gateway/common/logins.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { BOX1, type TestGateway, testGateway } from './harness.ts';
import { RIGHT, WRONG } from './logins-fixture.ts';

const taken = { ok: false, retryAfterSeconds: 0 };

/** How many wrong logins in a row are compared at all. */
function failuresTaken(logins: Logins, attempt: LoginAttempt, address: string): number {
  for (let count = 0; count < 1000; count += 1) {
    const verdict = logins.check(attempt, address);
    if (verdict.ok || verdict.retryAfterSeconds > 0) return count;
  }
  return 1000;
}

describe('wrong logins', () => {
  it('TOK-6 THR-2 wrong logins are checked thirty times from one address, then one each two seconds', async () => {
    const clock = new VirtualClock();
    const logins = new Logins(clock);
    expect(failuresTaken(logins, WRONG, '192.0.2.1')).toBe(30);
    expect(logins.check(WRONG, '192.0.2.1')).toEqual({ ok: false, retryAfterSeconds: 2 });
    expect(logins.check(RIGHT, '192.0.2.1')).toEqual({ ok: false, retryAfterSeconds: 2 });
    await clock.advance(2000);
    expect(logins.check(WRONG, '192.0.2.1')).toEqual(taken);
    expect(logins.check(WRONG, '192.0.2.1')).toMatchObject({ retryAfterSeconds: 2 });
    await clock.advance(60_000);
    expect(failuresTaken(logins, WRONG, '192.0.2.1')).toBe(30);
  });

  it('ten wrong logins hold up nobody', () => {
    const logins = new Logins(new VirtualClock());
    for (let i = 0; i < 10; i += 1) expect(logins.check(WRONG, '192.0.2.1')).toEqual(taken);
    expect(logins.check(RIGHT, '192.0.2.1')).toEqual({ ok: true });
  });

  it('TOK-6 THR-2 wrong logins from one address keep the right user out nowhere else', () => {
    const logins = new Logins(new VirtualClock());
    failuresTaken(logins, WRONG, '192.0.2.1');
    for (const address of ['192.0.2.2', '2001:db8::1']) expect(logins.check(RIGHT, address)).toEqual({ ok: true });
  });

  it('TOK-6 THR-2 wrong logins of one user are checked 120 times from many addresses, but keep out nobody who was in before', async () => {
    const clock = new VirtualClock();
    const logins = new Logins(clock);
    expect(logins.check(RIGHT, '198.51.100.1')).toEqual({ ok: true });
    let count = 0;
    while (logins.check(WRONG, `192.0.2.${count}`).ok === false && count < 200) {
      if (failuresTaken(logins, WRONG, `192.0.2.${count}`) === 0) break;
      count += 1;
    }
    expect(logins.check(WRONG, '203.0.113.9')).toMatchObject({ retryAfterSeconds: 1 });
    expect(logins.check(RIGHT, '203.0.113.9')).toMatchObject({ ok: false, retryAfterSeconds: 1 });
    expect(logins.check(RIGHT, '198.51.100.1')).toEqual({ ok: true });
    expect(logins.check({ ...RIGHT, username: 'other' }, '203.0.113.9')).toEqual({ ok: true });
    await clock.advance(60_000);
    expect(logins.check(RIGHT, '203.0.113.9')).toEqual({ ok: true });
  });

  it.each([
    ['a box with a secret of 128 bits', loginOf('a secret'), false],
    ['boxes of the dialect that share a password of 128 bits', 'c0ffee5ca1ab1e0ddba11f00dfeed123', false],
    ['boxes of the dialect that share a word', 'a-word', true],
    ['a box that does not exist', undefined, false],
  ])('TOK-6 THR-31 of strangers at many addresses against %s', (_what, expected, isLockedOut) => {
    const logins = new Logins(new VirtualClock());
    const attempt: LoginAttempt = { kind: 'box', username: 'boxes', secret: 'wrong', expected };
    if (expected === undefined) attempt.isStrong = true;
    for (let from = 0; from < 10; from += 1) failuresTaken(logins, attempt, `192.0.2.${from}`);
    const right = logins.check({ ...attempt, secret: expected ?? 'x' }, '203.0.113.9');
    expect(right).toEqual(
      isLockedOut
        ? { ok: false, retryAfterSeconds: 1 }
        : { ok: expected !== undefined, ...(expected === undefined && { retryAfterSeconds: 0 }) },
    );
    expect(failuresTaken(logins, attempt, '192.0.2.1')).toBe(0);
  });

  it.each([
    ['partner', 'shop', 'Password-Of-The-Shop-0123'],
    ['box', 'VVB000001', loginOf('a secret')],
    ['admin', '', 'Admin-Token-Of-A-Test-0123'],
  ] as const)(
    'TOK-6 THR-35 beyond every limit keep out no %s with a secret of 128 bits',
    (kind, username, expected) => {
      const logins = new Logins(new VirtualClock());
      const wrong = { kind, username, secret: 'wrong', expected };
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'])
        failuresTaken(logins, wrong, address);
      expect(logins.check(wrong, '192.0.2.1')).toMatchObject({ ok: false, retryAfterSeconds: 2 });
      for (const address of ['192.0.2.1', '203.0.113.9'])
        expect(logins.check({ ...wrong, secret: expected }, address)).toEqual({ ok: true });
      // Neither do those at an address where it is known.
      expect(failuresTaken(logins, wrong, '192.0.2.1')).toBe(30);
      expect(logins.check({ ...wrong, secret: expected }, '192.0.2.1')).toEqual({ ok: true });
    },
  );

  it('TOK-6 THR-35 wrong logins keep out no box whose password happens to look like a word', () => {
    const logins = new Logins(new VirtualClock());
    const expected = `${'a'.repeat(20)}${loginOf('a secret').slice(20)}`;
    const attempt = { kind: 'box', username: 'VVB000001', isStrong: true, secret: expected, expected } as const;
    failuresTaken(logins, { ...attempt, secret: 'wrong' }, '192.0.2.1');
    expect(logins.check(attempt, '192.0.2.1')).toEqual({ ok: true });
  });

  it('TOK-6 THR-2 wrong logins of a neighbour behind the same address do not shut out who was in before; his own are limited too', () => {
    const logins = new Logins(new VirtualClock());
    expect(logins.check(RIGHT, '192.0.2.1')).toEqual({ ok: true });
    failuresTaken(logins, { ...WRONG, username: 'neighbour' }, '192.0.2.1');
    expect(logins.check(RIGHT, '192.0.2.1')).toEqual({ ok: true });
    expect(failuresTaken(logins, WRONG, '192.0.2.1')).toBe(30);
  });

  it('TOK-6 THR-3 wrong logins are limited alike for users that there are and those that there are not', () => {
    const known = new Logins(new VirtualClock());
    const unknown = new Logins(new VirtualClock());
    const nobody = { ...WRONG, username: 'nobody', expected: undefined };
    for (let i = 0; i < 40; i += 1) {
      expect(known.check(WRONG, '192.0.2.1')).toEqual(unknown.check(nobody, '192.0.2.1'));
    }
    expect(new Logins(new VirtualClock()).check({ ...nobody, secret: '' }, 'x')).toEqual(taken);
  });

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
    ['2001:0db8:1:2::1', '2001:db8:1:2::1', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['::1', '::2', true],
    ['::ffff:192.0.2.1', '192.0.2.1', true],
    ['fe80::1%eth0', 'fe80::2', true],
    ['192.0.2.1', '192.0.2.2', false],
  ])('count %s and %s as one network: %s', (first, second, same) => {
    const logins = new Logins(new VirtualClock());
    failuresTaken(logins, WRONG, first);
    expect(failuresTaken(logins, WRONG, second) === 0).toBe(same);
  });

  it('logins that were never tried count against nobody', () => {
    const logins = new Logins(new VirtualClock());
    expect(failuresTaken(logins, { ...WRONG, secret: undefined }, '192.0.2.1')).toBe(1000);
    expect(logins.check(RIGHT, '192.0.2.1')).toEqual({ ok: true });
  });

  it('TOK-6 THR-2 wrong logins of one user stay counted while somebody fails under thousands of other names from many networks', () => {
    const logins = new Logins(new VirtualClock());
    for (let i = 0; i < 120; i += 1) logins.check(WRONG, `192.0.2.${i}`);
    for (let i = 0; i < 25_000; i += 1) {
      const address = `2001:db8:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::1`;
      logins.check({ ...WRONG, username: `other-${i}` }, address);
    }
    expect(logins.check(RIGHT, '203.0.113.9')).toMatchObject({ ok: false, retryAfterSeconds: 1 });
  });
});

/** A request from an address of this machine of its own, as from another machine. */
function ask(gateway: TestGateway, from: string, path: string, authorization: string, method = 'POST') {
  return new Promise<{ status: number | undefined; after: string | undefined; body: string }>((resolve, reject) => {
    const headers = { authorization, 'paybox-session': '0a3c1d52-8d6b-4b7e-8f0e-5d2f1c7b9a02' };
    const asking = request(`${gateway.origin}${path}`, { method, headers, localAddress: from }, async (answer) => {
      resolve({ status: answer.statusCode, after: answer.headers['retry-after'], body: await text(answer) });
    });
    asking.on('error', reject);
    asking.end();
  });
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`;

it.each([
  ['a token', '/vqr/api/token_generate', basic('demo', 'x'), basic('demo', 'demo-secret'), 200],
  [
    "a box's message",
    '/box/v1/messages',
    basic(BOX1.terminalCode, 'x'),
    basic(BOX1.terminalCode, loginOf(BOX1.secret)),
    409,
  ],
  ['the admin token', '/_mock/orders/none/pay', 'Bearer x', 'Bearer A-long-admin-token-of-a-test', 404],
])(
  'TOK-6 THR-2 guesses at %s are answered 429 with Retry-After, while another address still gets in',
  async (...row) => {
    const [, path, wrong, right, expected] = row;
    const gateway = await testGateway({
      config: { adminToken: 'A-long-admin-token-of-a-test', mqtt: null },
      clock: new VirtualClock(),
    });
    const statuses: (number | undefined)[] = [];
    for (let i = 0; i < 31; i += 1) statuses.push((await ask(gateway, '127.0.0.2', path, wrong)).status);
    expect(statuses).toEqual([...Array<number>(30).fill(401), 429]);
    const limited = { status: 429, after: '2', body: '{"status":"FAILED","message":"E74"}' };
    expect(await ask(gateway, '127.0.0.2', path, wrong)).toEqual(limited);
    // Nobody guesses 128 bits, and a box or an admin may share an address with strangers. The partner has a word.
    const isStrong = !path.startsWith('/vqr');
    const here = await ask(gateway, '127.0.0.2', path, right);
    expect(here).toEqual(isStrong ? expect.objectContaining({ status: expected }) : limited);
    expect((await ask(gateway, '127.0.0.3', path, right)).status).toBe(expected);
    const refused = gateway.log.filter((it) => it.status === 429);
    expect(refused.map((it) => it.address)).toEqual(Array(isStrong ? 2 : 3).fill('127.0.0.2'));
  },
);
