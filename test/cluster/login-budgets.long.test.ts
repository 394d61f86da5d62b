import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { SharedBudgets } from '../../src/gateway/cluster/login-budgets.ts';
import type { WrongLogin } from '../../src/gateway/cluster/said.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { PARTNER, startGateways, type TestGateway, tokenAt } from './gateways.ts';

const GATEWAYS = 3;
/** Attempts under way; those at a gateway that has not heard of the newest ones yet are more than one gateway would take. */
const AT_ONCE = 24;
/** One address has so many wrong logins at once at a gateway alone, and one more each 2 s. */
const ADDRESS_MAX = 30;
const ADDRESS_FORGET_MS = 2_000;
/** One user has so many, from wherever. */
const USER_MAX = 120;
const USER_FORGET_MS = 500;

/** How many of these logins were answered as wrong, not as too many. */
async function guesses(attempts: readonly (() => Promise<number>)[], atOnce: number): Promise<number> {
  let wrong = 0;
  const left = [...attempts];
  const work = async () => {
    for (let attempt = left.pop(); attempt !== undefined; attempt = left.pop()) {
      const status = await attempt();
      expect([401, 429]).toContain(status);
      if (status === 401) wrong += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return wrong;
}

/** The status of a login from this address of loopback. */
function loginFrom(
  localAddress: string,
  { baseUrl }: TestGateway,
  username: string,
  password: string,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
  const asked = request(`${baseUrl}/api/token_generate`, { method: 'POST', headers, localAddress, agent: false });
  asked.once('error', reject);
  asked.once('response', (answer) => {
    answer.resume();
    resolve(answer.statusCode ?? 0);
  });
  asked.end();
  return promise;
}

describe.skipIf(missing)(`guesses at gateways of one database${note}`, () => {
  const server = postgresServer();

  it('SHA-7 an attacker who spreads over gateways gets no more guesses than at one gateway, but for those in progress', async () => {
    const { gateways } = await startGateways({ databaseUrl: await server().database(), gateways: GATEWAYS });
    const at = (n: number) => gateways[n % GATEWAYS] as TestGateway;
    const names = Array.from({ length: 200 }, (_, n) => `guess${n}`);
    const beganMs = performance.now();
    const ofAddress = await guesses(
      names.map((username, n) => async () => (await tokenAt(at(n), { username, password: 'x' })).status),
      AT_ONCE,
    );
    const forgotten = (ms: number) => Math.ceil((performance.now() - beganMs) / ms);
    expect(ofAddress).toBeGreaterThanOrEqual(ADDRESS_MAX / 2);
    expect(ofAddress).toBeLessThanOrEqual(ADDRESS_MAX + GATEWAYS - 1 + AT_ONCE + forgotten(ADDRESS_FORGET_MS));
    // A gateway that answers now refuses what others have counted.
    expect((await tokenAt(at(1), { username: 'guess-last', password: 'x' })).status).toBe(429);

    const userBeganMs = performance.now();
    const ofUser = await guesses(
      Array.from(
        { length: 300 },
        (_, n) => () => loginFrom(`127.0.1.${(n % 20) + 1}`, at(n), PARTNER.username, `x${n}`),
      ),
      AT_ONCE,
    );
    const userForgotten = Math.ceil((performance.now() - userBeganMs) / USER_FORGET_MS);
    expect(ofUser).toBeLessThanOrEqual(USER_MAX + GATEWAYS - 1 + AT_ONCE + userForgotten);
    expect(ofUser).toBeGreaterThanOrEqual(USER_MAX / 2);
  });
});

describe('shared budgets of wrong logins', () => {
  /** Gateways that hear of each other when the test says so. */
  function open(count: number) {
    const clock = new VirtualClock();
    const told: WrongLogin[] = [];
    const budgets = Array.from({ length: count }, (_, i) => {
      return new SharedBudgets({ clock, run: `r${i}`, gateways: () => count, tell: (it) => void told.push(it) });
    });
    const deliver = () => {
      for (const it of told.splice(0)) for (const budget of budgets) budget.heard(it);
    };
    const guess = (at: SharedBudgets) => {
      if (at.addresses.waitMs('a', clock.monotonicMs()) > 0) return false;
      at.addresses.add('a', clock.monotonicMs());
      return true;
    };
    return { clock, told, budgets, deliver, guess };
  }

  it.each([1, 2, 3, 7, 40])(
    'SHA-7 %i gateways together have one budget of wrong logins, informed or not',
    async (count) => {
      const { budgets, guess, deliver } = open(count);
      let right = 0;
      for (let round = 0; round < 50; round += 1) {
        for (const it of budgets) if (guess(it)) right += 1;
        if (round % 7 === 6) deliver();
      }
      expect(right).toBeGreaterThanOrEqual(Math.min(ADDRESS_MAX, count));
      expect(right).toBeLessThanOrEqual(ADDRESS_MAX + count - 1);
      deliver();
      for (const it of budgets) expect(guess(it)).toBe(false);
    },
  );

  it('a shared budget counts a failure that never came back once, after a while', async () => {
    const { clock, budgets, guess, told } = open(3);
    const [first] = budgets as [SharedBudgets];
    for (let n = 0; n < 10; n += 1) expect(guess(first)).toBe(true);
    expect(guess(first)).toBe(false);
    told.length = 0;
    await clock.advance(10_000);
    // 10 are counted, 5 of them forgotten.
    for (let n = 0; n < 9; n += 1) expect(guess(first), String(n)).toBe(true);
  });
});
