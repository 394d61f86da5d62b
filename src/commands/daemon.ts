import { rename, writeFile } from 'node:fs/promises';
import { reasonOf } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';

const INTERRUPTED = 130;

/**
 * Waits for SIGINT or SIGTERM, then closes everything. Exit code 130 after Ctrl-C, 0 after SIGTERM. A second signal
 * does not wait any longer.
 */
export async function untilStopped(log: Logger, close: () => Promise<void>): Promise<void> {
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  const exitCode = signal === 'SIGINT' ? INTERRUPTED : 0;
  const leaveNow = () => process.exit(exitCode);
  process.once('SIGINT', leaveNow);
  process.once('SIGTERM', leaveNow);
  log.info('stopping', { signal });
  try {
    await close();
    process.exitCode = exitCode;
  } catch (error) {
    log.error('stop-failed', { reason: reasonOf(error) });
    process.exitCode = 1;
  } finally {
    process.off('SIGINT', leaveNow);
    process.off('SIGTERM', leaveNow);
  }
}

/** Writes JSON so that a reader sees all of it or nothing. */
export async function writeReadyFile(file: string, content: object): Promise<void> {
  const unfinished = `${file}.${process.pid}.tmp`;
  await writeFile(unfinished, `${JSON.stringify(content)}\n`);
  await rename(unfinished, file);
}
