import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Fixture, withFixture } from './fixture.ts';
import { type Gateways, startGateways } from './gateways.ts';
import { identitiesOf } from './light-fleet.ts';
import { residentMegabytes } from './process.ts';
import { processorMs } from './processor.ts';
import { type Benchmark, type Row, rowUnder } from './row.ts';

/** An embedded broker takes 12,000 connections, and a process has 20,000 open files here: five gateways, each with a fleet of its own. */
const GATEWAYS = 5;
const BOXES = 10_000;
const REST_MS = 70_000;

interface Fleet {
  pid: number;
  registeredMs: number;
}

/** 50,000 boxes that do nothing, at five gateways: what they take on both sides, and whether all of them stay. */
export const idle: Benchmark = {
  name: 'idle',
  run: (progress) =>
    withFixture(async (fixture) => {
      const [gateways, fleets]: [Gateways[], Fleet[]] = [[], []];
      try {
        for (let number = 0; number < GATEWAYS; number += 1) {
          progress(`${BOXES * (number + 1)} boxes`);
          await open(fixture, 1 + number * BOXES, gateways, fleets);
        }
        progress('at rest');
        return await measure(gateways, fleets);
      } finally {
        for (const it of gateways) await it.close();
      }
    }),
};

async function open(fixture: Fixture, first: number, gateways: Gateways[], fleets: Fleet[]): Promise<void> {
  const identities = identitiesOf(BOXES, first);
  const gateway = await startGateways(fixture, identities, 0);
  gateways.push(gateway);
  const file = join(await fixture.folder(), 'identities.json');
  await writeFile(file, JSON.stringify(identities), { mode: 0o600 });
  const script = join(import.meta.dirname, 'fleet-process.ts');
  fleets.push(JSON.parse(await fixture.server(script, gateway.mqttUrl, file)) as Fleet);
}

async function measure(gateways: readonly Gateways[], fleets: readonly Fleet[]): Promise<Row[]> {
  const sides = { gateways: gateways.map((it) => it.children[0]?.pid), fleets: fleets.map(({ pid }) => pid) };
  const used = async () => [await processorMs(sides.gateways), await processorMs(sides.fleets)] as const;
  const before = await used();
  await delay(REST_MS);
  const after = await used();
  const perSecond = (side: 0 | 1) => ((after[side] - before[side]) * 1_000) / REST_MS;
  const online = (await Promise.all(gateways.map(boxesOnline))).reduce((sum, it) => sum + it, 0);
  const resident = async (pids: readonly (number | undefined)[]) =>
    (await Promise.all(pids.map(residentMegabytes))).reduce((sum, it) => sum + it, 0);
  const all = GATEWAYS * BOXES;
  const name = `${all} idle boxes at ${GATEWAYS} gateways`;
  const slowestS = Math.max(...fleets.map(({ registeredMs }) => registeredMs)) / 1_000;
  const told = (what: string, unit: string, value: number, against: { name: string; value: number }): Row => {
    return { ...rowUnder(`${name}: ${what}`, unit, value, against, Number.POSITIVE_INFINITY), aim: '', met: true };
  };
  const asked = { name: 'all', value: all };
  return [
    { ...told('online', '', online, asked), aim: 'all', met: online === all },
    rowUnder(`${name}: ${BOXES} registered, slowest`, 's', slowestS, asked, 60),
    told('gateways, resident', 'MB', await resident(sides.gateways), asked),
    told('fleets, resident', 'MB', await resident(sides.fleets), asked),
    told('gateways, CPU of a second', 'ms', perSecond(0), asked),
    told('fleets, CPU of a second', 'ms', perSecond(1), asked),
  ];
}

async function boxesOnline({ origins }: Gateways): Promise<number> {
  const metrics = await (await fetch(`${origins[0]}/metrics`)).text();
  return Number(/^paybox_gateway_boxes_online (\d+)$/m.exec(metrics)?.[1]);
}
