import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { systemClock } from './clock.ts';
import { turn } from './virtual-clock.ts';

/**
 * Node uses these names for work that the system or another program does for this process: files, names, connections,
 * programs.
 */
const UNDER_WAY = /Req|ConnectWrap|WriteWrap|ShutdownWrap|ProcessWrap/;
const TURNS = 6;
const ROUNDS_MAX = 8;

/**
 * Waits a limited time until open work of this process is done, such as messages over loopback and thread pool jobs.
 */
export async function settled(): Promise<void> {
  // Hashing may run in the thread pool. This job waits in the queue behind it.
  await new Promise((resolve) => randomBytes(1, resolve));
  await turns();
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    const before = eventCount();
    await turns();
    if (eventCount() === before && !isUnderWay()) return;
  }
}

async function turns(): Promise<void> {
  for (let i = 0; i < TURNS; i += 1) await turn();
}

/** Returns whether this process handles no event for `ms` real milliseconds, and no open work could end in one. */
export async function isQuietFor(ms: number): Promise<boolean> {
  // Node counts the current event only once it is over.
  await turn();
  const before = eventCount();
  await systemClock.sleep(ms);
  return eventCount() === before && !isUnderWay();
}

/** Returns how many events the event loop has handled. Timers do not count. */
function eventCount(): number {
  return performance.nodeTiming.uvMetricsInfo.events;
}

function isUnderWay(): boolean {
  return process.getActiveResourcesInfo().some((it) => UNDER_WAY.test(it));
}
