import { type Agent, type AgentSetup, startAgent } from '../../agent/agent.ts';
import type { OrderTracker } from '../../bench/fleet/order-tracker.ts';
import { fleetPanel, type OnScreen } from '../../bench/fleet/order-tracker.ts';
import { type Clock, withDeadline } from '../../lib/clock.ts';
import { MissingPeerError, PayboxError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';

/** A complete box of the fleet in this process. */
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
const STARTING_MAX = 8;

/**
 * Starts the boxes a few at a time and adds each to `boxes` once registered, until the signal. Throws MissingPeerError for the
 * first that does not register.
 */
export async function startFleetBoxes(
  setups: readonly AgentSetup[],
  boxes: FleetBox[],
  { tracker, ...deps }: Omit<FleetBoxDeps, 'onScreen'> & { tracker: Pick<OrderTracker, 'drawn'> },
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([deps.signal, failed.signal]);
  const waiting = setups.values();
  const startSome = async () => {
    for (const setup of waiting) {
      if (signal.aborted) return;
      const onScreen: OnScreen = (frame, scene) => tracker.drawn(setup.identity.terminalCode, frame, scene);
      try {
        boxes.push(await startFleetBox(setup, { ...deps, onScreen, signal }));
      } catch (error) {
        failed.abort();
        throw error;
      }
    }
  };
  const starting = Array.from({ length: STARTING_MAX }, startSome);
  // Otherwise a box that is still starting would outlive the failure of another.
  await Promise.allSettled(starting);
  await Promise.all(starting);
}

/** Starts a box with a panel in memory and waits until it is registered. Throws MissingPeerError. */
export async function startFleetBox(setup: AgentSetup, deps: FleetBoxDeps): Promise<FleetBox> {
  const { clock, random, log, onScreen, signal } = deps;
  const { terminalCode, serialNumber } = setup.identity;
  const beganMs = clock.monotonicMs();
  const displays = [{ driver: 'fleet', open: async () => fleetPanel(onScreen, clock) }] as const;
  const world = {
    clock,
    random,
    log: log.with({ program: terminalCode }),
    terminal: undefined,
    terminalInput: undefined,
  };
  const agent = await startAgent({ ...setup, displays }, world);
  try {
    await untilRegistered(agent, clock, signal);
  } catch (error) {
    await agent.close();
    throw error;
  }
  const registeredMs = clock.monotonicMs() - beganMs;
  return {
    terminalCode,
    serialNumber,
    registeredMs,
    isOnline: () => agent.box.status().online,
    announcements: () => announcementsIn(agent.box.metrics()),
    close: () => agent.close(),
  };
}

async function untilRegistered({ box }: Agent, clock: Clock, signal: AbortSignal): Promise<void> {
  const settled = Promise.withResolvers<true>();
  const look = () => {
    if (box.status().online || signal.aborted) settled.resolve(true);
  };
  const unwatch = box.onChange(look);
  signal.addEventListener('abort', look);
  try {
    look();
    if (await withDeadline(clock, REGISTER_TIMEOUT_MS, settled.promise)) return;
    const { terminalCode, link } = box.status();
    const why = `it did not register within ${REGISTER_TIMEOUT_MS / 1000} s: ${link.reason ?? 'no reason known'}`;
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
