import { setTimeout as delay } from 'node:timers/promises';
import { type Random, seededRandom } from '../../src/lib/random.ts';
import { eventually } from '../support/net.ts';
import { FAR_ENDS } from './links.ts';
import { type ClusterWorld, nameOf } from './world.ts';

/** What a run does to the gateways and what they use, while they sell. */
const KILLS = [
  ...(['kill gateway', 'stop gateway', 'replace gateway', 'kill broker node', 'stop broker node'] as const),
  ...(['crash database', 'cut database', 'cut broker', 'end database sessions'] as const),
] as const;
type Kill = (typeof KILLS)[number];

/** Every box of a gateway is served again within this time after that gateway died, or hung (PROTOCOL.md, clause SHA-5). */
export const SERVED_AGAIN_MS = { killed: 5_000, stopped: 10_000 } as const;
/** The fleet of a soak, on a machine that has much else to do, takes longer; its figures say how long. */
const SERVED_AGAIN_MAX_MS = 60_000;
const UP_AGAIN_MS = 90_000;
/** Of a run: for as long as most kills take until all is whole again. */
const LOAD = { perAccount: 6, perSecond: 2 } as const;
const KILL_AFTER_MS_MAX = 500;
const PAUSE_MS_MAX = 3_000;
/** A gateway hangs for longer than it takes to be buried; sometimes for much longer. */
const LONG_STOP_MS_MAX = 30_000;
const LONG_STOPS = 1 / 4;

export interface KillsReport {
  /** Runs without a fault of money. */
  runs: number;
  kills: Record<Kill, number>;
  /** Milliseconds until every box of a gateway that died, or hung, had another one. */
  servedAgainMs: { killed: number[]; stopped: number[] };
}

/**
 * Sells while gateways, broker nodes and the database die, hang, lose each other and come back, one for each seed; then judges
 * the money of all. Throws with the seeds when it is wrong.
 */
export async function playKills(world: ClusterWorld, seeds: readonly number[], report: KillsReport): Promise<void> {
  const selling: Promise<void>[] = [];
  const done: string[] = [];
  try {
    for (const seed of seeds) {
      const random = seededRandom(seed);
      const sold = world.sell(`s${seed}`, LOAD, seededRandom(seed));
      // Late payments come while the next seed sells. What fails here is thrown below.
      sold.catch(() => undefined);
      selling.push(sold);
      await delay(random.fraction() * KILL_AFTER_MS_MAX);
      const kill = KILLS[Math.floor(random.fraction() * KILLS.length)] ?? 'kill gateway';
      report.kills[kill] += 1;
      done.push(`${new Date().toISOString()} ${seed}: ${kill}`);
      await inflict(world, kill, random, report);
    }
    await Promise.all(selling);
    await eventually('all gateways to be ready', () => isAtRest(world), UP_AGAIN_MS);
    await eventually('every box to be online', () => world.isOnline, UP_AGAIN_MS);
    await eventually('QRs whose answer was lost to end', () => !world.showsUnanswered, UP_AGAIN_MS);
    await world.judge();
    const problems = [...world.tracker.problems.listed, ...(await world.lateWrites())];
    if (problems.length > 0) throw new Error(problems.join('\n'));
    report.runs += seeds.length;
  } catch (error) {
    const told = await Promise.all(
      world.gateways.map((_, i) => world.health(i).then(({ status, body }) => `${i} ${status} ${body}`, String)),
    );
    const story = [...done, ...told, world.logs()].join('\n');
    throw new Error(`seeds ${seeds}: ${String(error)}\n${story}`, { cause: error });
  }
}

async function inflict(world: ClusterWorld, kill: Kill, random: Random, report: KillsReport): Promise<void> {
  const gateway = Math.floor(random.fraction() * world.gateways.length);
  const pauseMs = random.fraction() * PAUSE_MS_MAX;
  const isLong = random.fraction() < LONG_STOPS;
  const stopMs = PAUSE_MS_MAX + (isLong ? random.fraction() * (LONG_STOP_MS_MAX - PAUSE_MS_MAX) : 0);
  if (kill === 'kill broker node' || kill === 'stop broker node') {
    const node = world.brokerNodes[Math.floor(random.fraction() * world.brokerNodes.length)];
    await node?.signal(kill === 'kill broker node' ? 'SIGKILL' : 'SIGSTOP');
    await delay(pauseMs);
    return kill === 'kill broker node' ? node?.start() : node?.signal('SIGCONT');
  }
  if (kill.startsWith('cut')) return cut(world, kill, random, pauseMs);
  if (kill === 'crash database') {
    await world.postgres.stop('SIGQUIT');
    await delay(pauseMs / 3);
    return world.postgres.start();
  }
  if (kill === 'end database sessions') {
    // Those that listen are among them, so notifications are lost.
    await world.rows.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'paybox %' and random() < 0.5`,
    );
    return;
  }
  if (kill === 'replace gateway') {
    await world.kill(gateway, 'SIGTERM');
    return world.restart(gateway);
  }
  const untilServed = await boxesOf(world, gateway);
  if (kill === 'kill gateway') {
    await world.kill(gateway, 'SIGKILL');
    report.servedAgainMs.killed.push(await untilServed());
    return world.restart(gateway);
  }
  world.signal(gateway, 'SIGSTOP');
  try {
    const servedMs = await untilServed();
    report.servedAgainMs.stopped.push(servedMs);
    await delay(Math.max(0, stopMs - servedMs));
  } finally {
    world.signal(gateway, 'SIGCONT');
  }
}

/** A gateway and what it uses lose each other: their connections break at once, or hang for a while. */
async function cut(world: ClusterWorld, kill: Kill, random: Random, pauseMs: number): Promise<void> {
  const far = FAR_ENDS.find((it) => kill.endsWith(it)) ?? 'database';
  const cable = world.links[Math.floor(random.fraction() * world.links.length)]?.[far];
  if (random.fraction() < 1 / 2) {
    cable?.cut();
    return;
  }
  cable?.stall();
  await delay(pauseMs);
  cable?.resume();
}

/** Whether every gateway says that it is ready, and the database has the runs of all. */
async function isAtRest(world: ClusterWorld): Promise<boolean> {
  const told = await Promise.all(world.gateways.map((_, i) => world.health(i).catch(() => undefined)));
  if (!told.every((it) => it?.status === 200)) return false;
  const runs = await world.rows.runs();
  return runs.length === told.length && runs.every(({ gone }) => !gone);
}

/**
 * Reads which boxes a gateway has now. The function that it returns settles with the milliseconds until other runs have
 * all of them.
 */
async function boxesOf(world: ClusterWorld, gateway: number): Promise<() => Promise<number>> {
  const { rows } = world;
  const run = await rows.runOf(nameOf(gateway)).catch(() => undefined);
  const boxes = run === undefined ? [] : await rows.boxesOf(run).catch(() => []);
  return async () => {
    const beganMs = performance.now();
    const isServed = async () => (await rows.unserved(boxes, run ?? '')).length === 0;
    await eventually('every box to be served', () => isServed().catch(() => false), SERVED_AGAIN_MAX_MS);
    return performance.now() - beganMs;
  };
}

export function emptyReport(): KillsReport {
  const kills = Object.fromEntries(KILLS.map((it) => [it, 0])) as Record<Kill, number>;
  return { runs: 0, kills, servedAgainMs: { killed: [], stopped: [] } };
}
