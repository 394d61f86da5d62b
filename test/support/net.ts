import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { freePorts } from '../../src/bench/engine/free-ports.ts';

const PROBE_EVERY_MS = 10;
/** What is waited for long is asked for less often: a question may cost two programs their time. */
const PROBE_EVERY_MAX_MS = 100;

/** A free TCP port on loopback. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** A new empty folder that is deleted after the test. */
export async function temporaryFolder(): Promise<string> {
  const { folder, remove } = await makeFolder();
  onTestFinished(remove);
  return folder;
}

/** A new empty folder, also outside a test; the caller removes it. */
export async function makeFolder(): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-test-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }) };
}

/** Waits until `probe` returns something other than undefined or false; after `timeoutMs` fails with `what`. */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 60_000,
): Promise<T> {
  const startedMs = performance.now();
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await delay(Math.min(PROBE_EVERY_MAX_MS, Math.max(PROBE_EVERY_MS, waitedMs / 20)));
  }
}

/** Tries this again until it succeeds. */
export const eventuallyDone = (what: string, work: () => Promise<unknown>): Promise<true> =>
  eventually(what, () =>
    work().then(
      () => true as const,
      () => undefined,
    ),
  );
