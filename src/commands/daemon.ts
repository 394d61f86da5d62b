import { createWriteStream } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { systemClock } from '../lib/clock.ts';
import { reasonOf } from '../lib/errors.ts';
import { createLogger, type Logger } from '../lib/log.ts';

const INTERRUPTED = 130;

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

/** A log for people, appended to a file. */
export function openLogFile(file: string): { log: Logger; close(): Promise<void> } {
  const out = createWriteStream(file, { flags: 'a' });
  out.on('error', (error) => process.stderr.write(`paybox: the log cannot be written: ${reasonOf(error)}\n`));
  return { log: createLogger(out, systemClock, 'text'), close: () => new Promise((done) => out.end(done)) };
}

/** A log on standard error: lines for people on a terminal, JSON for a journal. */
export function stderrLog(): Logger {
  return createLogger(process.stderr, systemClock, process.stderr.isTTY ? 'text' : 'json');
}

/**
 * Waits for SIGINT or SIGTERM, then closes everything. Exit code 130 after Ctrl-C, 0 after SIGTERM. A second signal
 * does not wait any longer.
 */
export async function untilStopped(log: Logger, close: () => Promise<void>): Promise<void> {
  // Now, because a power cut or a kill would leave the next start without it: slower, and with the compiler in memory.
  flushCompileCache();
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
