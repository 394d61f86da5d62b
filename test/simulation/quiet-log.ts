import type { Logger } from '../../src/lib/log.ts';

/** A log that goes into the trace of a world. */
export function traceLog(who: string, trace: (...words: unknown[]) => void): Logger {
  const line = (event: string, fields?: object) => trace(who, 'log', event, fields);
  const log: Logger = { info: line, warn: line, error: line, with: () => log };
  return log;
}
