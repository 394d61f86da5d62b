import type { Clock } from '../../lib/clock.ts';
import { percentile } from '../reports/percentiles.ts';
import type { Measurements } from './tally.ts';

interface ProgressStreams {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

const CLEAR_LINE = '\r\u001b[2K';
const COLUMNS = 80;
const LIVE_MS = 200;
const PLAIN_MS = 5_000;

/** How far a fleet is: one live line on a terminal, else a line every few seconds; until the signal. */
export async function tellProgress(
  out: ProgressStreams,
  { line, clock, signal }: { line: () => string; clock: Clock; signal: AbortSignal },
): Promise<void> {
  const isLive = out.isTTY === true;
  while (!signal.aborted) {
    if (isLive) out.write(`${CLEAR_LINE}${line().slice(0, (out.columns ?? COLUMNS) - 1)}`);
    else out.write(`${line()}\n`);
    await clock.sleep(isLive ? LIVE_MS : PLAIN_MS, signal);
  }
  if (isLive) out.write(CLEAR_LINE);
}

/** Boxes online, pushes, their answers by code, payments and percentiles so far. */
export function progressLine(online: number, boxes: number, tally: Measurements): string {
  const answers = [...tally.answers].sort().map(([code, count]) => `${count} ${code}`);
  const [p50, p99] = [percentile(tally.confirmedMs, 0.5), percentile(tally.confirmedMs, 0.99)];
  const waits = p50 === undefined || p99 === undefined ? [] : [`p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`];
  return [
    `${online}/${boxes} online`,
    `${tally.pushes} pushes`,
    ...(answers.length === 0 ? [] : [answers.join(', ')]),
    `${tally.payments} payments`,
    ...waits,
  ].join(' · ');
}
