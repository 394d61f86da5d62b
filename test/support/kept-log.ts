import { PassThrough, Writable } from 'node:stream';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';

export type LogLine = Record<string, unknown> & { event: string; level: string };

/** A log whose lines a test can read. */
export function keptLog(clock: Clock = systemClock): { log: Logger; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const out = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(JSON.parse(String(chunk)) as LogLine);
      done();
    },
  });
  return { log: createLogger(out, clock, 'json'), lines };
}

/** A log that nobody reads. */
export const quietLog = (clock: Clock = systemClock): Logger => createLogger(new PassThrough().resume(), clock, 'json');
