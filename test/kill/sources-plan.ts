import { type Seeded, seeded } from '../support/seeded.ts';
import type { Teller } from './feeds.ts';
import type { ProgramName } from './program.ts';
import type { WorldKind } from './script.ts';

/** One movement of money to the account of the box. */
export interface Transfer {
  /** By whom it may be told, and in whose list it is. */
  kind: Teller | 'mixed';
  /** Whose webhooks tell of it, each as often as it stands here; nobody's if they are lost. */
  tellers: Teller[];
  /** Told at the same time. */
  together: boolean;
  /** Money of just now; else of `ageMinutes` ago, which is late. */
  isFresh: boolean;
  ageMinutes: number;
  /** The order that it pays: put on the box, only made, or none. */
  order: 'pushed' | 'generated' | 'none';
  /** The order's amount beside that of the transfer. */
  asks: 'same' | 'less' | 'more';
  /** Whether payOS knows the order, by a number as its orderId. */
  atPayos: boolean;
}

/** A webhook that is sent until it is answered. */
export interface Webhook {
  transfer: number;
  teller: Teller;
  /** Its first answer does not arrive. */
  answerLost: boolean;
}

export interface SourcesKill {
  victims: readonly ProgramName[];
  /** The wave of webhooks in which the victims die. */
  wave: number;
  /** As a credit is stored and nobody has been told; as the first webhook is answered; or some time after the wave began. */
  at: 'stored' | 'answered' | 'begun';
  delayMs: number;
  downMs: number;
}

export interface SourcesPlan {
  transfers: readonly Transfer[];
  /** Each wave is sent at once. */
  waves: readonly (readonly Webhook[])[];
  kills: readonly SourcesKill[];
  /** Who tells of the sale at the end. */
  last: Teller;
  partnerFails: number;
}

const kindOf = (name: string, rest: Pick<WorldKind, 'link' | 'sources' | 'store'>): WorldKind => ({
  name,
  qrLifetimeSeconds: 300,
  ...rest,
});
export const SOURCES_KINDS: readonly WorldKind[] = [
  kindOf('signed sources, SQLite', { link: 'embedded', sources: 'signed' }),
  kindOf('sources with a key, SQLite, HTTP', { link: 'http', sources: 'keyed' }),
  kindOf('signed sources, PostgreSQL', { link: 'http', sources: 'signed', store: 'PostgreSQL' }),
];

const TELLERS: readonly Teller[] = ['sepay', 'casso', 'payos', 'vietqr'];
/** Each source alone, and some money that several tell. */
const KINDS: readonly (Teller | 'mixed')[] = [...TELLERS, 'mixed', 'mixed'];

/** What a run does. The moments of its kills are as exact as the machine's timers. */
export function sourcesPlan(seed: number): SourcesPlan {
  const random = seeded(seed);
  const transfers = KINDS.map((kind) => transferOf(random, kind));
  const waves = wavesOf(random, transfers);
  const count = waves.length === 0 ? 0 : random.chance(0.7) ? 1 : 2;
  return {
    transfers,
    waves,
    kills: Array.from({ length: count }, () => killOf(random, waves.length)),
    last: TELLERS[random.below(TELLERS.length)] ?? 'sepay',
    partnerFails: random.chance(0.3) ? 1 + random.below(3) : 0,
  };
}

function transferOf(random: Seeded, kind: Teller | 'mixed'): Transfer {
  const isFresh = random.chance(0.6);
  // The public service has no list: what it does not tell it tells later.
  const isLost = !isFresh && kind !== 'vietqr' && random.chance(0.5);
  const all = kind === 'mixed' ? TELLERS.filter(() => random.chance(0.6)) : [kind];
  const once = all.length === 0 ? (['casso', 'sepay'] as const) : all;
  const tellers = isLost ? [] : once.flatMap((it) => (random.chance(0.4) ? [it, it] : [it]));
  const atPayos = kind === 'payos' || tellers.includes('payos');
  const order = random.weighted<Transfer['order']>([
    [5, 'pushed'],
    [3, 'generated'],
    [atPayos ? 0 : 2, 'none'],
  ]);
  const asks = random.weighted<Transfer['asks']>([
    [8, 'same'],
    [1, 'less'],
    // payOS would be asked for it again and again.
    [atPayos ? 0 : 1, 'more'],
  ]);
  const together = random.chance(0.6);
  return { kind, tellers, together, isFresh, ageMinutes: 10 + random.below(45), order, asks, atPayos };
}

/** All webhooks in any order, some of them at the same time. */
function wavesOf(random: Seeded, transfers: readonly Transfer[]): Webhook[][] {
  const all = transfers.flatMap(({ tellers, together }, transfer) => {
    const at = random.fraction();
    return tellers.map((teller) => {
      const webhook = { transfer, teller, answerLost: random.chance(0.25) };
      return { webhook, at: together ? at : random.fraction() };
    });
  });
  const waves: Webhook[][] = [];
  let lastAt = -1;
  for (const { webhook, at } of all.toSorted((a, b) => a.at - b.at)) {
    if (at === lastAt || (waves.length > 0 && random.chance(0.3))) waves.at(-1)?.push(webhook);
    else waves.push([webhook]);
    lastAt = at;
  }
  return waves;
}

function killOf(random: Seeded, waves: number): SourcesKill {
  const at = random.weighted<SourcesKill['at']>([
    [4, 'stored'],
    [2, 'answered'],
    [4, 'begun'],
  ]);
  const victims = random.weighted<readonly ProgramName[]>([
    [70, ['gateway']],
    [15, ['gateway', 'agent']],
    [at === 'stored' ? 0 : 15, ['agent']],
  ]);
  const widthMs = random.weighted([
    [60, at === 'begun' ? 20 : 3],
    [30, 80],
    [10, 300],
  ]);
  const delayMs = at === 'stored' ? 0 : random.fraction() * widthMs;
  return { victims, wave: random.below(waves), at, delayMs, downMs: random.chance(0.6) ? 0 : random.below(200) };
}
