import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { type Random, seededRandom } from '../../src/lib/random.ts';
import { eventually } from '../support/net.ts';
import { FAR_ENDS } from './links.ts';
import type { ClusterWorld } from './world.ts';

/** What a run does to the cluster while it sells. */
const KILLS = [
  ...(['kill member', 'stop member', 'replace member', 'kill broker node', 'stop broker node'] as const),
  ...(['crash database', 'cut database', 'cut broker', 'cut members'] as const),
] as const;
type Kill = (typeof KILLS)[number];

/** Every shard has an holder again within this time after a member dies or hangs (PROTOCOL.md, clause SHA-5). */
export const HELD_AGAIN_MS = 5_000;
/** The fleet of a soak, on a machine that has much else to do, takes longer; its figures say how long. */
const HELD_AGAIN_MAX_MS = 60_000;
const UP_AGAIN_MS = 90_000;
/** Of a run: for as long as most kills take until all is whole again. */
const LOAD = { perAccount: 6, perSecond: 2 } as const;
const KILL_AFTER_MS_MAX = 500;

const health = z.object({
  cluster: z.object({
    member: z.string(),
    shards: z.array(z.int()),
    members: z.array(z.object({ id: z.string() })),
    holders: z.record(z.string(), z.string()),
    unheld: z.array(z.int()),
  }),
});

export interface KillsReport {
  /** Runs without a fault of the cluster. */
  runs: number;
  kills: Record<Kill, number>;
  /** Milliseconds until every shard had a living holder again, of each member that died or hung. */
  heldAgainMs: number[];
}

/**
 * Sells while parts of the cluster die, hang, lose each other and come back, one for each seed; then judges
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
      const kill = KILLS[Math.floor(random.fraction() * KILLS.length)] ?? 'kill member';
      report.kills[kill] += 1;
      done.push(`${new Date().toISOString()} ${seed}: ${kill}`);
      await inflict(world, kill, random, report);
    }
    await Promise.all(selling);
    await eventually('the cluster to be at rest', () => isAtRest(world), UP_AGAIN_MS);
    await eventually('every box to be online', () => world.isOnline, UP_AGAIN_MS);
    await eventually('QRs whose answer was lost to end', () => !world.showsUnanswered, UP_AGAIN_MS);
    await world.judge();
    const problems = [...world.tracker.problems.listed, ...(await world.rivalWrites())];
    if (problems.length > 0) throw new Error(problems.join('\n'));
    report.runs += seeds.length;
  } catch (error) {
    const told = await Promise.all(
      world.members.map((_, i) => world.health(i).then(({ status, body }) => `${i} ${status} ${body}`, String)),
    );
    const story = [...done, ...told, world.logs()].join('\n');
    throw new Error(`seeds ${seeds}: ${String(error)}\n${story}`, { cause: error });
  }
}

async function inflict(world: ClusterWorld, kill: Kill, random: Random, report: KillsReport): Promise<void> {
  const member = Math.floor(random.fraction() * world.members.length);
  const pauseMs = random.fraction() * 3_000;
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
  if (kill === 'replace member') {
    await world.kill(member, 'SIGTERM');
    return world.restart(member);
  }
  if (kill === 'kill member') {
    await world.kill(member, 'SIGKILL');
    report.heldAgainMs.push(await untilHeld(world, member));
    return world.restart(member);
  }
  world.signal(member, 'SIGSTOP');
  try {
    report.heldAgainMs.push(await untilHeld(world, member));
    await delay(pauseMs);
  } finally {
    world.signal(member, 'SIGCONT');
  }
}

/** One member and a part of the cluster lose each other: their connections break at once, or hang for a while. */
async function cut(world: ClusterWorld, kill: Kill, random: Random, pauseMs: number): Promise<void> {
  const far = FAR_ENDS.find((it) => kill.endsWith(it)) ?? 'members';
  const cable = world.links[Math.floor(random.fraction() * world.links.length)]?.[far];
  if (random.fraction() < 1 / 2) {
    cable?.cut();
    return;
  }
  cable?.stall();
  await delay(pauseMs);
  cable?.resume();
}

/** Whether every member is well and runs what all say that it runs. */
async function isAtRest(world: ClusterWorld): Promise<boolean> {
  const told = await Promise.all(world.members.map((_, i) => world.health(i).catch(() => undefined)));
  return told.every((it) => {
    const seen = it?.status === 200 ? health.safeParse(JSON.parse(it.body)).data?.cluster : undefined;
    if (seen === undefined || seen.unheld.length > 0 || seen.members.length !== told.length) return false;
    const own = Object.entries(seen.holders).flatMap(([shard, id]) => (id === seen.member ? [Number(shard)] : []));
    return own.join() === seen.shards.toSorted((a, b) => a - b).join();
  });
}

/** Milliseconds until the shards of the member at this place have other holders. */
async function untilHeld(world: ClusterWorld, gone: number): Promise<number> {
  const beganMs = performance.now();
  const witness = world.members.findIndex((_, i) => i !== gone);
  await eventually(
    'every shard to have a living holder',
    async () => {
      const body = await world.health(witness).then(
        (it) => it.body,
        () => '{}',
      );
      const seen = health.safeParse(JSON.parse(body)).data?.cluster;
      if (seen === undefined || seen.unheld.length > 0) return false;
      // The gone one is no member any more, so it owns nothing that a member owns.
      const living = new Set(seen.members.map(({ id }) => id));
      return living.size < world.members.length && Object.values(seen.holders).every((id) => living.has(id));
    },
    HELD_AGAIN_MAX_MS,
  );
  return performance.now() - beganMs;
}

export function emptyReport(): KillsReport {
  return { runs: 0, kills: Object.fromEntries(KILLS.map((it) => [it, 0])) as Record<Kill, number>, heldAgainMs: [] };
}
