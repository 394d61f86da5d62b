/** How one target did. */
export interface TargetReport {
  name: string;
  inputs: number;
  taken: number;
  refused: number;
  /** Of processor time; its own children not counted. */
  ms: number;
  /** By the wall clock. */
  slowestMs: number;
  /** The slowest input in hex, its beginning. */
  slowest: string;
  /** Bytes that the process kept at the end and not after the first part. */
  grownBytes: number;
}

/** An input for which a property does not hold. */
export interface Failure {
  target: string;
  /** Its number among the inputs of its target; -1 where it is not known or not of one input. */
  index: number;
  what: string;
  input: string;
}

/** What the child tells its supervisor. */
export type Told = { kind: 'target'; report: TargetReport } | { kind: 'failure'; failure: Failure } | { kind: 'end' };

/** Where the child is, in the file that it shares with its supervisor: target, input, both counted from 0. */
export const PLACE_BYTES = 8;

const HEX_CHARS_MAX = 400;

export function shortHex(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return hex.length <= HEX_CHARS_MAX ? hex : `${hex.slice(0, HEX_CHARS_MAX)}… (${bytes.length} bytes)`;
}

/** The reports as a table for people. */
export function tableOf(reports: readonly TargetReport[]): string {
  const rows = reports.map(({ name, inputs, taken, refused, ms, slowestMs, grownBytes }) => [
    name,
    ...[inputs, taken, refused, Math.round(ms), slowestMs.toFixed(1), Math.round(grownBytes / 1024)].map(String),
  ]);
  const sum = (of: (report: TargetReport) => number) =>
    String(Math.round(reports.reduce((all, it) => all + of(it), 0)));
  const totals = [
    'in all',
    sum((it) => it.inputs),
    sum((it) => it.taken),
    sum((it) => it.refused),
    sum((it) => it.ms),
    '',
    '',
  ];
  const lines = [['target', 'inputs', 'taken', 'refused', 'CPU ms', 'slowest ms', 'grown KiB'], ...rows, totals];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  return lines
    .map((line) =>
      line.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '),
    )
    .join('\n');
}
