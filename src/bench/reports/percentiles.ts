import { escaped } from './text.ts';

const MARKS = [0.5, 0.9, 0.99] as const;
const [LEFT, TOP, WIDTH, HEIGHT, BELOW, BESIDE] = [44, 12, 320, 150, 38, 110];
const POINTS_MAX = 200;
const TICKS = 4;
/** A slowest one so many times as slow as the middle one would press all others against the axis. */
const SKEWED = 20;

/** The smallest value that at least this share of the values do not exceed; undefined of none. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** How the values are distributed, in milliseconds: which share took at most how long. A picture that needs no script. */
export function percentilesSvg(what: string, values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const scale = scaleOf(sorted);
  const marks = MARKS.map((share) => markOf(share, percentile(sorted, share) ?? 0, scale.x));
  const words = [
    ...MARKS.map((share) => `p${share * 100} ${msText(percentile(sorted, share) ?? 0)}`),
    `max ${msText(sorted.at(-1) ?? 0)}`,
  ].map((text, index) => `<text x="${LEFT + WIDTH + 12}" y="${TOP + 14 + index * 18}">${text}</text>`);
  const title = `${escaped(what)}, ${values.length} times`;
  const size = `width="${LEFT + WIDTH + BESIDE}" height="${TOP + HEIGHT + BELOW}"`;
  const parts = [gridOf(scale), `<path class="curve" d="${curveOf(sorted, scale.x)}"/>`, ...marks, ...words];
  return `<figure><figcaption>${title}</figcaption><svg ${size} role="img" aria-label="${title}">${parts.join('')}</svg></figure>`;
}

interface Scale {
  x(ms: number): number;
  ticks: number[];
  isLog: boolean;
}

/** From nothing to the slowest, evenly; by powers of ten where one is much slower than the others. */
function scaleOf(sorted: readonly number[]): Scale {
  const longest = Math.max(sorted.at(-1) ?? 0, 0.1);
  const middle = Math.max(percentile(sorted, MARKS[0]) ?? 0, 0.1);
  if (longest < middle * SKEWED) {
    const step = roundStep(longest / TICKS);
    const end = Math.ceil(longest / step) * step;
    const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, index) => index * step);
    return { x: (ms) => LEFT + (ms / end) * WIDTH, ticks, isLog: false };
  }
  const from = Math.floor(Math.log10(Math.max(sorted[0] ?? 0, 0.1)));
  const to = Math.ceil(Math.log10(longest));
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index));
  const share = (ms: number) => (Math.log10(Math.max(ms, 10 ** from)) - from) / (to - from);
  return { x: (ms) => LEFT + share(ms) * WIDTH, ticks, isLog: true };
}

/** 1, 2 or 5 of a power of ten, and at least the value. */
function roundStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((it) => it * power >= value) ?? 10) * power;
}

function y(share: number): number {
  return TOP + (1 - share) * HEIGHT;
}

function gridOf({ x, ticks, isLog }: Scale): string {
  const shares = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<path class="grid" d="M${LEFT} ${y(share)}h${WIDTH}"/>` +
      `<text x="${LEFT - 6}" y="${y(share) + 4}" text-anchor="end">${share * 100} %</text>`,
  );
  const times = ticks.map(
    (ms) =>
      `<path class="grid" d="M${x(ms).toFixed(1)} ${TOP}v${HEIGHT + 4}"/>` +
      `<text x="${x(ms).toFixed(1)}" y="${TOP + HEIGHT + 17}" text-anchor="middle">${tickText(ms)}</text>`,
  );
  const label = `took at most, in ms${isLog ? ' (by powers of ten)' : ''}`;
  return [
    ...shares,
    ...times,
    `<path class="axis" d="M${LEFT} ${TOP}v${HEIGHT}h${WIDTH}"/>`,
    `<text x="${LEFT + WIDTH / 2}" y="${TOP + HEIGHT + 34}" text-anchor="middle">${label}</text>`,
  ].join('');
}

/** Steps: up by its share at each value. */
function curveOf(sorted: readonly number[], x: Scale['x']): string {
  const every = Math.max(1, Math.ceil(sorted.length / POINTS_MAX));
  const steps = sorted.flatMap((ms, index) => {
    const isShown = index % every === 0 || index === sorted.length - 1;
    return isShown ? [`H${x(ms).toFixed(1)}V${y((index + 1) / sorted.length).toFixed(1)}`] : [];
  });
  return `M${LEFT} ${y(0)}${steps.join('')}H${LEFT + WIDTH}`;
}

function markOf(share: number, ms: number, x: Scale['x']): string {
  const [across, up] = [x(ms).toFixed(1), y(share).toFixed(1)];
  return `<path class="mark" d="M${across} ${y(0)}V${up}"/><circle class="dot" cx="${across}" cy="${up}" r="3.5"/>`;
}

function msText(ms: number): string {
  return `${ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function tickText(ms: number): string {
  return String(Number(ms.toPrecision(2)));
}
