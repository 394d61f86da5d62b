import { escaped } from './text.ts';

/** What tables tell of a distribution, with the share of the values that are not above it. */
export const PERCENTILES = [
  ['p50', 0.5],
  ['p90', 0.9],
  ['p99', 0.99],
  ['max', 1],
] as const;

/** The smallest value that at least this share of the values do not exceed; undefined of none. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** Rows of cells, with a heading: count and percentiles of each duration, in milliseconds. Those without values are left out. */
export function percentileRows(durations: ReadonlyMap<string, readonly number[]>): string[][] {
  return [
    ['milliseconds', 'count', ...PERCENTILES.map(([label]) => label)],
    ...[...durations]
      .filter(([, values]) => values.length > 0)
      .map(([name, values]) => [
        name,
        String(values.length),
        ...PERCENTILES.map(([, share]) => (percentile(values, share) ?? 0).toFixed(1)),
      ]),
  ];
}

/** The same rows as an HTML table; empty without values. */
export function percentileTable(durations: ReadonlyMap<string, readonly number[]>): string {
  const [heading = [], ...rows] = percentileRows(durations);
  if (rows.length === 0) return '';
  const cells = (tag: 'td' | 'th', row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return `<table class="latencies"><thead>${cells('th', heading)}</thead>
<tbody>${rows.map((row) => cells('td', row)).join('\n')}</tbody></table>`;
}
