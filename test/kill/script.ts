import { type Seeded, seeded } from '../support/seeded.ts';
import type { Proofs } from './feeds.ts';
import type { Reaction } from './partner.ts';
import type { ProgramName } from './program.ts';

/** How a world is put together; several runs share one. */
export interface WorldKind {
  name: string;
  link: 'mosquitto' | 'embedded' | 'http';
  /** Whether box and gateway speak the public dialect, with a tap between box and broker. */
  dialect?: true;
  /** Whether money is told by sources, and how they prove who they are; without, only by test callbacks. */
  sources?: Proofs;
  /** Default SQLite. */
  store?: 'PostgreSQL';
  qrLifetimeSeconds: number;
}

/** Half of the seeds go over Mosquitto; in the brief worlds a QR is over before the run is. */
const KINDS: readonly (readonly [weight: number, kind: WorldKind])[] = [
  [40, { name: 'mosquitto', link: 'mosquitto', qrLifetimeSeconds: 300 }],
  [10, { name: 'mosquitto, brief QRs', link: 'mosquitto', qrLifetimeSeconds: 1 }],
  [24, { name: 'embedded broker', link: 'embedded', qrLifetimeSeconds: 300 }],
  [6, { name: 'embedded broker, brief QRs', link: 'embedded', qrLifetimeSeconds: 1 }],
  [20, { name: 'http', link: 'http', qrLifetimeSeconds: 300 }],
];

/** `order` is the number of an order of this run, from 0. */
export type Action =
  | { do: 'push' | 'pay' | 'cancel'; order: number }
  /** A payment whose content no order has. */
  | { do: 'pay-stray' }
  /** A person presses the key at the box. */
  | { do: 'dismiss' };

export interface Step {
  action: Action;
  /** The next step begins without waiting for this one's answer. */
  overlaps: boolean;
  /** Everything is up again before this step begins. */
  afterRecovery: boolean;
}

export interface Kill {
  victims: readonly ProgramName[];
  /** The step during or after which the victims die. */
  step: number;
  /** From the step's begin, from the next callback to the partner, or from the next such line of the agent. */
  from: 'step' | 'callback' | 'push-shown' | 'payment' | 'registered';
  delayMs: number;
  /** How long the victims stay dead. */
  downMs: number;
}

export interface Script {
  seed: number;
  kind: WorldKind;
  steps: readonly Step[];
  kills: readonly Kill[];
  reactions: readonly Reaction[];
  /** Whether the run ends only when its QR has expired; in brief worlds only. */
  waitsForExpiry: boolean;
}

const STEPS_MAX = 7;

/** What the run of this seed does. The moments of the kills are as exact as the machine's timers. */
export function scriptOf(seed: number): Script {
  const random = seeded(seed);
  const kind = random.weighted(KINDS);
  const steps = stepsOf(random);
  const count = random.weighted([
    [84, 1],
    [12, 2],
    [4, 3],
  ]);
  const kills = Array.from({ length: count }, () => killOf(random, kind, steps.length));
  const reactions = Array.from({ length: random.chance(0.25) ? 1 + random.below(2) : 0 }, () =>
    random.weighted<Reaction>([
      [1, 'fail'],
      [1, 'hang-up'],
    ]),
  );
  const waitsForExpiry = kind.qrLifetimeSeconds < 10 && random.chance(0.5);
  return { seed, kind, steps, kills, reactions, waitsForExpiry };
}

function stepsOf(random: Seeded): Step[] {
  const actions: Action[] = [{ do: 'push', order: 0 }];
  let newest = 0;
  const length = 2 + random.below(STEPS_MAX - 1);
  while (actions.length < length) {
    const older = random.below(newest + 1);
    const action = random.weighted<Action>([
      [24, { do: 'push', order: newest + 1 }],
      [8, { do: 'push', order: newest }],
      [40, { do: 'pay', order: newest }],
      [12, { do: 'pay', order: older }],
      [7, { do: 'cancel', order: newest }],
      [5, { do: 'pay-stray' }],
      [4, { do: 'dismiss' }],
    ]);
    actions.push(action);
    if ('order' in action) newest = Math.max(newest, action.order);
  }
  if (!actions.some(({ do: what }) => what === 'pay')) actions.push({ do: 'pay', order: newest });
  return actions.map((action) => ({
    action,
    overlaps: random.chance(0.15),
    afterRecovery: random.chance(0.5),
  }));
}

function killOf(random: Seeded, { link, qrLifetimeSeconds }: WorldKind, steps: number): Kill {
  const broker = link === 'mosquitto' ? 1 : 0;
  const from = random.weighted<Kill['from']>([
    [60, 'step'],
    [12, 'callback'],
    [8, 'push-shown'],
    [12, 'payment'],
    [8, 'registered'],
  ]);
  const victims = random.weighted<readonly ProgramName[]>([
    [42, ['agent']],
    [30, ['gateway']],
    // A payment that was told, while its report is lost with both, is the one that comes again.
    [from === 'payment' ? 60 : 14, ['gateway', 'agent']],
    [broker * 18, ['broker']],
    [broker * 5, ['broker', 'agent']],
    [broker * 5, ['broker', 'gateway']],
    [broker * 4, ['broker', 'gateway', 'agent']],
  ]);
  const widthMs = random.weighted([
    [60, from === 'step' ? 25 : 3],
    [25, 80],
    [15, 400],
  ]);
  const briefly = qrLifetimeSeconds < 10 && random.chance(0.6);
  const downMs = briefly ? qrLifetimeSeconds * 1000 + random.below(500) : random.chance(0.6) ? 0 : random.below(200);
  return { victims, step: random.below(steps), from, delayMs: random.fraction() * widthMs, downMs };
}
