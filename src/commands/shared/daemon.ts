import { access, constants, rm } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { ConfigError, type PayboxError, reasonOf } from '../../lib/errors.ts';
import { assertReplaceable, replaceInSharedFolder } from '../../lib/files.ts';
import { createLogger, type Logger } from '../../lib/log.ts';
import { STOP_BUDGET_MS, STOP_PROMISE_MS } from '../../lib/shutdown.ts';
import { LogFile } from './log-file.ts';
import { exitCodeOf, exitNow, type StopSignal } from './stop-signal.ts';

const FAILED = 1;

/** Resources to close, newest first. */
export class Closers {
  readonly #closers: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  /** Registers an opened resource and returns it. */
  readonly adding = <T extends { close(): Promise<void> }>(opened: T): T => {
    this.add(() => opened.close());
    return opened;
  };

  /** Closes all, also if one fails; throws the first failure. Safe to call twice. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      await close().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** Returns a readable log in a file, until the program ends; without a file it is discarded. */
export function fileLog(file: string | undefined): Logger {
  if (file === undefined) {
    return createLogger(new Writable({ write: (_line, _encoding, done) => done() }), systemClock, 'text');
  }
  const complain = (reason: string) => process.stderr.write(`paybox: the log cannot be written: ${reason}\n`);
  return createLogger(new LogFile(file, complain), systemClock, 'text');
}

/**
 * Waits for the signal, then closes everything. `close` receives the time in milliseconds after which it abandons parts
 * that hang. Nobody received an acknowledgement of an abandoned write. The exit code is 130 after Ctrl-C, 0 after
 * SIGTERM.
 */
export async function untilStopped(
  stop: StopSignal,
  log: Logger,
  close: (withinMs: number) => Promise<void>,
): Promise<never> {
  // Now, because after a power cut or a kill the next start would have no cache: slower, and with the compiler in
  // memory.
  flushCompileCache();
  const signal = await stop.received;
  const sinceMs = systemClock.monotonicMs();
  log.info('stopping', { signal, withinMs: STOP_BUDGET_MS });
  const closed = close(STOP_BUDGET_MS).then(() => true);
  if (!(await withDeadline(systemClock, STOP_PROMISE_MS, closed))) {
    log.error('end-timed-out', { part: 'program', withinMs: STOP_PROMISE_MS });
  }
  log.info('stopped', { signal, tookMs: Math.round(systemClock.monotonicMs() - sinceMs) });
  // A device that hangs must not keep the process running.
  exitNow(exitCodeOf(signal));
}

/** Ends the program now with exit code 1 and no goodbye: another gateway now owns what it would write. */
export function endAtOnce(error: PayboxError, log: Logger): never {
  log.error('ended', { code: error.code, reason: error.message });
  exitNow(FAILED);
}

/** Writes JSON atomically, for its owner only: it may have a password. */
export async function writeReadyFile(file: string, content: object): Promise<void> {
  await replaceInSharedFolder(file, `${JSON.stringify(content)}\n`);
}

/**
 * Removes the ready file of an earlier run; of a link, the link. Throws ConfigError if the program could not write it
 * later, or if the path names something other than a file.
 */
export async function forgetReadyFile(file: string): Promise<void> {
  try {
    assertReplaceable(file);
    await rm(file, { force: true });
    await access(dirname(file), constants.W_OK);
  } catch (error) {
    throw new ConfigError(
      `--ready-file ${file} cannot be written: ${reasonOf(error)}`,
      'name a file in an existing folder',
    );
  }
}
