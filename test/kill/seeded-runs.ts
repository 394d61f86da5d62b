import { setTimeout as delay } from 'node:timers/promises';
import type { WorldKind } from './script.ts';
import type { Timeline } from './timeline.ts';
import { World } from './world.ts';

/** Long, because a soak runs when the machine has nothing better to do. */
const SETTLE_TIMEOUT_MS = 240_000;
const LOOK_EVERY_MS = 50;

/**
 * Plays a run for each seed, one after the other in one world of programs, until one fails or `onRun` returns false.
 * Returns the sums of all reports.
 */
export async function playRuns<Report extends Record<string, number>>(
  kind: WorldKind,
  seeds: Iterable<number>,
  play: (world: World, seed: number) => Promise<Report>,
  empty: Report,
  onRun: (report: Report) => boolean = () => true,
): Promise<Report> {
  const world = await World.open(kind);
  const total: Record<string, number> = { ...empty };
  try {
    for (const seed of seeds) {
      const report = await play(world, seed);
      for (const [name, figure] of Object.entries(report)) total[name] = (total[name] ?? 0) + figure;
      if (!onRun(report)) break;
    }
    return total as Report;
  } finally {
    await world.close();
  }
}

/** Waits until nothing is missing. Throws when that takes too long, or when a program has ended by itself. */
export async function until(
  world: World,
  what: string,
  missing: () => string | undefined | Promise<string | undefined>,
): Promise<void> {
  const deadlineMs = performance.now() + SETTLE_TIMEOUT_MS;
  let last: string | undefined = 'not looked';
  while (performance.now() < deadlineMs) {
    for (const { fault } of world.programs.values()) if (fault !== undefined) throw new Error(fault);
    last = await missing();
    if (last === undefined) return;
    await delay(LOOK_EVERY_MS);
  }
  throw new Error(`not within ${SETTLE_TIMEOUT_MS} ms: ${what}: ${last}`);
}

/** The error of a run, with its seed, what happened and what the programs logged. */
export function failureOf({ kind, programs }: World, seed: number, timeline: Timeline, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  const logs = [...programs.values()].map(({ name, lines }) => `${name}:\n  ${lines.join('\n  ')}`);
  const what = `seed ${seed} (${kind.name}): ${reason}`;
  return new Error([what, `what happened:\n  ${timeline}`, ...logs].join('\n'));
}
