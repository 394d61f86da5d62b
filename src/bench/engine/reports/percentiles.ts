import { escaped } from './text.ts';

/** The columns of the tables: the share of values that are at most the percentile. */
export const PERCENTILES = [
  ['p50', 0.5],
  ['p90', 0.9],
  ['p99', 0.99],
  ['max', 1],
] as const;

/** Returns the smallest value that is at least as large as this share of the values; undefined without values. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/**
 * Returns table rows with a heading: the count and the percentiles of each duration in milliseconds. It leaves out
 * durations without values.
 */
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

/** Returns the rows as an HTML table; an empty text without values. */
export function percentileTable(durations: ReadonlyMap<string, readonly number[]>): string {
  const [heading = [], ...rows] = percentileRows(durations);
  if (rows.length === 0) return '';
  const cells = (tag: 'td' | 'th', row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return `<table class="latencies"><thead>${cells('th', heading)}</thead>
<tbody>${rows.map((row) => cells('td', row)).join('\n')}</tbody></table>`;
}
