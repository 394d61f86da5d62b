import { request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SharedBudgets, type SharedBudgetsDeps } from '../../src/gateway/cluster/login-budgets.ts';
import type { WrongLogins } from '../../src/gateway/cluster/news.ts';
import { shardOf } from '../../src/gateway/common/shard.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { PARTNER, startMembers, type TestMember, tokenAt } from './members.ts';

const MEMBERS = 3;
const SHARDS = 16;
/** Attempts under way; those at a member that has not heard of the newest ones yet are more than one gateway would take. */
const AT_ONCE = 24;
/** One address has so many wrong logins at once at a gateway alone, and one more each 2 s. */
const ADDRESS_MAX = 30;
const ADDRESS_FORGET_MS = 2_000;
/** One user has so many, from wherever. */
const USER_MAX = 120;
const USER_FORGET_MS = 500;

/** How many of these logins were answered as wrong, not as too many. */
async function guesses(attempts: readonly (() => Promise<number>)[], atOnce: number): Promise<number> {
  let [wrong, unchecked] = [0, 0];
  const left = [...attempts];
  const work = async () => {
    for (let attempt = left.pop(); attempt !== undefined; attempt = left.pop()) {
      const status = await attempt();
      // 502: on a busy machine the member of the name's shard was out of reach, so nobody checked the password.
      expect([401, 429, 502]).toContain(status);
      if (status === 401) wrong += 1;
      if (status === 502) unchecked += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  expect(unchecked).toBeLessThan(attempts.length / 4);
  return wrong;
}

/** The status of a login from this address of loopback. */
function loginFrom(localAddress: string, { baseUrl }: TestMember, username: string, password: string): Promise<number> {
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

describe.skipIf(missing)(`guesses at a cluster${note}`, () => {
  const server = postgresServer();

  it('SHA-7 an attacker who spreads over members and shards gets no more guesses than at one gateway, but for those in progress', async () => {
    const { members } = await startMembers({
      databaseUrl: await server().database(),
      members: MEMBERS,
      shards: SHARDS,
    });
    const at = (n: number) => members[n % MEMBERS] as TestMember;
    // Each name has its shard: together they reach all of them.
    const names = Array.from({ length: 200 }, (_, n) => `guess${n}`);
    expect(new Set(names.map((it) => shardOf(it, SHARDS))).size).toBe(SHARDS);
    const beganMs = performance.now();
    const ofAddress = await guesses(
      names.map((username, n) => async () => (await tokenAt(at(n), { username, password: 'x' })).status),
      AT_ONCE,
    );
    const forgotten = (ms: number) => Math.ceil((performance.now() - beganMs) / ms);
    expect(ofAddress).toBeGreaterThanOrEqual(ADDRESS_MAX / 2);
    expect(ofAddress).toBeLessThanOrEqual(ADDRESS_MAX + MEMBERS - 1 + AT_ONCE + forgotten(ADDRESS_FORGET_MS));
    // A member that answers now refuses what others have counted.
    const last = async () => (await tokenAt(at(1), { username: 'guess-last', password: 'x' })).status;
    expect(await eventually('an answer of its shard', async () => [await last()].find((it) => it !== 502))).toBe(429);

    const userBeganMs = performance.now();
    const ofUser = await guesses(
      Array.from(
        { length: 300 },
        (_, n) => () => loginFrom(`127.0.1.${(n % 20) + 1}`, at(n), PARTNER.username, `x${n}`),
      ),
      AT_ONCE,
    );
    const userForgotten = Math.ceil((performance.now() - userBeganMs) / USER_FORGET_MS);
    expect(ofUser).toBeLessThanOrEqual(USER_MAX + MEMBERS - 1 + AT_ONCE + userForgotten);
    expect(ofUser).toBeGreaterThanOrEqual(USER_MAX / 2);
  });
});

describe('shared budgets of wrong logins', () => {
  /** Members whose news arrive when the test says so. */
  function open(count: number, change: Partial<SharedBudgetsDeps> = {}) {
    const clock = new VirtualClock();
    const { log, lines } = keptLog();
    const told: WrongLogins[] = [];
    const budgets = Array.from({ length: count }, (_, i) => {
      const deps = { clock, log, member: `m${i}`, members: () => count };
      return new SharedBudgets({ ...deps, tell: async (it) => void told.push(it), ...change });
    });
    onTestFinished(() => Promise.all(budgets.map((it) => it.close())).then(() => undefined));
    const deliver = () => {
      for (const it of told.splice(0)) for (const budget of budgets) budget.heard(it);
    };
    const guess = (at: SharedBudgets) => {
      if (at.addresses.waitMs('a', clock.monotonicMs()) > 0) return false;
      at.addresses.add('a', clock.monotonicMs());
      return true;
    };
    return { clock, lines, told, budgets, deliver, guess };
  }
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  it.each([1, 2, 3, 7, 40])(
    'SHA-7 %i members together have one budget of wrong logins, informed or not',
    async (count) => {
      const { budgets, guess, deliver } = open(count);
      let right = 0;
      for (let round = 0; round < 50; round += 1) {
        for (const it of budgets) if (guess(it)) right += 1;
        if (round % 7 === 6) {
          await settled();
          deliver();
        }
      }
      expect(right).toBeGreaterThanOrEqual(Math.min(ADDRESS_MAX, count));
      expect(right).toBeLessThanOrEqual(ADDRESS_MAX + count - 1);
      await settled();
      deliver();
      for (const it of budgets) expect(guess(it)).toBe(false);
    },
  );

  it('a shared budget counts a failure that never came back once, after a while', async () => {
    const { clock, budgets, guess, told } = open(3);
    const [first] = budgets as [SharedBudgets];
    for (let n = 0; n < 10; n += 1) expect(guess(first)).toBe(true);
    expect(guess(first)).toBe(false);
    await settled();
    told.length = 0;
    await clock.advance(10_000);
    // 10 are counted, 5 of them forgotten.
    for (let n = 0; n < 9; n += 1) expect(guess(first), String(n)).toBe(true);
  });

  it('a shared budget repeats what the database has not stored, in parts that it can store', async () => {
    const told: WrongLogins[] = [];
    let isAway = true;
    const tell = async (it: WrongLogins) => {
      if (isAway) throw new Error('away');
      told.push(it);
    };
    const { clock, budgets, lines } = open(1, { tell });
    const [only] = budgets as [SharedBudgets];
    const names = Array.from({ length: 500 }, (_, n) => `2001:db8:0:${n}::/64`);
    for (const name of names) only.addresses.add(name, clock.monotonicMs());
    await settled();
    expect(lines.filter((it) => it.event === 'wrong-logins-not-sent')).toHaveLength(1);
    isAway = false;
    await clock.advance(1_000);
    await settled();
    expect(told.flatMap((it) => it.addresses ?? [])).toEqual(names);
    for (const it of told) expect(JSON.stringify(it).length).toBeLessThan(8_000);
  });
});
