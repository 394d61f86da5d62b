import { isDeepStrictEqual } from 'node:util';
import { restore } from '../box/restore.ts';
import type { BoxEvent, BoxState, Send } from '../box/state.ts';
import { statusView, view } from '../box/view.ts';
import type { SerialSettings, TerminalInput } from '../display/contract.ts';
import { openSerial } from '../display/io/serial.ts';
import { type Clock, withDeadline } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import type { Scene } from '../scene.ts';
import type { BoxStatus, BoxWindow, Key, Session, TransportIo } from './contract.ts';
import { openJournal } from './journal.ts';
import { Link } from './link.ts';
import { startLocalHttp } from './local-http.ts';
import { Loop } from './loop.ts';
import { AgentMetrics } from './metrics.ts';
import { eventOf, verdictOf } from './outcome.ts';
import { Parts, type PartsSetup } from './parts.ts';
import { type ConfiguredDisplay, Screen } from './screen.ts';

/** How long the link waits for the displays' first attempt; a display that hangs must not keep a payment away. */
const FIRST_DISPLAY_WAIT_MS = 5_000;

/** Everything an agent is told from outside, already decoded. Durations are milliseconds. */
export interface AgentSetup {
  identity: { terminalCode: string; serialNumber: string; secret: string };
  version: string;
  /** The first display is the one that confirms a push. */
  displays: readonly [ConfiguredDisplay, ...ConfiguredDisplay[]];
  link: {
    transport: string;
    /** Where the gateway is, as a person would write it. */
    gateway: string;
    open(io: TransportIo, signal: AbortSignal): Promise<Session>;
  };
  http: { host: string; port: number };
  parts: PartsSetup;
  dataDir: string;
  paidHoldMs: number;
  endedHoldMs: number;
}

export interface AgentDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  /** The terminal that the agent runs in, if a terminal display may draw on it. */
  terminal: NodeJS.WriteStream | undefined;
  terminalInput: TerminalInput | undefined;
}

export interface Agent {
  /** Origin of the box's own pages, as in `http://127.0.0.1:8810`. */
  readonly origin: string;
  readonly window: BoxWindow;
  /** Says goodbye to the gateway and ends all that it started; safe to call twice. */
  close(): Promise<void>;
}

/**
 * Starts a box: journal, displays, the loop, its pages, and last the link, so that nothing arrives before it can be
 * shown. Throws a ConfigError when the port cannot be had; a display or a disk that fails is a state, not an error.
 */
export async function startAgent(setup: AgentSetup, deps: AgentDeps): Promise<Agent> {
  const { clock, log } = deps;
  const journal = openJournal(setup.dataDir, setup.identity.terminalCode, deps);
  const metrics = new AgentMetrics();
  const listeners = new Set<() => void>();
  const changed = () => {
    for (const listener of listeners) listener();
  };
  let shown: Scene | undefined;

  const loop: Loop = new Loop(
    restore(boxConfig(setup), journal.load(), { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() }),
    {
      clock,
      log,
      journal,
      show: (state) => {
        const scene = view(state);
        if (!isDeepStrictEqual(scene, shown)) {
          shown = scene;
          for (const screen of screens) screen.present(scene);
        }
        changed();
      },
      send: (sends) => {
        metrics.countSends(sends);
        logSends(log, sends);
        link.send(sends);
      },
      announce: (payments) => parts.announce(payments),
    },
  );
  const dispatch = (event: BoxEvent) => {
    metrics.countEvent(event);
    loop.dispatch(event);
  };
  const press = (key: Key) => {
    if (key === 'repeat') parts.repeat(loop.state.recentPayments[0]);
    else dispatch({ type: 'key', key });
  };
  const parts = new Parts(setup.parts, { clock, log, press, changed });
  const screens = setup.displays.map(
    (display, index) =>
      new Screen(display, {
        clock,
        log,
        io: { ...displayIo(deps), cacheDir: setup.dataDir },
        onOutcome: (outcome) => {
          metrics.countDraw(outcome.ok);
          if (index === 0) {
            logPaid(log, outcome);
            dispatch(eventOf(outcome));
          }
          changed();
        },
      }),
  );
  const [primary] = screens as [Screen, ...Screen[]];
  const link = new Link({
    ...deps,
    identity: setup.identity,
    agentVersion: setup.version,
    display: setup.displays[0].driver,
    open: setup.link.open,
    verdict: (qrCode) => verdictOf(primary, qrCode),
    emit: dispatch,
  });

  const window: BoxWindow = {
    status: () => statusOf(setup, loop.state, { screens, link, parts }),
    scene: () => view(loop.state),
    frame: () => primary.frame(),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    press,
    sound: () => parts.sound(),
    metrics: () => metrics.text(loop.state),
  };
  const http = await startLocalHttp(setup.http, window, { ...deps, stalled: () => loop.stalled() }).catch(
    async (error: unknown) => {
      await parts.close();
      journal.close();
      throw error;
    },
  );
  const running = loop.run();
  const opened = screens.map((screen) => screen.start());
  await withDeadline(clock, FIRST_DISPLAY_WAIT_MS, Promise.all(opened));
  link.start();

  const close = async () => {
    await link.close();
    loop.stop();
    await running;
    await Promise.all([parts.close(), ...screens.map((screen) => screen.close())]);
    await http.close();
    journal.close();
  };
  let closing: Promise<void> | undefined;
  return {
    origin: http.origin,
    window,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** The world as displays may use it. */
export function displayIo({ clock, log, terminal, terminalInput }: Omit<AgentDeps, 'random'>) {
  const openPort = (settings: SerialSettings, signal: AbortSignal) => openSerial(settings, signal, clock);
  return { clock, log, terminal, terminalInput, openSerial: openPort };
}

function logSends(log: Logger, sends: readonly Send[]): void {
  for (const send of sends) {
    const { type } = send;
    if (type === 'rejected') log.warn('push-rejected', { pushId: send.pushId, code: send.code, reason: send.reason });
    else if (type === 'shown') log.info('push-shown', { pushId: send.pushId });
    else if (type === 'ended') log.info('order-ended', { orderId: send.orderId, how: send.how });
    else if (type === 'paid') log.info('payment', { transactionId: send.transactionId, amount: send.amount });
  }
}

/** That a payment was on the screen, and not merely taken, is what a shop asks for afterwards. */
function logPaid(log: Logger, outcome: ScreenOutcome): void {
  const { scene } = outcome;
  if (outcome.ok && scene?.kind === 'paid') log.info('paid-shown', { transactionId: scene.transactionId });
}

function boxConfig(setup: AgentSetup) {
  const { identity, version, paidHoldMs, endedHoldMs } = setup;
  const { terminalCode, serialNumber } = identity;
  return { terminalCode, serialNumber, version, paidHoldMs, endedHoldMs };
}

function statusOf(
  setup: AgentSetup,
  state: BoxState,
  { screens, link, parts }: { screens: readonly Screen[]; link: Link; parts: Parts },
): BoxStatus {
  const displays = screens.map((screen) => screen.status());
  const [display] = displays;
  if (display === undefined) throw new Error('a box has at least one display');
  const { connectedAtMs, reason } = link.status();
  return {
    ...statusView(state),
    display,
    displays,
    ...parts.status(),
    link: {
      transport: setup.link.transport,
      gateway: setup.link.gateway,
      connectedAt: connectedAtMs === undefined ? null : new Date(connectedAtMs).toISOString(),
      reason: reason ?? null,
    },
    version: setup.version,
  };
}
