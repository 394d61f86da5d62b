import { isDeepStrictEqual } from 'node:util';
import { toldMs } from '../box/calendar.ts';
import type { Payment } from '../box/entry.ts';
import { activeOrder, type BoxEvent, type BoxState, type Send, shownPushId } from '../box/state.ts';
import { view } from '../box/view.ts';
import { type Boot, UNKNOWN_BOOT } from '../lib/boot.ts';
import { type Clock, withDeadline } from '../lib/clock.ts';
import { ConfigError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import { type Ends, endAll, endInOrder, STOP_BUDGET_MS } from '../lib/shutdown.ts';
import { isExposed, isLoopbackHost } from '../lib/tls.ts';
import { signingKeyOf } from '../protocol/keys.ts';
import type { Scene } from '../scene.ts';
import type { BoxApi, BoxSide, Connection, GatewayAddress, Journal, Key, TransportIo } from './contract.ts';
import { Enroller } from './enrolment/enroller.ts';
import { type BoxSecret, configuredSecret, enrolledSecret } from './enrolment/secret.ts';
import { openJournal } from './journal/journal.ts';
import { Link } from './link/link.ts';
import { Loop } from './loop.ts';
import { AgentMetrics } from './metrics.ts';
import { type LocalHttpOptions, startLocalHttp } from './pages/server.ts';
import { type PeripheralOptions, Peripherals } from './peripherals/parts.ts';
import { endsOf } from './screen/ends.ts';
import { qrCheckOf, screenEvent } from './screen/outcome.ts';
import {
  type ConfiguredDisplay,
  type DisplayWorld,
  displayIo,
  type OnStop,
  Screen,
  type ScreenDeps,
  type ScreenOutcome,
} from './screen/screen.ts';
import { stateAtStart } from './start-state.ts';
import { type StatusSources, statusOf } from './status.ts';
import { LinkMemory } from './transports/link-memory.ts';

/**
 * The link waits at most this long for the displays' first attempt, so that a hanging display does not block payments.
 */
const FIRST_DISPLAY_WAIT_MS = 10_000;

/** All that an agent is started with, already validated. Durations are milliseconds. */
export interface AgentSetup {
  /** Without a secret the box enrols. */
  identity: { terminalCode: string; serialNumber: string; secret?: string };
  /** The gateway at which a box without a secret enrols. */
  enrolment?: GatewayAddress | undefined;
  version: string;
  /** The first display confirms pushes. */
  displays: readonly [ConfiguredDisplay, ...ConfiguredDisplay[]];
  link: {
    transport: string;
    /** The gateway's address, for people. */
    gateway: string;
    open(io: TransportIo, signal: AbortSignal): Promise<Connection>;
  };
  http: LocalHttpOptions;
  parts: PeripheralOptions;
  dataDir: string;
  paidHoldMs: number;
  endedHoldMs: number;
  onStop: OnStop;
  /** Whether screens say SANDBOX where the gateway asks for it (PROTOCOL.md, clause AGT-15); true by default. */
  sandboxMark?: boolean;
  /** Whether faults may be injected; for test benches only. */
  faults?: boolean;
}

/** Without `boot` the box believes no time of before its start. */
export type AgentDeps = DisplayWorld & Pick<ScreenDeps, 'beforePainting'> & { random: Random; boot?: Boot };

export interface Agent {
  /** Origin of the box's own pages, as in `http://127.0.0.1:8810`. */
  readonly origin: string;
  readonly box: BoxApi;
  /** Settles once the loop has processed an event for this call; never while the loop is stuck. */
  ping(): Promise<void>;
  /**
   * Stops accepting work, says goodbye to the gateway, blanks the displays or leaves them (`onStop`), and releases
   * everything. Abandons whatever hangs after `withinMs`. Safe to call twice.
   */
  close(withinMs?: number): Promise<void>;
}

/**
 * Starts a box: journal, displays, loop, pages, and the link last, so that no message arrives before it can be shown.
 * Settles once the pages answer. A failed display or disk is no error: the box reports it as a state.
 * Throws ConfigError when the port is not available or another program has the journal open.
 */
export async function startAgent(given: AgentSetup, world: AgentDeps): Promise<Agent> {
  const isFaulty = given.faults === true;
  const injected = isFaulty ? (await import('./faults/inject.ts')).injectFaults(given, world) : undefined;
  const { setup, deps } = injected ?? { setup: given, deps: world };
  const { clock, log } = deps;
  const { gateway } = setup.link;
  if (isExposed(gateway))
    log.warn('link-plain', { gateway, reason: 'others on the network can read and change messages' });
  if (setup.http.token === undefined && !isLoopbackHost(setup.http.host))
    log.info('pages-screen-only', {
      host: setup.http.host,
      reason: 'other machines see the screen only; set http.token',
    });
  const onDisk = openJournal(setup.dataDir, setup.identity.terminalCode, deps);
  const journal = injected?.journal(onDisk) ?? onDisk;
  const start = await stateAtStart(boxConfig(setup), journal, deps.boot ?? UNKNOWN_BOOT, clock);
  const { loop, screens, link, parts, box, working } = assemble(setup, deps, { journal, start });
  const http = await startLocalHttp(setup.http, box, { ...deps, faultRoutes: injected?.routes }).catch(
    async (error: unknown) => {
      await endAll(parts.ends(), STOP_BUDGET_MS, deps);
      journal.close();
      throw error;
    },
  );
  const running = loop.run();
  const opened = Promise.all(screens.map((screen) => screen.start()));
  void withDeadline(clock, FIRST_DISPLAY_WAIT_MS, opened).then(() => {
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
    // After the displays: the loop must still record what they have drawn.
    await endInOrder([{ ...ends, ...parts.ends() }, { journal: finish }], withinMs, deps);
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

interface Box extends StatusSources {
  box: BoxApi;
  /** Aborted when the box stops accepting messages and keys. */
  working: AbortController;
}

/** Builds the parts of a box and connects them; starts none of loop, displays and link. */
function assemble(setup: AgentSetup, deps: AgentDeps, { journal, start }: { journal: Journal; start: BoxState }): Box {
  const { clock, log } = deps;
  const metrics = new AgentMetrics();
  const working = new AbortController();
  const listeners = new Set<() => void>();
  const changed = () => {
    for (const listener of listeners) listener();
  };
  let shown: Scene | undefined;
  const show = (state: BoxState) => {
    const scene = view(state);
    if (!isDeepStrictEqual(scene, shown)) {
      shown = scene;
      for (const screen of screens) screen.present(scene);
    }
    changed();
  };
  const send = (sends: readonly Send[]) => {
    metrics.countSends(sends);
    logSends(log, sends);
    link.send(sends);
  };
  const announce = (payments: readonly Payment[], repeats: readonly Payment[]) => {
    metrics.countAnnouncements(payments.length);
    parts.announce(payments);
    parts.repeat(repeats);
  };
  const loop = new Loop(start, { clock, log, journal, show, send, announce });
  const dispatch = (event: BoxEvent) => {
    metrics.countEvent(event, loop.state);
    loop.dispatch(event);
  };
  const take = (event: BoxEvent) => {
    if (!working.signal.aborted) dispatch(event);
  };
  const press = (key: Key) => take({ type: 'key', key });
  const told = () => toldMs(loop.state, clock.monotonicMs());
  const parts = new Peripherals(setup.parts, { clock, log, press, changed, toldMs: told });
  const screens = screensOf(setup, { ...deps, clock: toldClock(clock, told) }, (outcome, isPrimary) => {
    metrics.countDraw(outcome.ok);
    if (isPrimary) {
      logPaid(log, outcome);
      dispatch(screenEvent(outcome));
    }
    changed();
  });
  const [primary] = screens;
  const side = sideOf(setup, deps, loop);
  const link = new Link({
    ...deps,
    identity: setup.identity,
    secret: secretOf(setup, deps, take),
    // New at each start, so that no stolen disk contains it.
    key: signingKeyOf(deps.random.secret(32)),
    agentVersion: setup.version,
    display: setup.displays[0].driver,
    open: (io, signal) => setup.link.open({ ...io, box: side }, signal),
    checkQr: (qrCode) => qrCheckOf(primary, qrCode),
    shownPushId: () => shownPushId(loop.state),
    emit: (event) => {
      take(event);
      return loop.drained();
    },
  });
  const sources: StatusSources = { loop, journal, screens, link, parts };
  const box: BoxApi = {
    status: () => statusOf(setup, sources),
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
  return { ...sources, box, working };
}

/** Returns a clock with the calendar that the box was told, or else its own: screens show dates, and are dark at night, by it. */
function toldClock(clock: Clock, told: () => number | undefined): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => told() ?? clock.wallMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}

function sideOf({ dataDir }: AgentSetup, { log, boot = UNKNOWN_BOOT }: AgentDeps, loop: Loop): BoxSide {
  return {
    boot,
    memory: new LinkMemory(dataDir, log),
    showing: () => activeOrder(loop.state.stage)?.order,
    processed: () => loop.ping(),
  };
}

/** Throws ConfigError for a box with neither a secret nor a gateway to enrol at. */
function secretOf(
  { identity, enrolment, dataDir }: AgentSetup,
  deps: AgentDeps,
  emit: (event: BoxEvent) => void,
): BoxSecret {
  if (identity.secret !== undefined) return configuredSecret(identity.secret);
  if (enrolment === undefined) throw new ConfigError('a box without a secret needs an enrolment');
  return enrolledSecret({ ...deps, dataDir, enroller: new Enroller({ ...deps, identity, at: enrolment, emit }) });
}

function screensOf(
  { displays, dataDir }: AgentSetup,
  deps: AgentDeps,
  onOutcome: (outcome: ScreenOutcome, isPrimary: boolean) => void,
): [Screen, ...Screen[]] {
  const io = { ...displayIo(deps), cacheDir: dataDir };
  const screenOf = (display: ConfiguredDisplay, isPrimary: boolean) =>
    new Screen(display, { ...deps, io, onOutcome: (outcome) => onOutcome(outcome, isPrimary) });
  const [first, ...others] = displays;
  return [screenOf(first, true), ...others.map((display) => screenOf(display, false))];
}

/** Shops ask afterwards whether a payment was on the screen, not only whether it was received. */
function logPaid(log: Logger, outcome: ScreenOutcome): void {
  const { scene } = outcome;
  if (outcome.ok && scene?.kind === 'paid') log.info('paid-shown', { transactionId: scene.transactionId });
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

function boxConfig(setup: AgentSetup) {
  const { identity, version, paidHoldMs, endedHoldMs, sandboxMark = true } = setup;
  const { terminalCode, serialNumber } = identity;
  const plainLink = isExposed(setup.link.gateway);
  return { terminalCode, serialNumber, version, paidHoldMs, endedHoldMs, plainLink, sandboxMark };
}
