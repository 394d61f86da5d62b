import { request } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openKnownLogins } from '../../src/gateway/common/known-logins.ts';
import type { Place } from '../../src/gateway/common/place.ts';
import { KNOWN_LOGINS_MAX } from '../../src/gateway/store/repositories/credentials.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { opened } from '../store/rows.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';
import { BOX1, BOX2, type TestGateway, type TestOptions, testGateway } from './harness.ts';
import { loginAs } from './mqtt-login.ts';
import { SharedPlaces } from './shared-places.ts';
import { worldOf } from './stage-records.ts';

const HONEST = '127.0.0.1';

/** The status that a partner's login is answered with, from an address of this machine of its own. */
function login(gateway: TestGateway, from: string, user: string, password: string): Promise<number | undefined> {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return new Promise((resolve, reject) => {
    const url = `${gateway.baseUrl}/api/token_generate`;
    request(url, { method: 'POST', headers: { authorization }, localAddress: from }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode));
    })
      .on('error', reject)
      .end();
  });
}

const codeOf = (entering: Promise<unknown>) =>
  entering.then(
    () => 0,
    (error: { code?: number }) => error.code,
  );

async function guess(gateway: TestGateway, count: number, from: string, user: string): Promise<void> {
  for (let n = 0; n < count; n += 1) expect([401, 429]).toContain(await login(gateway, from, user, 'wrong'));
}

const digests = (n: number, name = 'digest') => Array.from({ length: n }, (_, i) => `${name} ${i}`);

async function openedKnown(store: Store, place?: Place) {
  const clock = new VirtualClock();
  const { log, lines } = keptLog();
  const { known, close } = await openKnownLogins(worldOf({ clock, log, ...(place && { place }) }), store);
  onTestFinished(close);
  const warnings = () => lines.filter((it) => it.event === 'known-logins-not-stored').map((it) => it.reason);
  return { clock, known, close, warnings };
}

describe.each(ENGINES)('who has logged in before, in $name', ({ missing, places }) => {
  const place = places();
  const onStore = async (): Promise<TestOptions> => {
    const { dataDir, databaseUrl } = await place();
    return { dataDir, clock: new VirtualClock(), config: { databaseUrl } };
  };

  describe.skipIf(missing)('is known after a restart of the gateway', () => {
    it('TOK-6 THR-2 a known caller is not shut out by guesses from its own address, over HTTP and MQTT', async () => {
      const options = await onStore();
      const first = await testGateway(options);
      expect(await login(first, HONEST, 'demo', 'demo-secret')).toBe(200);
      expect(await codeOf(loginAs(first, BOX1))).toBe(0);
      await first.close();

      const second = await testGateway(options);
      await guess(second, 20, HONEST, 'demo');
      await guess(second, 40, HONEST, 'nobody');
      expect(await login(second, HONEST, 'demo', 'demo-secret')).toBe(200);
      expect(await codeOf(loginAs(second, BOX1))).toBe(0);
      expect(await login(second, HONEST, 'other', 'other-secret')).toBe(429);
      expect(await codeOf(loginAs(second, { ...BOX2, secret: 'another' }))).toBe(3);
    });

    it('TOK-6 THR-2 a known caller is not shut out by guesses at its user from elsewhere', async () => {
      const options = await onStore();
      const first = await testGateway(options);
      expect(await login(first, HONEST, 'demo', 'demo-secret')).toBe(200);
      await first.close();

      const second = await testGateway(options);
      for (const from of ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5']) await guess(second, 30, from, 'demo');
      expect(await login(second, HONEST, 'demo', 'demo-secret')).toBe(200);
      expect(await login(second, '127.0.0.9', 'demo', 'demo-secret')).toBe(429);
    });
  });

  describe.skipIf(missing)('stands in the store', () => {
    it('known logins are stored as digests under a key of that store, which reveal no name and no address', async () => {
      const kept = [];
      for (const store of [await opened(await place()), await opened(await place())]) {
        const { known } = await openedKnown(store);
        known.add(known.digestOf('user', '192.0.2.1'));
        kept.push(await eventually('the write', async () => (await store.knownLogins.all())[0]));
      }
      expect(kept.join('')).toMatch(/^[\w+/]{43}=[\w+/]{43}=$/);
      expect(new Set(kept).size).toBe(2);
    });

    it('known logins are stored within a limit, the newest of them, each once', async () => {
      const store = await opened(await place());
      await store.knownLogins.add(['a', 'b', 'c']);
      await store.knownLogins.add(['a']);
      expect(await store.knownLogins.all()).toEqual(['b', 'c', 'a']);
      await store.knownLogins.add(digests(KNOWN_LOGINS_MAX - 1));
      expect(await store.knownLogins.all()).toEqual(['a', ...digests(KNOWN_LOGINS_MAX - 1)]);
    });
  });
});

describe('new logins are written', () => {
  const sqlite = ENGINES[0]?.places();
  const storeOf = async () => opened((await sqlite?.()) ?? { dataDir: '' });

  it('new logins are written at once, and then once every 3 s at most, a few at a time; the rest at the end', async () => {
    const store = await storeOf();
    const { clock, known, close } = await openedKnown(store);
    const add = vi.spyOn(store.knownLogins, 'add');
    for (const digest of digests(701)) known.add(digest);
    const count = async () => (await store.knownLogins.all()).length;
    expect(add).toHaveBeenCalledTimes(1);
    await eventually('the first', async () => (await count()) === 1);
    for (const expected of [201, 401]) {
      await eventually('the wait', () => clock.sleeping()[0] === 3000);
      expect(await count()).toBe(expected - 200);
      await clock.advance(3000);
      await eventually('the next', async () => (await count()) === expected);
    }
    for (const digest of digests(701)) known.add(digest);
    await close();
    expect(await store.knownLogins.all()).toEqual(digests(701));
    expect(add).toHaveBeenCalledTimes(5);
  });

  it('new logins are written once the disk works again, which is logged once, and no login waits for it', async () => {
    const store = await storeOf();
    const { clock, known, warnings } = await openedKnown(store);
    const add = vi.spyOn(store.knownLogins, 'add').mockRejectedValue(new Error('disk is full'));
    known.add('a');
    known.add('b');
    expect([known.has('a'), known.has('b')]).toEqual([true, true]);
    for (const count of [1, 2, 3]) {
      await eventually('the wait', () => add.mock.calls.length === count && clock.sleeping()[0] === 3000);
      await clock.advance(3000);
    }
    expect(warnings()).toHaveLength(1);
    expect(warnings()[0]).toContain('disk is full');
    add.mockRestore();
    await clock.advance(3000);
    await eventually('both', async () => (await store.knownLogins.all()).join() === 'a,b');
  });

  it('TOK-6 a login at one gateway is known at the others of its database, without a restart', async () => {
    const store = await storeOf();
    const places = new SharedPlaces();
    const [a, b] = [await openedKnown(store, places.join('a')), await openedKnown(store, places.join('b'))];
    const digest = a.known.digestOf('user', '192.0.2.1');
    a.known.add(digest);
    await eventually('the write', async () => (await store.knownLogins.all()).length === 1);
    expect(b.known.has(digest)).toBe(false);
    const add = vi.spyOn(store.knownLogins, 'add');
    await b.clock.advance(1_000);
    await eventually('the login', () => b.known.has(digest));
    await b.close();
    expect(add).not.toHaveBeenCalled();
  });

  it('closes without the new logins if the disk still fails', async () => {
    const store = await storeOf();
    const { known, close } = await openedKnown(store);
    vi.spyOn(store.knownLogins, 'add').mockRejectedValue(new Error('disk is full'));
    for (const digest of digests(700)) known.add(digest);
    await close();
    expect(await store.knownLogins.all()).toEqual([]);
  });
});
