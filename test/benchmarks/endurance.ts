import { join } from 'node:path';
import { Writable } from 'node:stream';
import { startPartnerServer } from '../../src/bench/engine/clients/partner-server.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { order, push as pushRow } from '../store/rows.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { type Fixture, withFixture } from './fixture.ts';
import { type Gateways, type Shop, shopAt, startGateways } from './gateways.ts';
import type { Inside } from './inside.ts';
import { identitiesOf, lightFleet } from './light-fleet.ts';
import { type Benchmark, type Row, rowUnder } from './row.ts';

/** The gateway knows so many boxes, of which some are there. */
const BOXES = 10_000;
const BOXES_ONLINE = 200;
const ORDERS = 100_000;
const PARTS = 5;
const AT_ONCE = 64;
/** Every so many orders one is paid. */
const PAID_EVERY = 10;
/** Orders that are older than a store keeps them. */
const OLD_ORDERS = 20_000;
const OLD_MS = 40 * 86_400_000;
const GATEWAYS = 2;
const ORDERS_OF_GATEWAYS = 4_000;
const STOP_MS_MAX = 50;
const BYTES_PER_MB = 1e6;
/** What a flat memory may grow by from the first fifth to the last. */
const FLAT = 1.1;

/** Answers that are as long as they can be. */
const PAGES = [
  '/_mock/boxes',
  '/_mock/orders?limit=500',
  '/_mock/payments?limit=500',
  '/_mock/callbacks?limit=500',
  '/_mock/wire?limit=500',
  '/_mock/calls?limit=500',
  '/admin/v1/boxes?limit=500',
  '/metrics',
  '/healthz',
] as const;
const ASKED_TIMES = 3;

/** Memory of a gateway over many orders, and the longest time for which it does nothing else, while it prunes and answers at length. */
export const endurance: Benchmark = {
  name: 'endurance',
  async run(progress, leaveOut) {
    const rows = await withFixture((fixture) => alone(fixture, progress));
    const lacks = [PROGRAMS.postgres, PROGRAMS.mosquitto].map(without);
    for (const { missing, note } of lacks) if (missing) leaveOut(`lists of a cluster${note}`);
    if (!lacks.some(({ missing }) => missing))
      rows.push(...(await withFixture((fixture) => several(fixture, progress))));
    return rows;
  },
};

async function alone(fixture: Fixture, progress: (text: string) => void): Promise<Row[]> {
  const dataDir = join(await fixture.folder(), 'data');
  progress(`${OLD_ORDERS} old orders`);
  await fill(dataDir);
  const partner = await startPartnerServer();
  const identities = identitiesOf(BOXES);
  const gateways = await startGateways(fixture, identities, 0, { dataDir, callbackUrl: partner.url });
  const fleet = await lightFleet(identities, { transport: 'mqtt', url: gateways.mqttUrl });
  try {
    await fleet.start(BOXES_ONLINE);
    const shop = await shopAt(gateways.origins, identities);
    await lookAt(gateways);
    const looks: Inside[] = [];
    for (let part = 1; part <= PARTS; part += 1) {
      const failed = await sellMany(shop, ORDERS / PARTS);
      looks.push(await lookAt(gateways));
      progress(`${(ORDERS / PARTS) * part} orders, ${failed} not confirmed: ${toldOf(looks.at(-1))}`);
    }
    return [...memoryRows(looks), ...stopRows(looks), ...(await pageRows('', gateways, progress))];
  } finally {
    await fleet.close();
    await gateways.close();
    await partner.close();
  }
}

async function several(fixture: Fixture, progress: (text: string) => void): Promise<Row[]> {
  const identities = identitiesOf(BOXES);
  progress(`${GATEWAYS} gateways of one database`);
  const gateways = await startGateways(fixture, identities, GATEWAYS);
  const fleet = await lightFleet(identities, { transport: 'mqtt', url: gateways.mqttUrl });
  try {
    await fleet.start(BOXES_ONLINE);
    await sellMany(await shopAt(gateways.origins, identities), ORDERS_OF_GATEWAYS);
    return await pageRows(`one of ${GATEWAYS} gateways, `, gateways, progress);
  } finally {
    await fleet.close();
    await gateways.close();
  }
}

/** Orders that a gateway prunes when it starts. */
async function fill(dataDir: string): Promise<void> {
  const log = createLogger(new Writable({ write: (_line, _encoding, done) => done() }), systemClock, 'json');
  const store = await openStore({ dataDir }, log);
  const atMs = systemClock.wallMs() - OLD_MS;
  let made = 0;
  const make = async () => {
    for (let at = made; at < OLD_ORDERS; at = made) {
      made += 1;
      const when = { created_at_ms: atMs, expires_at_ms: atMs + 1 };
      await store.orders.startPush(
        pushRow(`old-${at}`, `old-${at}`, when),
        order(`old-${at}`, { created_at_ms: atMs }),
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, make));
  await store.close();
}

/** Pushes orders to the boxes that are there, and has some paid. Returns how many a busy machine did not confirm in time. */
async function sellMany({ push, pay }: Shop, orders: number): Promise<number> {
  let [begun, failed] = [0, 0];
  const free = Array.from({ length: BOXES_ONLINE }, (_, box) => box);
  const sell = async () => {
    while (begun < orders) {
      begun += 1;
      const isPaid = begun % PAID_EVERY === 0;
      const box = free.shift();
      if (box === undefined) throw new Error('no box is free');
      try {
        const sold = await push(box);
        if (isPaid) await pay(sold);
      } catch {
        failed += 1;
      }
      free.push(box);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sell));
  return failed;
}

async function lookAt({ lookers, children }: Gateways): Promise<Inside> {
  const [looker, child] = [lookers[0], children[0]];
  if (looker === undefined || child === undefined) throw new Error('no gateway');
  return looker.look(child);
}

function toldOf(look: Inside | undefined): string {
  const { heapBytes = 0, residentBytes = 0, longestTurnMs = 0 } = look ?? {};
  const [inUse, resident] = [heapBytes, residentBytes].map((it) => (it / BYTES_PER_MB).toFixed(1));
  return `${inUse} MB in use, ${resident} MB resident, longest stop ${longestTurnMs.toFixed(0)} ms`;
}

function memoryRows(looks: readonly Inside[]): Row[] {
  const [first] = looks;
  if (first === undefined) return [];
  return looks.flatMap((look, part) =>
    (['heapBytes', 'residentBytes'] as const).map((of): Row => {
      const what = of === 'heapBytes' ? 'memory in use' : 'memory resident';
      const [value, againstValue] = [look[of] / BYTES_PER_MB, first[of] / BYTES_PER_MB];
      return {
        ...{ name: `${what} after ${(ORDERS / PARTS) * (part + 1)} orders`, value, unit: 'MB' },
        ...{ against: `after ${ORDERS / PARTS}`, againstValue, ratio: value / againstValue },
        ...{ aim: `at most ${FLAT} of it`, met: value <= FLAT * againstValue },
      };
    }),
  );
}

function stopRows(looks: readonly Inside[]): Row[] {
  const [pruning = 0, ...later] = looks.map((it) => it.longestTurnMs);
  const most = Math.max(...later);
  return [
    rowUnder('longest stop, selling and pruning', 'ms', pruning, { name: 'selling', value: most }, STOP_MS_MAX),
    rowUnder('longest stop, selling', 'ms', most, { name: 'pruning too', value: pruning }, STOP_MS_MAX),
  ];
}

/** The longest stop while each page is asked for, beside the time that its answer takes. */
async function pageRows(of: string, gateways: Gateways, progress: (text: string) => void): Promise<Row[]> {
  const { origins, adminToken } = gateways;
  const rows: Row[] = [];
  for (const path of PAGES) {
    progress(`${of}${path}`);
    await lookAt(gateways);
    let bytes = 0;
    const startedMs = performance.now();
    for (let times = 0; times < ASKED_TIMES; times += 1) {
      const answer = await fetch(`${origins[0]}${path}`, { headers: { authorization: `Bearer ${adminToken}` } });
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      bytes = (await answer.arrayBuffer()).byteLength;
    }
    const tookMs = (performance.now() - startedMs) / ASKED_TIMES;
    const { longestTurnMs: stopMs } = await lookAt(gateways);
    const name = `longest stop, ${of}${path}, ${Math.ceil(bytes / 1_000)} kB`;
    rows.push(rowUnder(name, 'ms', stopMs, { name: 'its answer', value: tookMs }, STOP_MS_MAX));
  }
  return rows;
}
