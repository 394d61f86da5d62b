import { Writable } from 'node:stream';
import type { Clock } from '../../src/lib/clock.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';

export type Line = Record<string, unknown> & { event: string };

const LINES_MAX = 200;

/** A log of the project whose newest lines can be looked at. */
export function listeningLog(clock: Clock): { log: Logger; lines: Line[] } {
  const lines: Line[] = [];
  const out = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(JSON.parse(String(chunk)) as Line);
      if (lines.length > LINES_MAX) lines.shift();
      done();
    },
  });
  return { log: createLogger(out, clock, 'json'), lines };
}
