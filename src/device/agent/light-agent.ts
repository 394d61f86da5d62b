import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { isExposed } from '../../lib/tls.ts';
import { version } from '../../lib/version.ts';
import { signingKeyOf } from '../../protocol/keys.ts';
import { initialState } from '../box/restore.ts';
import { type BoxConfig, type BoxState, shownPushId } from '../box/state.ts';
import { view } from '../box/view.ts';
import type { Scene } from '../scene.ts';
import type { AgentConfig } from './config.ts';
import type { BoxIdentity, Connection, GatewayAddress, Journal, LightOpener, SessionIo } from './contract.ts';
import { configuredSecret } from './enrolment/secret.ts';
import { Link } from './link/link.ts';
import { Loop } from './loop.ts';
import { screenEvent } from './screen/outcome.ts';
import { type BoxTransport, LINK_SCHEMES } from './transports/registry.ts';

const KEY_BYTES = 32;
const DISPLAY = 'light';

/** This journal remembers nothing. */
const NO_JOURNAL: Journal = {
  load: () => [],
  append: async () => undefined,
  reopen: () => [],
  status: () => ({ ok: true, reason: null, complete: false, setAside: [] }),
  close: () => undefined,
};

export interface LightSetup {
  identity: BoxIdentity;
  config: Omit<BoxConfig, 'terminalCode' | 'serialNumber'>;
  open(io: SessionIo, signal: AbortSignal): Promise<Connection>;
}

export interface LightDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Receives each picture that a display would show. It counts as drawn at once. */
  onScene(scene: Scene): void;
}

/** Builds a light box's setup from its configuration. Throws ConfigError for a box without a secret. */
export function lightSetupOf(
  { box, link, paidHoldSeconds, endedHoldSeconds, sandboxMark }: AgentConfig,
  { options: schema }: BoxTransport,
  opener: LightOpener<GatewayAddress>,
): LightSetup {
  const { transport: _name, ...given } = link;
  const { terminalCode, serialNumber, secret } = box;
  if (secret === undefined) throw new ConfigError(`box ${terminalCode}: a light box needs its secret`);
  const options = schema.parse(given);
  return {
    identity: { terminalCode, serialNumber, secret },
    config: {
      version: version(),
      paidHoldMs: paidHoldSeconds * 1000,
      endedHoldMs: endedHoldSeconds * 1000,
      plainLink: isExposed(link.url, LINK_SCHEMES),
      sandboxMark,
    },
    open: (io, signal) => opener.open(options, io, signal),
  };
}

/**
 * Runs a box for fleets of thousands in one process. It has the link, sessions, signatures, loop and reports of every
 * box. It has no display, journal, pages, sound or enrolment, so it forgets everything when it ends.
 */
export class LightAgent {
  /** The number of payments announced since it started. */
  announcements = 0;
  isOnline = false;
  readonly #deps: LightDeps;
  readonly #loop: Loop;
  readonly #link: Link;
  readonly #running: Promise<void>;
  #shown: Scene | undefined;
  #listener: (() => void) | undefined;

  constructor({ identity, config, open }: LightSetup, deps: LightDeps) {
    const { clock, random, log } = deps;
    this.#deps = deps;
    const { terminalCode, serialNumber } = identity;
    const at = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    const start = initialState({ terminalCode, serialNumber, ...config }, at);
    this.#loop = new Loop(start, { clock, log, journal: NO_JOURNAL });
    this.#link = new Link({
      clock,
      random,
      log,
      identity,
      secret: configuredSecret(identity.secret),
      key: signingKeyOf(random.secret(KEY_BYTES)),
      agentVersion: config.version,
      display: DISPLAY,
      open,
      checkQr: () => ({ ok: true }),
      shownPushId: () => shownPushId(this.#loop.state),
      emit: (event) => {
        this.#loop.dispatch(event);
        return this.#loop.drained();
      },
    });
    this.#loop.hear({
      show: (state) => this.#show(state),
      send: (sends) => this.#link.send(sends),
      announce: (payments) => {
        this.announcements += payments.length;
      },
    });
    this.#running = this.#loop.run();
    this.#link.start();
  }

  /** Returns why it is not online, or undefined while it is. */
  get reason(): string | undefined {
    return this.#link.status().reason;
  }

  /**
   * Calls `listener` when the box has registered or lost its gateway, in place of the previous listener. The returned
   * function removes it.
   */
  onConnection(listener: () => void): () => void {
    this.#listener = listener;
    return () => {
      this.#listener = undefined;
    };
  }

  async close(): Promise<void> {
    await this.#link.close();
    this.#loop.stop();
    await this.#running;
  }

  #show(state: BoxState): void {
    const isOnline = state.connection === 'registered';
    if (isOnline !== this.isOnline) {
      this.isOnline = isOnline;
      this.#listener?.();
    }
    const scene = view(state);
    if (isDeepStrictEqual(scene, this.#shown)) return;
    this.#shown = scene;
    this.#deps.onScene(scene);
    this.#loop.dispatch(screenEvent({ ok: true, scene }));
  }
}
