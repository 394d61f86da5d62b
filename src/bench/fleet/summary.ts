import { percentile } from '../reports/percentiles.ts';
import { durationsOf, type Figure, PERCENTILES } from './figures.ts';
import type { Measurements } from './tally.ts';

/** What was measured, as rows of cells for people. */
export function summaryOf(figures: readonly Figure[], tally: Measurements): string[][] {
  const durations = [...durationsOf(tally)].filter(([, values]) => values.length > 0);
  const isOfDuration = ({ name }: Figure) => durations.some(([duration]) => name.startsWith(`${duration} `));
  return [
    ['milliseconds', 'count', ...PERCENTILES.map(([label]) => label)],
    ...durations.map(([name, values]) => [
      name,
      String(values.length),
      ...PERCENTILES.map(([, share]) => (percentile(values, share) ?? 0).toFixed(1)),
    ]),
    [],
    ...figures
      .filter((figure) => !isOfDuration(figure))
      .map(({ name, value, unit }) => [name, unit === '' ? String(value) : `${value} ${unit}`]),
  ];
}
