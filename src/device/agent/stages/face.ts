import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../lib/clock.ts';
import type { Logger } from '../../../lib/log.ts';
import { view } from '../../box/view.ts';
import type { Scene } from '../../scene.ts';
import { Peripherals } from '../peripherals/parts.ts';
import { screenEvent } from '../screen/outcome.ts';
import { type ConfiguredDisplay, displayIo, Screen, type ScreenOutcome } from '../screen/screen.ts';
import type { AgentSetup, AgentWorld } from '../world.ts';
import type { Mind } from './mind.ts';

/** The parts that people see, hear and press. */
export interface Face {
  /** The first display confirms pushes. */
  screens: readonly [Screen, ...Screen[]];
  parts: Peripherals;
}

/** Returns the second stage of a box: its displays, which are not open yet, its voice, light and buttons. */
export function openFace(setup: AgentSetup, world: AgentWorld, mind: Mind): Face {
  const { clock, log } = world;
  const { loop, metrics, changed, dispatch, press, toldMs } = mind;
  const parts = new Peripherals(setup.parts, { clock, log, press, changed: () => changed.call(), toldMs });
  const screens = screensOf(setup, { ...world, clock: toldClock(clock, toldMs) }, (outcome, isPrimary) => {
    metrics.countDraw(outcome.ok);
    if (isPrimary) {
      logPaid(log, outcome);
      dispatch(screenEvent(outcome));
    }
    changed.call();
  });
  let shown: Scene | undefined;
  loop.hear({
    show: (state) => {
      const scene = view(state);
      if (!isDeepStrictEqual(scene, shown)) {
        shown = scene;
        for (const screen of screens) screen.present(scene);
      }
      changed.call();
    },
    announce: (payments, repeats) => {
      metrics.countAnnouncements(payments.length);
      parts.announce(payments);
      parts.repeat(repeats);
    },
  });
  return { screens, parts };
}

function screensOf(
  { displays, dataDir }: AgentSetup,
  world: AgentWorld,
  onOutcome: (outcome: ScreenOutcome, isPrimary: boolean) => void,
): [Screen, ...Screen[]] {
  const io = { ...displayIo(world), cacheDir: dataDir };
  const screenOf = (display: ConfiguredDisplay, isPrimary: boolean) =>
    new Screen(display, { ...world, io, onOutcome: (outcome) => onOutcome(outcome, isPrimary) });
  const [first, ...others] = displays;
  return [screenOf(first, true), ...others.map((display) => screenOf(display, false))];
}

/**
 * Returns a clock with the calendar time that the box received, else with its own. It dates screens, and darkens them
 * at night.
 */
function toldClock(clock: Clock, told: () => number | undefined): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => told() ?? clock.wallMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}

/** Logs that a payment was on the screen. Shops ask for this afterwards, not only whether the box received it. */
function logPaid(log: Logger, outcome: ScreenOutcome): void {
  const { scene } = outcome;
  if (outcome.ok && scene?.kind === 'paid') log.info('payment-shown', { transactionId: scene.transactionId });
}
