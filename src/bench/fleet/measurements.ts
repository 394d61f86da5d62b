import type { Clock } from '../../lib/clock.ts';
import { PERCENTILES, percentile, percentileRows } from '../engine/reports/percentiles.ts';
import { liveLine, type TerminalStream } from '../engine/reports/progress.ts';
import type { FleetOrder, OrderTracker } from './order-tracker.ts';

/** Collects the measurements of a run. Durations are in milliseconds. */
export class Measurements {
  /** The time from the send-qr call to its SUCCESS. */
  readonly confirmedMs: number[] = [];
  /** The time from the call of the test callback to the first screen with the payment. */
  readonly paidShownMs: number[] = [];
  /** The time from the payment's arrival at the gateway to the box's report, on the gateway's clock. */
  readonly reportedMs: number[] = [];
  /** The time from power-on to the gateway's welcome. */
  readonly registeredMs: number[] = [];
  /** The number of send-qr answers by code, and of failures before send-qr by their name. */
  readonly answers = new Map<string, number>();
  payments = 0;
  /** The duration of the load. */
  loadMs = 0;
  /** The time until all boxes were registered. */
  allRegisteredMs = 0;

  get pushes(): number {
    return [...this.answers.values()].reduce((sum, count) => sum + count, 0);
  }

  answered(code: string): void {
    this.answers.set(code, (this.answers.get(code) ?? 0) + 1);
  }
}

/** One figure in the output of `--json`. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
}

/** The memory of the process in bytes: before the first box, with all boxes registered, and at its peak. */
export interface Memory {
  beforeBytes: number;
  withBoxesBytes: number;
  mostBytes: number;
}

const KILOBYTE = 1_000;
/** Returns the durations by name. */
function durationsOf(measured: Measurements): Map<string, readonly number[]> {
  return new Map([
    ['registration', measured.registeredMs],
    ['send-qr to confirmed', measured.confirmedMs],
    ['payment to on screen', measured.paidShownMs],
    ['payment to reported', measured.reportedMs],
  ]);
}

/** Returns all figures of a run. It leaves out durations without values. */
export function figuresOf(boxes: number, measured: Measurements, tracker: OrderTracker, memory: Memory): Figure[] {
  const { listed, omitted } = tracker.problems;
  const ends = Map.groupBy(tracker.orders, ({ over }) => over ?? 'open');
  const endedAs = (how: NonNullable<FleetOrder['over']> | 'open') => count(`orders ${how}`, ends.get(how)?.length ?? 0);
  const durations = [...durationsOf(measured)].flatMap(([name, values]) =>
    PERCENTILES.flatMap(([label, share]) => ms(`${name} ${label}`, percentile(values, share))),
  );
  return [
    count('boxes', boxes),
    { name: 'all registered', value: rounded(measured.allRegisteredMs / 1000), unit: 's' },
    count('pushes', measured.pushes),
    { name: 'pushes a second', value: rounded((measured.pushes * 1000) / Math.max(1, measured.loadMs)), unit: '1/s' },
    ...[...measured.answers].sort().map(([code, times]) => count(`answers ${code}`, times)),
    count('payments', measured.payments),
    ...(['paid', 'replaced', 'expired', 'open'] as const).map(endedAs),
    ...durations,
    megabytes('memory', memory.mostBytes),
    megabytes('memory per box', (memory.withBoxesBytes - memory.beforeBytes) / Math.max(1, boxes)),
    count('problems', listed.length + omitted),
  ];
}

function count(name: string, value: number): Figure {
  return { name, value, unit: '' };
}

function ms(name: string, value: number | undefined): Figure[] {
  return value === undefined ? [] : [{ name, value: rounded(value), unit: 'ms' }];
}

function megabytes(name: string, bytes: number): Figure {
  return { name, value: Math.round(bytes / KILOBYTE) / KILOBYTE, unit: 'MB' };
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Returns the figures as table rows for people. */
export function summaryOf(figures: readonly Figure[], measured: Measurements): string[][] {
  const durations = durationsOf(measured);
  const isOfDuration = ({ name }: Figure) => [...durations.keys()].some((it) => name.startsWith(`${it} `));
  const counts = figures.filter((figure) => !isOfDuration(figure));
  return [
    ...percentileRows(durations),
    [],
    ...counts.map(({ name, value, unit }) => [name, unit === '' ? String(value) : `${value} ${unit}`]),
  ];
}

const LIVE_MS = 200;
const PLAIN_MS = 5_000;

/** Shows progress until the signal aborts: one live line on a terminal, otherwise a line every few seconds. */
export async function showProgress(
  out: TerminalStream,
  { line, clock, signal }: { line: () => string; clock: Clock; signal: AbortSignal },
): Promise<void> {
  const live = liveLine(out);
  while (!signal.aborted) {
    if (live.isLive) live.show(line());
    else out.write(`${line()}\n`);
    await clock.sleep(live.isLive ? LIVE_MS : PLAIN_MS, signal);
  }
  live.clear();
}

/** Returns the progress so far: boxes online, pushes, answers by code, payments and percentiles. */
export function progressLine(online: number, boxes: number, measured: Measurements): string {
  const answers = [...measured.answers].sort().map(([code, count]) => `${count} ${code}`);
  const [p50, p99] = [percentile(measured.confirmedMs, 0.5), percentile(measured.confirmedMs, 0.99)];
  const waits = p50 === undefined || p99 === undefined ? [] : [`p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`];
  return [
    `${online}/${boxes} online`,
    `${measured.pushes} pushes`,
    ...(answers.length === 0 ? [] : [answers.join(', ')]),
    `${measured.payments} payments`,
    ...waits,
  ].join(' · ');
}
