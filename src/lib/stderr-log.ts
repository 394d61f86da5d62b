import { systemClock } from './clock.ts';
import { createLogger, type Logger } from './log.ts';
import { withoutRepeats } from './repeats.ts';

/** A log on standard error: lines for people on a terminal, JSON for a journal. What others repeat is counted. */
export function stderrLog(): Logger {
  // Whoever read the log may go away; a box goes on.
  process.stderr.on('error', () => undefined);
  const ending = new AbortController();
  process.once('exit', () => ending.abort());
  const log = createLogger(process.stderr, systemClock, process.stderr.isTTY ? 'text' : 'json');
  return withoutRepeats(log, systemClock, ending.signal);
}
