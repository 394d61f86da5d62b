import { setTimeout as delay } from 'node:timers/promises';
import { turn, type VirtualClock } from '../../src/lib/virtual-clock.ts';
import { Broken } from './target.ts';

/** Turns of the event loop that work may take before time goes on for it. */
const TURNS = 4;
const STEPS_MAX = 2_000;
/** Longer than any wait that a person would put up with. */
const WAITED_MAX_MS = 60_000;
/** Where nothing sleeps, a disk is waited for, in real time. */
const DISK_WAIT_MS = 1;

/** What `work` comes to while time on the clock goes on whenever nothing else does. Throws Broken when it never ends. */
export async function settled<T>(clock: VirtualClock, work: Promise<T>): Promise<PromiseSettledResult<T>> {
  let result: PromiseSettledResult<T> | undefined;
  void work.then(
    (value) => {
      result = { status: 'fulfilled', value };
    },
    (reason: unknown) => {
      result = { status: 'rejected', reason };
    },
  );
  const untilMs = clock.monotonicMs() + WAITED_MAX_MS;
  for (let step = 0; step < STEPS_MAX; step += 1) {
    for (let turns = 0; turns < TURNS; turns += 1) {
      await turn();
      if (result !== undefined) return result;
    }
    if (!clock.step(untilMs)) await delay(DISK_WAIT_MS);
  }
  throw new Broken(`no end after ${STEPS_MAX} waits`);
}
