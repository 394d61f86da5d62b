import { MissingPeerError } from '../../lib/errors.ts';
import { type TestTime, waitUntilRight } from '../engine/test-time.ts';

/** A box for which a peer of the bench waits. */
export interface Awaited {
  /** The first message that must come, as `no hello of VVB000001`. */
  readonly missing: string;
  /** Advice for when it does not come. */
  readonly fix: string;
  /** Returns whether there is enough to judge. */
  isThere(): boolean;
  /** Returns whether the box did something wrong. The peer still waits a while for it to do it right, and judges what it did last. */
  hasFailed(): boolean;
  /** Returns a summary of what the box has done so far. */
  progress(): string;
}

/** How long a peer waits for a box. */
export interface ContactWait {
  time: TestTime;
  withinMs: number;
  signal: AbortSignal;
  /** Called with the summary whenever it changes. */
  onProgress?: ((progress: string) => void) | undefined;
}

/** Time within which a right attempt may follow a wrong one. */
const SECOND_ATTEMPT_MS = 15_000;

/** Waits until a box can be judged. Throws MissingPeerError when it does not come. */
export async function waitForContact(box: Awaited, { time, withinMs, signal, onProgress }: ContactWait): Promise<void> {
  let failedAtMs: number | undefined;
  let reported = '';
  const look = async () => {
    const progress = box.progress();
    if (progress !== reported) onProgress?.(progress);
    reported = progress;
    if (box.isThere()) return undefined;
    const nowMs = time.clock.monotonicMs();
    if (box.hasFailed()) failedAtMs ??= nowMs;
    return failedAtMs !== undefined && nowMs - failedAtMs > SECOND_ATTEMPT_MS ? undefined : progress;
  };
  const problem = await waitUntilRight(time, withinMs, look, signal);
  if (problem !== undefined)
    throw new MissingPeerError(`${box.missing} within ${withinMs / 1000} s: ${problem}`, box.fix);
}
