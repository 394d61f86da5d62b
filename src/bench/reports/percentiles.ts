import { escaped } from './text.ts';

const SHARES = [0.5, 0.9, 0.99, 1] as const;
const BAR_WIDTH = 360;
const ROW_HEIGHT = 22;
const LABEL_WIDTH = 60;

/** The smallest value that at least this share of the values do not exceed; undefined of none. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** The percentiles as bars: a picture that needs no script. */
export function percentilesSvg(what: string, values: readonly number[]): string {
  const longest = Math.max(percentile(values, 1) ?? 0, Number.EPSILON);
  const rows = SHARES.map((share, index) => {
    const ms = percentile(values, share) ?? 0;
    const y = index * ROW_HEIGHT;
    const width = Math.max(1, Math.round((ms / longest) * BAR_WIDTH));
    const label = share === 1 ? 'max' : `p${share * 100}`;
    return (
      `<text x="0" y="${y + 15}">${label}</text>` +
      `<rect x="${LABEL_WIDTH}" y="${y + 3}" width="${width}" height="${ROW_HEIGHT - 6}"/>` +
      `<text x="${LABEL_WIDTH + width + 6}" y="${y + 15}">${ms.toFixed(1)} ms</text>`
    );
  });
  const size = `width="${LABEL_WIDTH + BAR_WIDTH + 110}" height="${SHARES.length * ROW_HEIGHT}"`;
  const title = `${escaped(what)}, ${values.length} times`;
  return `<figure><figcaption>${title}</figcaption><svg ${size} role="img" aria-label="${title}">${rows.join('')}</svg></figure>`;
}
