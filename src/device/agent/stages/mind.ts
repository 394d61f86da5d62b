import { type Boot, UNKNOWN_BOOT } from '../../../lib/boot.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isExposed } from '../../../lib/tls.ts';
import { isOfBoot, toldMs } from '../../box/calendar.ts';
import { restore } from '../../box/restore.ts';
import type { BoxConfig, BoxEvent, BoxState } from '../../box/state.ts';
import type { Journal, Key } from '../contract.ts';
import { openJournal } from '../journal/journal.ts';
import { Loop } from '../loop.ts';
import { AgentMetrics } from '../metrics.ts';
import { LINK_SCHEMES } from '../transports/registry.ts';
import type { AgentSetup, AgentWorld } from '../world.ts';

/** The memory of a box, and the loop that decides. */
export interface Mind {
  journal: Journal;
  loop: Loop;
  metrics: AgentMetrics;
  /** Aborted when the box stops accepting messages and keys. */
  working: AbortController;
  /** The listeners, called after each change that a page shows. */
  changed: Listeners;
  /** Hands an event to the loop, which decides. */
  dispatch(event: BoxEvent): void;
  /** Hands an event to the loop, unless the box is stopping. */
  take(event: BoxEvent): void;
  press(key: Key): void;
  /** Returns the calendar time; undefined while the box has received none. */
  toldMs(): number | undefined;
}

/** Holds functions and calls them after each change. */
export class Listeners {
  readonly #listeners = new Set<() => void>();

  /** Adds a listener. The returned function removes it. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  call(): void {
    for (const listener of this.#listeners) listener();
  }
}

/**
 * Opens the first stage of a box: its journal, the state in it, and the loop, which does not run yet. A test bench may
 * `wrap` the journal. Throws ConfigError when another program has the journal open.
 */
export async function openMind(
  setup: AgentSetup,
  { clock, log, boot = UNKNOWN_BOOT }: AgentWorld,
  wrap: (journal: Journal) => Journal,
): Promise<Mind> {
  const journal = wrap(openJournal(setup.dataDir, setup.identity.terminalCode, { clock, log }));
  const loop = new Loop(await stateAtStart(boxConfig(setup), journal, boot, clock), { clock, log, journal });
  const metrics = new AgentMetrics();
  const working = new AbortController();
  const dispatch = (event: BoxEvent) => {
    metrics.countEvent(event, loop.state);
    loop.dispatch(event);
  };
  const take = (event: BoxEvent) => {
    if (!working.signal.aborted) dispatch(event);
  };
  return {
    journal,
    loop,
    metrics,
    working,
    changed: new Listeners(),
    dispatch,
    take,
    press: (key) => take({ type: 'key', key }),
    toldMs: () => toldMs(loop.state, clock.monotonicMs()),
  };
}

function boxConfig(setup: AgentSetup) {
  const { identity, version, paidHoldMs, endedHoldMs, sandboxMark = true } = setup;
  const { terminalCode, serialNumber } = identity;
  const plainLink = isExposed(setup.link.gateway, LINK_SCHEMES);
  return { terminalCode, serialNumber, version, paidHoldMs, endedHoldMs, plainLink, sandboxMark };
}

/**
 * Returns the state with which a box starts, from its journal. It checks the calendar clock only if the journal is from
 * another boot, because the check may need some seconds.
 */
async function stateAtStart(config: BoxConfig, journal: Journal, boot: Boot, clock: Clock): Promise<BoxState> {
  const { id, offsetMs } = boot;
  const entries = journal.load();
  const isTimeRight = entries.length > 0 && !isOfBoot(entries, id) && (await boot.isTimeRight());
  const at = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  const inBoot = { ...config, boot: id === undefined ? undefined : { id, offsetMs } };
  return restore(inBoot, { entries, intact: journal.status().complete }, at, isTimeRight);
}
