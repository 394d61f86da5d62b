import { describe, expect, it, vi } from 'vitest';
import { isFull, waitMsOf } from '../../src/gateway/access/enrolment-requests.ts';
import {
  EnrolmentRequestStore,
  REMEMBERED_MS,
  type RequestCounts,
} from '../../src/gateway/store/repositories/enrolment-requests.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { opened } from '../store/rows.ts';
import { AskingBox, askFrom, loginStatus } from '../support/asking-box.ts';
import { temporaryFolder } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';
import { type TestGateway, type TestOptions, testGateway } from './harness.ts';

const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const LIFETIME_MS = 600_000;
/** A network takes a 64th of what is free, so that it takes far more of them than 64 to fill it. */
const NETWORKS_AT_LEAST = 300;

const gatewayOf = (options: TestOptions = {}) => testGateway({ ...options, config: { boxes: [BOX] } });

async function acceptCode(gateway: TestGateway, code: string) {
  const url = `${gateway.origin}/_mock/enrolments/${BOX.terminalCode}/accept`;
  const { status, body } = await askFrom('127.0.0.1', url, 'POST', { code });
  return [status, body.message];
}

/** A request as it is kept. */
const row = (id: string, asked_at_ms: number) => ({
  ...{ id, terminal_code: BOX.terminalCode, serial_number: BOX.serialNumber, public_key: `key-${id}` },
  ...{ proof: `proof-${id}`, address: '192.0.2.1', network: '192.0.2.1', run: 'another' },
  ...{ asked_at_ms, until_ms: asked_at_ms + LIFETIME_MS },
});
const always = () => 0;
const nobody = () => false;

const hasSecret = async (gateway: TestGateway) =>
  (await gateway.mock<{ hasSecret: boolean }[]>('/boxes'))[0]?.hasSecret ?? false;

/** Asks from each of these addresses until it is refused, or so often; how many were taken. */
async function crowd(gateway: TestGateway, addresses: string[], each: number): Promise<number> {
  let taken = 0;
  const askAll = async (address: string) => {
    for (let i = 0; i < each; i += 1) {
      const { status } = await new AskingBox(gateway.origin, BOX, address).ask();
      if (status !== 201) return;
      taken += 1;
    }
  };
  const left = [...addresses];
  const work = async () => {
    for (let address = left.shift(); address !== undefined; address = left.shift()) await askAll(address);
  };
  await Promise.all(Array.from({ length: 16 }, work));
  return taken;
}

const loopbacks = (count: number) => Array.from({ length: count }, (_, i) => `127.1.${i >> 7}.${1 + (i & 127)}`);

describe('many who ask in the name of one box', () => {
  it('ENR-7 THR-24 accepts a box by its code while 16 addresses flood the gateway with requests in its name', async () => {
    const gateway = await gatewayOf();
    expect(await crowd(gateway, loopbacks(16), 64)).toBeGreaterThan(700);
    const box = new AskingBox(gateway.origin, BOX);
    expect((await box.ask()).status).toBe(201);
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await box.agree()) ?? '')).toBe(200);
  });

  it('ENR-7 THR-24 refuses every code of a box whose request memory is full, until others can ask again', async () => {
    const dataDir = await temporaryFolder();
    const { enrolmentRequests, close } = await opened({ dataDir });
    for (let i = 0; i < 4_095; i += 1) await enrolmentRequests.add(row(`${i}`, Date.now()), nobody, always);
    await close();
    const gateway = await gatewayOf({ dataDir });
    const thief = new AskingBox(gateway.origin, BOX, '127.0.0.2');
    expect((await thief.ask()).status).toBe(201);
    const box = new AskingBox(gateway.origin, BOX, '127.0.0.1', thief.code);
    expect((await box.ask()).status).toBe(429);
    expect(await acceptCode(gateway, thief.code)).toEqual([400, 'CODE_SHARED']);
    expect(gateway.log.find((it) => it.code === 'CODE_SHARED')?.reason).toContain(
      'this box has 4096, and more were refused',
    );
    expect([await thief.state(), await hasSecret(gateway)]).toEqual([{ state: 'pending' }, false]);
  });

  it('ENR-7 THR-24 requests in the name of a box are accepted less the more there are, and none is forgotten before its time', async () => {
    const { fill, waits, fullness } = filling();
    expect(fill('VVB000001', '10.0.0.1')).toBe(64);
    expect(waits('VVB000001', '10.0.0.1')).toBe(REMEMBERED_MS);
    let networks = 1;
    while (fill('VVB000001', `10.1.${networks >> 8}.${networks & 255}`) > 0) networks += 1;
    expect(networks).toBeGreaterThan(NETWORKS_AT_LEAST);
    expect([fullness('VVB000001'), fullness('VVB000002')]).toEqual([
      [true, 4_096],
      [false, 0],
    ]);
    expect([waits('VVB000001', '192.0.2.1'), waits('VVB000002', '192.0.2.1')]).toEqual([REMEMBERED_MS, 0]);
  });

  it('ENR-7 THR-24 always accepts a box with few requests, although others fill their shares of the memory', async () => {
    const { fill, waits, fullness } = filling();
    const boxes = Array.from({ length: 64 }, (_, i) => `VVB0001${10 + i}`);
    // 16 addresses ask for every box, as often as they are let.
    for (let n = 0; n < 16; n += 1) for (const box of boxes) fill(box, `10.0.0.${n}`);
    expect(waits('VVB000110', '192.0.2.1')).toBe(0);
    let networks = 16;
    const next = () => boxes.reduce((sum, box) => sum + fill(box, `10.1.${networks >> 8}.${networks & 255}`), 0);
    while (next() > 0) networks += 1;
    expect(networks).toBeGreaterThan(NETWORKS_AT_LEAST);
    expect([fullness('VVB000110')[0], fullness('VVB000002')[0]]).toEqual([true, false]);
    for (let i = 0; i < 8; i += 1) expect(fill('VVB000002', `192.0.2.${i}`, 1)).toBe(1);
    expect(waits('VVB000002', '192.0.2.9')).toBe(REMEMBERED_MS);
  });
});

/** Requests of nobody in particular, counted as the store counts them, and taken while there is room. */
function filling() {
  const counts = new Map<string, number>();
  const count = (of: string) => counts.get(of) ?? 0;
  const countsOf = (terminalCode: string, network: string): RequestCounts => ({
    ofBox: count(terminalCode),
    ofBoxFromNetwork: count(`${terminalCode} ${network}`),
    ofNetwork: count(network),
    all: count('all'),
    oldestMs: count(terminalCode) === 0 ? undefined : 0,
  });
  const waits = (terminalCode: string, network: string) => waitMsOf(countsOf(terminalCode, network), 0);
  /** How many were taken. */
  const fill = (terminalCode: string, network: string, atMost = Infinity) => {
    let taken = 0;
    while (taken < atMost && waits(terminalCode, network) === 0) {
      for (const of of [terminalCode, `${terminalCode} ${network}`, network, 'all']) counts.set(of, count(of) + 1);
      taken += 1;
    }
    return taken;
  };
  const fullness = (terminalCode: string) => [isFull(countsOf(terminalCode, '')), count(terminalCode)] as const;
  return { fill, waits, fullness };
}

describe('a gateway that is started anew while a box shows its code', () => {
  it('ENR-7 THR-24 a gateway that restarts gives the box to nobody else who knows its code, however often it is started', async () => {
    const dataDir = await temporaryFolder();
    const first = await gatewayOf({ dataDir });
    const box = new AskingBox(first.origin, BOX);
    await box.ask();
    await first.close();
    await (await gatewayOf({ dataDir })).close();
    const again = await gatewayOf({ dataDir });
    const thief = new AskingBox(again.origin, BOX, '127.0.0.2', box.code);
    expect((await thief.ask()).status).toBe(201);
    expect(await acceptCode(again, box.code)).toEqual([400, 'CODE_SHARED']);
    expect([await thief.state(), await hasSecret(again)]).toEqual([{ state: 'rejected' }, false]);
    const next = new AskingBox(again.origin, BOX);
    await next.ask();
    expect(await acceptCode(again, next.code)).toEqual([200, '']);
  });

  it('ENR-7 a gateway that restarts knows no request of the run before, nor its code', async () => {
    const dataDir = await temporaryFolder();
    const first = await gatewayOf({ dataDir });
    const box = new AskingBox(first.origin, BOX);
    await box.ask();
    await first.close();
    const again = await gatewayOf({ dataDir });
    const late = new AskingBox(again.origin, BOX);
    late.id = box.id;
    expect([await late.state(), await again.mock('/enrolments')]).toEqual([undefined, []]);
    expect(await acceptCode(again, box.code)).toEqual([400, 'WRONG_CODE']);
  });

  it('ENR-7 a gateway accepts no request that its disk does not store', async () => {
    const gateway = await gatewayOf();
    const keep = vi.spyOn(EnrolmentRequestStore.prototype, 'add').mockRejectedValueOnce(new Error('disk is full'));
    const box = new AskingBox(gateway.origin, BOX);
    expect((await box.ask()).status).toBe(500);
    expect(await acceptCode(gateway, box.code)).toEqual([400, 'WRONG_CODE']);
    expect((await box.ask()).status).toBe(201);
    expect(keep).toHaveBeenCalledTimes(2);
    keep.mockRestore();
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
  });
});

for (const engine of ENGINES) {
  describe.skipIf(engine.missing)(`requests to be enrolled on ${engine.name}`, () => {
    const place = engine.places();
    const all = async ({ enrolmentRequests }: Store, atMs: number) => {
      const { requests } = await enrolmentRequests.decide(BOX.terminalCode, atMs, (requests) => ({
        change: { kind: 'none' },
        requests: requests.map((it) => it.id),
      }));
      return requests;
    };

    it('ENR-7 requests to enrol are kept until they are old, and counted by box and network', async () => {
      const store = await opened(await place());
      const { enrolmentRequests } = store;
      const found: RequestCounts[] = [];
      const add = (id: string, atMs: number, change: object = {}) =>
        enrolmentRequests.add({ ...row(id, atMs), ...change }, nobody, (counts) => {
          found.push(counts);
          return 0;
        });
      await add('a', 1_000);
      await add('b', 2_000, { network: '192.0.2.2' });
      await add('c', 3_000, { terminal_code: 'VVB000002' });
      await add('d', 3_000);
      expect(found.at(-1)).toEqual({ ofBox: 2, ofBoxFromNetwork: 1, ofNetwork: 2, all: 3, oldestMs: 1_000 });
      expect(await all(store, 3_000)).toEqual(['a', 'b', 'd']);
      expect(await all(store, 1_000 + REMEMBERED_MS)).toEqual(['b', 'd']);
      await add('e', 2_000 + REMEMBERED_MS);
      expect(found.at(-1)).toMatchObject({ ofBox: 1, oldestMs: 3_000 });
      // Somebody has set the clock back.
      await add('f', 1);
      expect(found.at(-1)).toMatchObject({ all: 2 });
    });

    it('ENR-7 the same request keeps its id while it has not expired, and one without room is not stored', async () => {
      const store = await opened(await place());
      const again = { public_key: 'key-a', proof: 'proof-a' };
      const add = (id: string, isLive: () => boolean, waitMs: () => number, change: object = {}) =>
        store.enrolmentRequests.add({ ...row(id, 1_000), ...change }, isLive, waitMs);
      expect(await add('a', nobody, always)).toEqual({ id: 'a', isNew: true });
      expect(
        await add(
          'b',
          () => true,
          () => 9,
          again,
        ),
      ).toEqual({ id: 'a', isNew: false });
      expect(await add('c', nobody, () => 9, again)).toEqual({ waitMs: 9 });
      expect(await all(store, 1_000)).toEqual(['a']);
    });
  });
}
