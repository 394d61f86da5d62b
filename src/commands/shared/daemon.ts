import { access, constants, rename, rm, writeFile } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { dirname } from 'node:path';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { ConfigError, type PayboxError, reasonOf } from '../../lib/errors.ts';
import { createLogger, type Logger } from '../../lib/log.ts';
import { STOP_BUDGET_MS } from '../../lib/shutdown.ts';
import { LogFile } from './log-file.ts';

const INTERRUPTED = 130;
const FAILED = 1;
/** A signal leaves a program that is still starting so long to be there and to end in order. */
const START_GRACE_MS = 300;
/**
 * Only a write in hand, on a disk or a database that hangs, takes longer than the budget. It is waited for so long, and
 * then taken as not made: a transaction is whole or not there.
 */
const WRITE_TIMEOUT_MS = 10_000;

/** Things to close, the newest first. */
export class Closers {
  readonly #closers: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  /** Remembers to close what was just opened, and hands it on. */
  readonly adding = <T extends { close(): Promise<void> }>(opened: T): T => {
    this.add(() => opened.close());
    return opened;
  };

  /** Closes all, also when one of them fails; throws the first failure. Safe to call twice. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      await close().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** A log for people in a file, until the program ends. */
export function fileLog(file: string): Logger {
  const complain = (reason: string) => process.stderr.write(`paybox: the log cannot be written: ${reason}\n`);
  return createLogger(new LogFile(file, complain), systemClock, 'text');
}

/**
 * Catches SIGINT and SIGTERM from now on, so that a program that is still starting ends as cleanly as one that runs.
 * A second signal does not wait any longer.
 */
export class StopSignal {
  readonly received: Promise<NodeJS.Signals>;
  #first: NodeJS.Signals | undefined;

  constructor() {
    this.received = new Promise((resolve) => {
      const take = (signal: NodeJS.Signals) => {
        if (this.#first !== undefined) exitNow(exitCodeOf(this.#first));
        this.#first = signal;
        resolve(signal);
      };
      process.on('SIGINT', take);
      process.on('SIGTERM', take);
    });
  }

  /** What is being started, once it is there. A start that hangs is cut off by a signal: it has promised nothing yet. */
  async started<T>(starting: Promise<T>): Promise<T> {
    const settled = new AbortController();
    void this.received.then(async (signal) => {
      await systemClock.sleep(START_GRACE_MS, settled.signal);
      if (!settled.signal.aborted) exitNow(exitCodeOf(signal));
    });
    try {
      return await starting;
    } finally {
      settled.abort();
    }
  }
}

/**
 * `process.exit` waits for the threads in which Node works on files, for ever where a device keeps one. A program that
 * takes the place of this one does not.
 */
function exitNow(code: number): never {
  const works = process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'));
  if (works) process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {});
  process.exit(code);
}

function exitCodeOf(signal: NodeJS.Signals): number {
  return signal === 'SIGINT' ? INTERRUPTED : 0;
}

/**
 * Waits for the signal, then closes everything; `close` is given the milliseconds after which it leaves behind what
 * hangs. Exit code 130 after Ctrl-C, 0 after SIGTERM.
 */
export async function untilStopped(
  stop: StopSignal,
  log: Logger,
  close: (withinMs: number) => Promise<void>,
): Promise<never> {
  // Now, because a power cut or a kill would leave the next start without it: slower, and with the compiler in memory.
  flushCompileCache();
  const signal = await stop.received;
  const sinceMs = systemClock.monotonicMs();
  log.info('stopping', { signal, withinMs: STOP_BUDGET_MS });
  const closed = close(STOP_BUDGET_MS).then(() => true);
  if (!(await withDeadline(systemClock, STOP_BUDGET_MS + WRITE_TIMEOUT_MS, closed))) {
    log.error('write-lost', { reason: 'the disk or the database did not take it in time' });
  }
  log.info('stopped', { signal, tookMs: Math.round(systemClock.monotonicMs() - sinceMs) });
  // What is left of a device that hangs must not keep the program.
  exitNow(exitCodeOf(signal));
}

/** Ends the program now, exit code 1, without a goodbye: what it would say or write is another's to say. */
export function endAtOnce(error: PayboxError, log: Logger): never {
  log.error('ended', { code: error.code, reason: error.message });
  exitNow(FAILED);
}

/** Writes JSON so that a reader sees all of it or nothing. */
export async function writeReadyFile(file: string, content: object): Promise<void> {
  const unfinished = `${file}.${process.pid}.tmp`;
  await writeFile(unfinished, `${JSON.stringify(content)}\n`);
  await rename(unfinished, file);
}

/** A file that an earlier run left must not be believed. Throws ConfigError when it could not be written later. */
export async function forgetReadyFile(file: string): Promise<void> {
  try {
    await rm(file, { force: true });
    await access(dirname(file), constants.W_OK);
  } catch (error) {
    throw new ConfigError(
      `--ready-file ${file} cannot be written: ${reasonOf(error)}`,
      'name a file in an existing folder',
    );
  }
}
