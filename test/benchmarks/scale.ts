import { setTimeout as delay } from 'node:timers/promises';
import { reasonOf } from '../../src/lib/errors.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { withFixture } from './fixture.ts';
import { type Gateways, type Shop, shopAt, startGateways } from './gateways.ts';
import { collector } from './light.ts';
import { identitiesOf, lightFleet } from './light-fleet.ts';
import { took } from './loop.ts';
import { familyMs, processorMs } from './processor.ts';
import { type Benchmark, type Row, rowUnder } from './row.ts';

/** Boxes, and gateways of one database; 0: a gateway alone. */
const SIZES = [1_000, 10_000] as const;
const GATEWAYS = [0, 1, 2, 4] as const;
const PUSHES = 1_500;
/** Of each gateway, so many at a time: code that has run a few times only takes three times as long. */
const WARM_UP = 1_000;
const WARM_UP_AT_ONCE = 16;
/** A rate that leaves two cores room, so that nothing waits for long, and costs more than the rest beside it. */
const PUSHES_PER_SECOND = 50;
const REST_MS = 10_000;
/** PostgreSQL tells its counts a second late. */
const COUNTS_LATE_MS = 1_500;
const FLAT = 1.15;
const KIBIBYTE = 1_024;
/** The first ones bring the code with them. */
const FIRST = 100;

/** What has been used up to a moment. */
interface Used {
  atMs: number;
  gateways: number;
  postgres: number;
  broker: number;
  commits: number;
  syncs: number;
}

/** What one push takes, and what is used meanwhile at rest, a second. */
interface Cost {
  gateways: number;
  postgres: number;
  broker: number;
  commits: number;
  syncs: number;
  restMsPerSecond: number;
  /** Pushes that were not confirmed. */
  failed: number;
}

/** What 1,000 and 10,000 boxes and a push to them take of a gateway alone, and of one, two and four of one database. */
export const scale: Benchmark = {
  name: 'scale',
  async run(progress, leaveOut) {
    const lacks = [PROGRAMS.postgres, PROGRAMS.mosquitto].map(without);
    for (const { missing, note } of lacks) if (missing) leaveOut(`gateways of one database${note}`);
    const gateways = lacks.some(({ missing }) => missing) ? [0] : GATEWAYS;
    const rows: Row[] = [];
    for (const boxes of SIZES) {
      let alone: Cost | undefined;
      for (const of of gateways) {
        const name = `${boxes} boxes, ${of === 0 ? 'alone' : `${of} of one database`}`;
        progress(name);
        try {
          const measured = await measure(boxes, of);
          if (of === 1) alone = measured.cost;
          const own = rowsOf(name, measured, of > 1 ? alone : undefined);
          rows.push(...own);
          for (const row of own) progress(`${row.name} ${row.value.toFixed(2)} ${row.unit}`);
        } catch (error) {
          // The others are still worth their time.
          leaveOut(`${name}: ${reasonOf(error)}`);
        }
      }
    }
    return rows;
  },
};

interface Measured {
  registeredMs: number;
  /** Of each box: in use in its own process, and in use and resident at the gateways. */
  boxKb: number;
  gatewayKb: number;
  residentKb: number;
  cost: Cost;
}

const measure = (boxes: number, shared: number): Promise<Measured> =>
  withFixture(async (fixture) => {
    const identities = identitiesOf(boxes);
    const gateways = await startGateways(fixture, identities, shared);
    const fleet = await lightFleet(identities, { transport: 'mqtt', url: gateways.mqttUrl });
    try {
      const firstMs = await took(() => fleet.start(FIRST));
      const before = await memoryOf(gateways);
      const restMs = await took(() => fleet.start(boxes - FIRST));
      const after = await memoryOf(gateways);
      const each = (bytes: number) => bytes / KIBIBYTE / (boxes - FIRST);
      const { push } = await shopAt(gateways.origins, identities);
      await warmUp(push, boxes, WARM_UP * gateways.origins.length);
      return {
        registeredMs: firstMs + restMs,
        boxKb: each(after.own - before.own),
        gatewayKb: each(after.gateways - before.gateways),
        residentKb: each(after.resident - before.resident),
        cost: await costOf(gateways, () => pushAll(push, boxes, PUSHES)),
      };
    } finally {
      await fleet.close();
      await gateways.close();
    }
  });

/** Bytes after garbage is collected: in use here, in use and resident at the gateways. */
async function memoryOf({ children, lookers }: Gateways): Promise<{ own: number; gateways: number; resident: number }> {
  let [gateways, resident] = [0, 0];
  for (const [at, child] of children.entries()) {
    const { heapBytes = 0, residentBytes = 0 } = (await lookers[at]?.look(child)) ?? {};
    gateways += heapBytes;
    resident += residentBytes;
  }
  collector()();
  const { heapUsed, external } = process.memoryUsage();
  return { own: heapUsed + external, gateways, resident };
}

async function warmUp(push: Shop['push'], boxes: number, pushes: number): Promise<void> {
  let begun = 0;
  const some = async () => {
    while (begun < pushes) {
      begun += 1;
      await push(begun % boxes).catch(() => undefined);
    }
  };
  await Promise.all(Array.from({ length: WARM_UP_AT_ONCE }, some));
}

/** Pushes at a steady rate, whether or not the ones before are answered. Returns how many were not confirmed. */
async function pushAll(push: Shop['push'], boxes: number, pushes: number): Promise<number> {
  const underWay: Promise<boolean>[] = [];
  const startedMs = performance.now();
  for (let begun = 0; begun < pushes; begun += 1) {
    const waitMs = startedMs + (begun * 1_000) / PUSHES_PER_SECOND - performance.now();
    if (waitMs > 1) await delay(waitMs);
    // Neighbours are boxes of different accounts.
    const pushed = push(begun % boxes);
    underWay.push(
      pushed.then(
        () => true,
        () => false,
      ),
    );
  }
  return (await Promise.all(underWay)).filter((isConfirmed) => !isConfirmed).length;
}

/** What the work takes beside what is used at rest, for each of its pushes. */
async function costOf(gateways: Gateways, work: () => Promise<number>): Promise<Cost> {
  const first = await usedBy(gateways);
  await delay(REST_MS);
  const rested = await usedBy(gateways);
  const failed = await work();
  const done = await usedBy(gateways);
  const share = (done.atMs - rested.atMs) / (rested.atMs - first.atMs);
  const each = (of: keyof Used) => (done[of] - rested[of] - (rested[of] - first[of]) * share) / PUSHES;
  const costs = { gateways: each('gateways'), postgres: each('postgres'), broker: each('broker') };
  const restMsPerSecond = ((rested.gateways - first.gateways) * 1_000) / (rested.atMs - first.atMs);
  return { ...costs, commits: each('commits'), syncs: each('syncs'), restMsPerSecond, failed };
}

async function usedBy({ children, lookers, postgres, databaseUrl, mosquitto }: Gateways): Promise<Used> {
  await delay(COUNTS_LATE_MS);
  const counts = await postgres?.run(
    databaseUrl,
    `select xact_commit as commits, (select wal_sync from pg_stat_wal) as syncs
       from pg_stat_database where datname = current_database()`,
  );
  const { commits = 0, syncs = 0 } = counts?.[0] ?? {};
  const [looker, child] = [lookers[0], children[0]];
  const own =
    postgres === undefined && looker !== undefined && child !== undefined ? await looker.look(child) : undefined;
  return {
    atMs: performance.now(),
    gateways: await processorMs(children.map(({ pid }) => pid)),
    postgres: postgres === undefined ? 0 : await familyMs(postgres.pid()),
    broker: mosquitto === undefined ? 0 : await processorMs([mosquitto.pid]),
    commits: Number(commits),
    syncs: own?.syncs ?? Number(syncs),
  };
}

function rowsOf(
  name: string,
  { registeredMs, boxKb, gatewayKb, residentKb, cost }: Measured,
  one: Cost | undefined,
): Row[] {
  const told = (what: string, unit: string, value: number, against: { name: string; value: number }): Row => {
    const row = rowUnder(`${name}: ${what}`, unit, value, against, Number.POSITIVE_INFINITY);
    return { ...row, aim: '', met: true };
  };
  const ofGateways = { name: 'CPU of gateways', value: cost.gateways };
  const all = cost.gateways + cost.postgres + cost.broker;
  const ofOne = one && { name: 'one of one database', value: one.gateways };
  const allOfOne = one && { name: 'one of one database', value: one.gateways + one.postgres + one.broker };
  const flat = (row: Row, against: { name: string; value: number } | undefined): Row =>
    against === undefined
      ? row
      : {
          ...row,
          against: against.name,
          againstValue: against.value,
          ratio: row.value / against.value,
          aim: `at most ${FLAT} of it`,
          met: cost.failed === 0 && row.value <= FLAT * against.value,
        };
  const inKb = { name: 'a box, in its process', value: boxKb };
  return [
    rowUnder(
      `${name}: registered`,
      's',
      registeredMs / 1_000,
      { name: 'CPU of a push', value: cost.gateways / 1_000 },
      60,
    ),
    told('a box at the gateways, in use', 'KB', gatewayKb, inKb),
    told('a box at the gateways, resident', 'KB', residentKb, inKb),
    flat(told('gateways, CPU of a push', 'ms', cost.gateways, { name: 'all', value: all }), ofOne),
    told('PostgreSQL, CPU of a push', 'ms', cost.postgres, ofGateways),
    told('broker, CPU of a push', 'ms', cost.broker, ofGateways),
    flat(told('all, CPU of a push', 'ms', all, ofGateways), allOfOne),
    told('transactions of a push, reads too', '', cost.commits, { name: 'waits for the disk', value: cost.syncs }),
    told('waits for the disk of a push', '', cost.syncs, { name: 'transactions', value: cost.commits }),
    told('gateways at rest, CPU of a second', 'ms', cost.restMsPerSecond, ofGateways),
    // What they would have taken is missing above.
    {
      ...told('pushes not confirmed', '', cost.failed, { name: 'all', value: PUSHES }),
      aim: 'none',
      met: cost.failed === 0,
    },
  ];
}
