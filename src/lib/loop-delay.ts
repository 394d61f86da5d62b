import { monitorEventLoopDelay } from 'node:perf_hooks';

/** The monitor takes a sample after this time. */
const RESOLUTION_MS = 10;
const MS_PER_SECOND = 1_000;
const NS_PER_MS = 1e6;

/** Measures the longest time in which this process could not react, from the first reading on. */
export class LoopDelay {
  #samples: ReturnType<typeof monitorEventLoopDelay> | undefined;

  /** Returns seconds since the previous reading; undefined at the first one. */
  longestSeconds(): number | undefined {
    const samples = this.#samples;
    if (samples === undefined) {
      this.#samples = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#samples.enable();
      return undefined;
    }
    const lateMs = Math.max(0, samples.max / NS_PER_MS - RESOLUTION_MS);
    samples.reset();
    return lateMs / MS_PER_SECOND;
  }
}
