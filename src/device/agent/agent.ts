import { withDeadline } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { type Ends, endAll, endInOrder, STOP_BUDGET_MS } from '../../lib/shutdown.ts';
import { isExposed, isLoopbackHost } from '../../lib/tls.ts';
import { statusView, view } from '../box/view.ts';
import type { BoxApi, BoxStatus, Journal } from './contract.ts';
import type { Link } from './link/link.ts';
import type { Loop } from './loop.ts';
import { startLocalHttp } from './pages/server.ts';
import type { Peripherals } from './peripherals/parts.ts';
import { endsOf } from './screen/ends.ts';
import type { Screen } from './screen/screen.ts';
import { type Face, openFace } from './stages/face.ts';
import { openLine } from './stages/line.ts';
import { type Mind, openMind } from './stages/mind.ts';
import { LINK_SCHEMES } from './transports/registry.ts';
import type { AgentSetup, AgentWorld } from './world.ts';

/**
 * The link waits at most this long for the displays' first attempt, so that a hanging display does not block payments.
 */
const FIRST_DISPLAY_WAIT_MS = 10_000;

export interface Agent {
  /** The origin of the box's own pages, for example `http://127.0.0.1:8810`. */
  readonly origin: string;
  readonly box: BoxApi;
  /** Settles once the loop has processed an event for this call; never while the loop is stuck. */
  ping(): Promise<void>;
  /**
   * Stops accepting work, says goodbye to the gateway, blanks the displays or leaves them (`onStop`), and releases
   * everything. It abandons each part that hangs after `withinMs`. Safe to call twice.
   */
  close(withinMs?: number): Promise<void>;
}

/**
 * Starts a box: journal, displays, loop, pages, and the link last, so that no message arrives before the box can show
 * it. Settles once the pages answer. A failed display or disk is not an error, because the box reports it as a state.
 * Throws ConfigError when the port is not available or another program has the journal open.
 */
export async function startAgent(given: AgentSetup, around: AgentWorld): Promise<Agent> {
  const isFaulty = given.faults === true;
  const injected = isFaulty ? (await import('./faults/inject.ts')).injectFaults(given, around) : undefined;
  const { setup, deps: world } = injected ?? { setup: given, deps: around };
  const branch = injected?.branch ?? (await import('./faults/none.ts')).noFaults;
  tellExposure(setup, world.log);
  const mind = await openMind(setup, world, (journal) => injected?.journal(journal) ?? journal);
  const face = openFace(setup, world, mind);
  const link = openLine(setup, world, mind, face);
  const box = boxApi(setup, mind, face, { ...mind, ...face, link });
  const { loop, journal, working } = mind;
  const { screens, parts } = face;
  const http = await startLocalHttp(setup.http, box, { ...world, branch }).catch(async (error: unknown) => {
    await endAll(parts.ends(), STOP_BUDGET_MS, world);
    journal.close();
    throw error;
  });
  const running = loop.run();
  const opened = Promise.all(screens.map((screen) => screen.start()));
  void withDeadline(world.clock, FIRST_DISPLAY_WAIT_MS, opened).then(() => {
    if (!working.signal.aborted) link.start();
  });

  const close = async (withinMs: number) => {
    working.abort();
    const ends: Ends = { link: () => link.close(), pages: () => http.close(), ...endsOf(screens, setup.onStop) };
    const finish = async () => {
      loop.stop();
      await running;
      journal.close();
    };
    // The displays end before the loop, because the loop must still record what they have drawn.
    await endInOrder([{ ...ends, ...parts.ends() }, { journal: finish }], withinMs, world);
    injected?.faults.endAll();
  };
  let closing: Promise<void> | undefined;
  return {
    origin: http.origin,
    box,
    ping: () => loop.ping(),
    close: (withinMs = STOP_BUDGET_MS) => {
      closing ??= close(withinMs);
      return closing;
    },
  };
}

/** Logs what others on the network can do or see. */
function tellExposure({ link: { gateway }, http }: AgentSetup, log: Logger): void {
  if (isExposed(gateway, LINK_SCHEMES))
    log.warn('link-not-encrypted', { gateway, reason: 'others on the network can read and change messages' });
  if (http.token !== undefined || isLoopbackHost(http.host)) return;
  log.info('pages-restricted', { host: http.host, reason: 'other machines see the screen only; set http.token' });
}

/** Returns the box, as its pages see it. */
function boxApi(setup: AgentSetup, mind: Mind, { screens, parts }: Face, sources: StatusSources): BoxApi {
  const { loop, metrics, changed, press } = mind;
  const [primary] = screens;
  return {
    status: () => statusOf(setup, sources),
    scene: () => view(loop.state),
    frame: () => primary.frame(),
    onChange: (listener) => changed.add(listener),
    press,
    sound: () => parts.sound(),
    metrics: () => metrics.text(loop.state),
  };
}

/** The parts that make up a status. */
interface StatusSources {
  loop: Loop;
  journal: Journal;
  /** The first display confirms pushes. */
  screens: readonly [Screen, ...Screen[]];
  link: Link;
  parts: Peripherals;
}

/** Returns the current `/status` of the box. */
function statusOf(
  setup: { link: { transport: string; gateway: string }; version: string },
  { loop, journal, screens, link, parts }: StatusSources,
): BoxStatus {
  const { transport, gateway } = setup.link;
  const { connectedAtMs, reason } = link.status();
  const connectedAt = connectedAtMs === undefined ? null : new Date(connectedAtMs).toISOString();
  return {
    ...statusView(loop.state),
    display: screens[0].status(),
    displays: screens.map((screen) => screen.status()),
    ...parts.status(),
    journal: { ...journal.status(), unwritten: loop.unwritten },
    link: { transport, gateway, plain: isExposed(gateway, LINK_SCHEMES), connectedAt, reason: reason ?? null },
    version: setup.version,
  };
}
