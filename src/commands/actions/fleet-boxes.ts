import type { OrderTracker } from '../../bench/fleet/order-tracker.ts';
import { fleetPanel, type OnScreen } from '../../bench/fleet/order-tracker.ts';
import { startAgent } from '../../device/agent/agent.ts';
import { LightAgent, type LightSetup } from '../../device/agent/light-agent.ts';
import type { AgentSetup } from '../../device/agent/world.ts';
import { qrTextOf, type Scene } from '../../device/scene.ts';
import { type Clock, withDeadline } from '../../lib/clock.ts';
import { MissingPeerError, PayboxError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';

/** A box of the fleet before it starts: a complete one, or a light one. */
export type FleetSetup = { full: AgentSetup } | { light: LightSetup };

/** A box of the fleet in this process. */
export interface FleetBox {
  readonly terminalCode: string;
  readonly serialNumber: string;
  /** Milliseconds from power-on to the gateway's welcome. */
  readonly registeredMs: number;
  isOnline(): boolean;
  /** Payments announced since it started. */
  announcements(): number;
  close(): Promise<void>;
}

export interface FleetBoxDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Called with what the box's display shows. */
  onScreen: OnScreen;
  /** Ends the wait for the welcome. */
  signal: AbortSignal;
}

const REGISTER_TIMEOUT_MS = 60_000;
const ANNOUNCEMENTS = /^paybox_box_announcements_total (\d+)$/m;

/** Boxes that start at the same time. More would wait for each other and distort the registration times. */
const STARTING_MAX = { full: 8, light: 64 } as const;

/**
 * Starts the boxes a few at a time and adds each to `boxes` once registered, until the signal. Throws MissingPeerError for the
 * first that does not register.
 */
export async function startFleetBoxes(
  setups: readonly FleetSetup[],
  boxes: FleetBox[],
  { tracker, ...deps }: Omit<FleetBoxDeps, 'onScreen'> & { tracker: Pick<OrderTracker, 'drawn'> },
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([deps.signal, failed.signal]);
  const waiting = setups.values();
  const startSome = async () => {
    for (const setup of waiting) {
      if (signal.aborted) return;
      const { terminalCode } = identityOf(setup);
      const onScreen: OnScreen = (qrCode, scene) => tracker.drawn(terminalCode, qrCode, scene);
      try {
        boxes.push(await startFleetBox(setup, { ...deps, onScreen, signal }));
      } catch (error) {
        failed.abort();
        throw error;
      }
    }
  };
  const startingMax = setups.some((it) => 'full' in it) ? STARTING_MAX.full : STARTING_MAX.light;
  const starting = Array.from({ length: startingMax }, startSome);
  // Otherwise a box that is still starting would outlive the failure of another.
  await Promise.allSettled(starting);
  await Promise.all(starting);
}

function identityOf(setup: FleetSetup): { terminalCode: string; serialNumber: string } {
  return 'full' in setup ? setup.full.identity : setup.light.identity;
}

/** Starts a box with a panel in memory, or without one, and waits until it is registered. Throws MissingPeerError. */
async function startFleetBox(setup: FleetSetup, deps: FleetBoxDeps): Promise<FleetBox> {
  const { clock, signal } = deps;
  const { terminalCode, serialNumber } = identityOf(setup);
  const beganMs = clock.monotonicMs();
  const started = 'full' in setup ? await startFull(setup.full, deps) : startLight(setup.light, deps);
  try {
    await untilRegistered(terminalCode, started, clock, signal);
  } catch (error) {
    await started.close();
    throw error;
  }
  const registeredMs = clock.monotonicMs() - beganMs;
  return { ...started, terminalCode, serialNumber, registeredMs };
}

/** A box that has been switched on. */
interface Started extends Pick<FleetBox, 'isOnline' | 'announcements' | 'close'> {
  /** Calls `listener` when the box may have come online; the returned function ends that. */
  onChange(listener: () => void): () => void;
  /** Returns why it is not online. */
  reason(): string | undefined;
}

async function startFull(setup: AgentSetup, { clock, random, log, onScreen }: FleetBoxDeps): Promise<Started> {
  const displays = [{ driver: 'fleet', open: async () => fleetPanel(onScreen, clock) }] as const;
  const world = {
    clock,
    random,
    log: log.with({ program: setup.identity.terminalCode }),
    terminal: undefined,
    terminalInput: undefined,
  };
  const agent = await startAgent({ ...setup, displays }, world);
  const { box } = agent;
  return {
    isOnline: () => box.status().online,
    announcements: () => announcementsIn(box.metrics()),
    close: () => agent.close(),
    onChange: (listener) => box.onChange(listener),
    reason: () => box.status().link.reason ?? undefined,
  };
}

function startLight(setup: LightSetup, { clock, random, log, onScreen }: FleetBoxDeps): Started {
  const onScene = (scene: Scene) => onScreen(qrTextOf(scene) ?? null, scene);
  const agent = new LightAgent(setup, { clock, random, log, onScene });
  return {
    isOnline: () => agent.isOnline,
    announcements: () => agent.announcements,
    close: () => agent.close(),
    onChange: (listener) => agent.onConnection(listener),
    reason: () => agent.reason,
  };
}

async function untilRegistered(terminalCode: string, box: Started, clock: Clock, signal: AbortSignal): Promise<void> {
  const settled = Promise.withResolvers<true>();
  const look = () => {
    if (box.isOnline() || signal.aborted) settled.resolve(true);
  };
  const unwatch = box.onChange(look);
  signal.addEventListener('abort', look);
  try {
    look();
    if (await withDeadline(clock, REGISTER_TIMEOUT_MS, settled.promise)) return;
    const why = `it did not register within ${REGISTER_TIMEOUT_MS / 1000} s: ${box.reason() ?? 'no reason known'}`;
    throw new MissingPeerError(`box ${terminalCode}: ${why}`, 'check that the gateway runs and knows this box');
  } finally {
    unwatch();
    signal.removeEventListener('abort', look);
  }
}

function announcementsIn(metrics: string): number {
  const count = ANNOUNCEMENTS.exec(metrics)?.[1];
  if (count === undefined)
    throw new PayboxError('METRICS', 'a box does not count its announcements', { severity: 'fatal' });
  return Number(count);
}
