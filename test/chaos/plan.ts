import { type Seeded, seeded } from '../support/seeded.ts';
import type { Replication } from './database.ts';

/** What can go wrong between a gateway and its money. */
export const FAULT_KINDS = [
  ...(['failover', 'server restarted', 'backend crashed', 'standby down'] as const),
  ...(['log disk full', 'data disk full', 'tablespace full', 'connections taken'] as const),
  ...(['insert revoked', 'update revoked', 'login revoked', 'read-only', 'table locked'] as const),
  ...(['writer hangs', 'backends hang', 'server hangs', 'log writers hang', 'replication hangs'] as const),
  ...(['network silent', 'network slow', 'network cut', 'backends ended'] as const),
  ...(['gateway killed', 'gateway stopped'] as const),
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface PlannedFault {
  kind: FaultKind;
  /** From the begin of the run. */
  atMs: number;
  holdMs: number;
  /** Two numbers in [0, 1), by which the fault chooses among its forms. */
  picks: readonly [number, number];
}

export interface ChaosPlan {
  seed: number;
  replication: Replication;
  faults: readonly PlannedFault[];
}

type Weighted = readonly (readonly [weight: number, range: readonly [least: number, most: number]])[];
/** The first fault of each run: seeds that follow each other have all kinds, and some more often. */
const FIRST: readonly FaultKind[] = [
  ...FAULT_KINDS,
  'failover',
  'backends hang',
  'failover',
  'failover',
  'insert revoked',
  'tablespace full',
  'data disk full',
];
/** Shares no divisor with their number. */
const FIRST_STRIDE = 10;
/** As many seeds that follow each other have every kind of fault. */
export const SEEDS_OF_ALL_KINDS = FIRST.length;
/** What hangs does so for 1 to 20 s, mostly briefly. */
const HANGS_MS: Weighted = [
  [50, [1_000, 3_000]],
  [28, [3_000, 9_000]],
  [22, [9_000, 20_000]],
];
/** Some for so long that the gateway must say that it takes no payments. */
const HOLDS_MS: Weighted = [
  [60, [500, 2_500]],
  [40, [5_500, 7_500]],
];
/** Over as soon as they have begun, or a program that is down. */
const BRIEF: readonly FaultKind[] = [
  'failover',
  'backend crashed',
  'network cut',
  'backends ended',
  'gateway killed',
  'gateway stopped',
];
const BRIEFLY_MS: Weighted = [[1, [100, 1_000]]];
const FIRST_AT_MS_MAX = 500;
const AFTER_MS_MAX = 1_500;
/** These need the standby as it is. */
const WITHOUT_FAILOVER: readonly FaultKind[] = ['failover', 'standby down', 'replication hangs'];

/** The plan of a run, which its seed alone decides. */
export function planOf(seed: number): ChaosPlan {
  const random = seeded(seed);
  const count = random.weighted([
    [50, 1],
    [33, 2],
    [17, 3],
  ] as const);
  const faults: PlannedFault[] = [];
  let endMs = 0;
  while (faults.length < count) {
    const first = FIRST[(seed * FIRST_STRIDE) % FIRST.length] ?? 'failover';
    const kind = faults.length === 0 ? first : (FIRST[random.below(FIRST.length)] ?? first);
    const fault = faultOf(kind, random, faults.length === 0 ? FIRST_AT_MS_MAX : endMs + AFTER_MS_MAX);
    const isTaken = faults.some((it) => it.kind === kind);
    const needStandby = [...faults.map((it) => it.kind), kind].filter((it) => WITHOUT_FAILOVER.includes(it));
    if (isTaken || needStandby.length > 1) continue;
    faults.push(fault);
    endMs = Math.max(endMs, fault.atMs + fault.holdMs);
  }
  // Only without a synchronous standby a failover may lose payments.
  const isSynchronous = random.chance(faults.some(({ kind }) => kind === 'failover') ? 1 / 3 : 1 / 2);
  const replication = isSynchronous ? 'synchronous' : 'asynchronous';
  return { seed, replication, faults: faults.toSorted((a, b) => a.atMs - b.atMs) };
}

function faultOf(kind: FaultKind, random: Seeded, atMsMax: number): PlannedFault {
  const hangs = kind.endsWith('hang') || kind.endsWith('hangs') || kind === 'network silent';
  const holds = BRIEF.includes(kind) ? BRIEFLY_MS : hangs ? HANGS_MS : HOLDS_MS;
  const [least, most] = random.weighted(holds);
  const holdMs = Math.round(least + random.fraction() * (most - least));
  return { kind, atMs: random.below(atMsMax), holdMs, picks: [random.fraction(), random.fraction()] };
}
