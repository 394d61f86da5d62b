import { z } from 'zod';

const RETRIES_MAX = 50;
/** Waits before the first retries, in milliseconds (PROTOCOL.md, clause SYN-4). */
const RETRY_WAITS_MS = [1000, 2000, 3000, 4000, 5000, 60_000, 60_000, 60_000, 60_000, 60_000];
/** The late retries follow after those above: hourly for three days. */
const LATE_RETRIES = { everySeconds: 3600, forSeconds: 259_200 };
const LATE_RETRIES_MAX = 1000;

export const callbackRetryWaitsMs = z.array(z.int().min(0).max(3_600_000)).max(RETRIES_MAX).default(RETRY_WAITS_MS);

export const callbackLateRetries = z
  .strictObject({
    everySeconds: z.int().min(1).max(86_400).default(LATE_RETRIES.everySeconds),
    forSeconds: z.int().min(0).max(2_592_000).default(LATE_RETRIES.forSeconds),
  })
  .refine((it) => it.forSeconds / it.everySeconds <= LATE_RETRIES_MAX, {
    path: ['everySeconds'],
    error: `expected at most ${LATE_RETRIES_MAX} attempts: a longer wait, or a shorter time`,
  })
  .describe('further retries of a callback after callbackRetryWaitsMs; forSeconds: 0 for none')
  .prefault({});

/** Returns the waits before each retry of a callback, in milliseconds (PROTOCOL.md, clause SYN-4). */
export function retryWaitsOf(config: {
  callbackRetryWaitsMs: readonly number[];
  callbackLateRetries: z.output<typeof callbackLateRetries>;
}): readonly number[] {
  const { everySeconds, forSeconds } = config.callbackLateRetries;
  const late = Array.from({ length: Math.floor(forSeconds / everySeconds) }, () => everySeconds * 1000);
  return [...config.callbackRetryWaitsMs, ...late];
}
