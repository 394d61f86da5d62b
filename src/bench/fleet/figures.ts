import { percentile } from '../reports/percentiles.ts';
import type { FleetOrder, OrderTracker } from './ledger.ts';
import type { Measurements } from './tally.ts';

/** One figure, as `--json` prints it. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
}

/** Bytes that the process holds: before there was a box, with all of them registered, and at most. */
export interface Memory {
  beforeBytes: number;
  withBoxesBytes: number;
  mostBytes: number;
}

const MEGABYTE = 1_000_000;
/** What is told of each duration. */
export const PERCENTILES = [
  ['p50', 0.5],
  ['p90', 0.9],
  ['p99', 0.99],
  ['max', 1],
] as const;

/** The measured durations, by what they are called. */
export function durationsOf({
  registeredMs,
  confirmedMs,
  paidShownMs,
  reportedMs,
}: Measurements): Map<string, readonly number[]> {
  return new Map([
    ['registration', registeredMs],
    ['send-qr to confirmed', confirmedMs],
    ['payment to on screen', paidShownMs],
    ['payment to reported', reportedMs],
  ]);
}

/** Everything that a run has measured. A duration of which there is none is left out. */
export function figuresOf(boxes: number, tally: Measurements, ledger: OrderTracker, memory: Memory): Figure[] {
  const { told, left } = ledger.problems;
  const ends = Map.groupBy(ledger.orders, ({ over }) => over ?? 'open');
  const endedAs = (how: NonNullable<FleetOrder['over']> | 'open') => count(`orders ${how}`, ends.get(how)?.length ?? 0);
  const durations = [...durationsOf(tally)].flatMap(([name, values]) =>
    PERCENTILES.flatMap(([label, share]) => ms(`${name} ${label}`, percentile(values, share))),
  );
  return [
    count('boxes', boxes),
    { name: 'all registered', value: rounded(tally.allRegisteredMs / 1000), unit: 's' },
    count('pushes', tally.pushes),
    { name: 'pushes a second', value: rounded((tally.pushes * 1000) / Math.max(1, tally.loadMs)), unit: '1/s' },
    ...[...tally.answers].sort().map(([code, times]) => count(`answers ${code}`, times)),
    count('payments', tally.payments),
    ...(['paid', 'replaced', 'expired', 'open'] as const).map(endedAs),
    ...durations,
    megabytes('memory', memory.mostBytes),
    megabytes('memory per box', (memory.withBoxesBytes - memory.beforeBytes) / Math.max(1, boxes)),
    count('problems', told.length + left),
  ];
}

function count(name: string, value: number): Figure {
  return { name, value, unit: '' };
}

function ms(name: string, value: number | undefined): Figure[] {
  return value === undefined ? [] : [{ name, value: rounded(value), unit: 'ms' }];
}

function megabytes(name: string, bytes: number): Figure {
  return { name, value: rounded(bytes / MEGABYTE), unit: 'MB' };
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
