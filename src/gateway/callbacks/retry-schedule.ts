import { z } from 'zod';

const CALLBACK_RETRIES_MAX = 50;

/** The waits of PROTOCOL.md, clause SYN-4, in milliseconds. */
const CALLBACK_RETRY_WAITS_MS = [1000, 2000, 3000, 4000, 5000, 60_000, 60_000, 60_000, 60_000, 60_000];

/** After those, hourly for three days; of these attempts there are so many at most. */
const AFTER_LADDER = { everySeconds: 3600, forSeconds: 259_200 };
const AFTER_LADDER_ATTEMPTS_MAX = 1000;

export const callbackRetryWaitsMs = z
  .array(z.int().min(0).max(3_600_000))
  .max(CALLBACK_RETRIES_MAX)
  .default(CALLBACK_RETRY_WAITS_MS);

export const callbackLateRetries = z
  .strictObject({
    everySeconds: z.int().min(1).max(86_400).default(AFTER_LADDER.everySeconds),
    forSeconds: z.int().min(0).max(2_592_000).default(AFTER_LADDER.forSeconds),
  })
  .refine((it) => it.forSeconds / it.everySeconds <= AFTER_LADDER_ATTEMPTS_MAX, {
    path: ['everySeconds'],
    error: `expected at most ${AFTER_LADDER_ATTEMPTS_MAX} attempts: a longer wait, or a shorter time`,
  })
  .describe('how a callback is tried on after callbackRetryWaitsMs; forSeconds: 0 for no longer')
  .prefault({});

/** The wait before each further attempt of a callback, in milliseconds (PROTOCOL.md, clause SYN-4). */
export function retryWaitsOf(config: {
  callbackRetryWaitsMs: readonly number[];
  callbackLateRetries: z.output<typeof callbackLateRetries>;
}): readonly number[] {
  const { everySeconds, forSeconds } = config.callbackLateRetries;
  const after = Array.from({ length: Math.floor(forSeconds / everySeconds) }, () => everySeconds * 1000);
  return [...config.callbackRetryWaitsMs, ...after];
}
