import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { systemClock } from './clock.ts';
import { turn } from './virtual-clock.ts';

/** Node names so the work that the system or another program does for this process: files, names, connections, programs. */
const UNDER_WAY = /Req|ConnectWrap|WriteWrap|ShutdownWrap|ProcessWrap/;
const TURNS = 6;
const ROUNDS_MAX = 8;

/** Waits for what is under way in this process, as messages over loopback and jobs of the thread pool; a bounded time. */
export async function settled(): Promise<void> {
  // Hashing may run in the thread pool: this job is queued behind it.
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

/** Whether nothing happens in this process for `ms` real milliseconds, and nothing is under way that could end in it. */
export async function isQuietFor(ms: number): Promise<boolean> {
  // The event that has led here is counted once it is over.
  await turn();
  const before = eventCount();
  await systemClock.sleep(ms);
  return eventCount() === before && !isUnderWay();
}

/** Events that the event loop has handled; timers are none. */
function eventCount(): number {
  return performance.nodeTiming.uvMetricsInfo.events;
}

function isUnderWay(): boolean {
  return process.getActiveResourcesInfo().some((it) => UNDER_WAY.test(it));
}
