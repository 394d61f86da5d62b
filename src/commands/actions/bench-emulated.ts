import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import type { TargetKind } from '../../bench/engine/target.ts';
import {
  dialectOf,
  type ManagedTargetOptions,
  managedCapabilities,
  openManagedTarget,
  type Starter,
} from '../../bench/engine/targets/managed.ts';
import { type TestTime, VirtualTime } from '../../bench/engine/test-time.ts';
import { type Agent, startAgent } from '../../device/agent/agent.ts';
import { parseAgentConfig } from '../../device/agent/config.ts';
import type { ConfiguredDisplay } from '../../device/agent/screen/screen.ts';
import { setupOf } from '../../device/agent/setup.ts';
import { parseGatewayConfig } from '../../gateway/config/config.ts';
import { type Gateway, startGateway } from '../../gateway/gateway.ts';
import type { Logger } from '../../lib/log.ts';

const NAME = 'paybox bench';

/** Describes a box without a terminal, on a machine that never loses power and whose clock is right. */
const BOX_ALONE = {
  terminal: undefined,
  terminalInput: undefined,
  boot: { id: 'emulated', offsetMs: 0, isTimeRight: async () => true },
};

type EmulatedOptions = Omit<ManagedTargetOptions, 'name'> & {
  log: Logger;
  /** Programs of others take part: time is skipped on request only, and never while one of them answers a callback. */
  isShared?: boolean | undefined;
};

/** Opens gateway and boxes in this process, in virtual time that skips waits. */
export function emulatedTarget(options: EmulatedOptions): TargetKind {
  return {
    name: 'emulated',
    dialect: dialectOf(options.transport),
    capabilities: new Set(managedCapabilities(options)),
    open: (need) => {
      const time = options.isShared === true ? new SharedTime(need.callbackUrl) : new VirtualTime();
      return openManagedTarget(need, emulatedStarter(options, time), { ...options, name: 'emulated' });
    },
  };
}

/** Skips no time while a request to the partner's program is open. */
class SharedTime extends VirtualTime {
  readonly #requests: RequestsUnderWay | undefined;

  constructor(partnerUrl: string | undefined) {
    const requests = partnerUrl === undefined ? undefined : new RequestsUnderWay(new URL(partnerUrl).host);
    super({ isShared: true, isHeld: () => requests?.isAny === true });
    this.#requests = requests;
  }

  override close(): void {
    this.#requests?.close();
    super.close();
  }
}

/** Starts parts in this process. */
export function emulatedStarter(
  { random, log, panel }: Pick<EmulatedOptions, 'random' | 'log' | 'panel'>,
  time: TestTime = new VirtualTime(),
): Starter {
  const deps = { clock: time.clock, random };
  const partOf = (running: Agent | Gateway) => ({
    end: (_how: unknown, withinMs?: number) => running.close(withinMs),
  });
  return {
    time,
    isVolatile: true,
    gateway: async (config) =>
      partOf(await startGateway(parseGatewayConfig(config, NAME), { ...deps, log: log.with({ program: 'gateway' }) })),
    agent: async (config, terminalCode) => {
      const setup = setupOf(parseAgentConfig(config, NAME));
      const [first, ...others] = setup.displays;
      const displays = panel === undefined ? setup.displays : ([onWire(first, time), ...others] as const);
      return partOf(
        await startAgent({ ...setup, displays }, { ...deps, ...BOX_ALONE, log: log.with({ program: terminalCode }) }),
      );
    },
  };
}

/**
 * Returns a display on a wire, which answers in real time. No time may be skipped while the driver talks to it, or the
 * driver would time out.
 */
function onWire({ driver, open }: ConfiguredDisplay, time: TestTime): ConfiguredDisplay {
  return {
    driver,
    open: async (io, signal) => {
      const display = await time.inRealTime(() => open(io, signal));
      const { refresh } = display;
      return {
        get surface() {
          return display.surface;
        },
        refresh: refresh && {
          everyMs: refresh.everyMs,
          run: (frame, scene) => time.inRealTime(() => refresh.run(frame, scene)),
        },
        draw: (frame, scene) => time.inRealTime(() => display.draw(frame, scene)),
        close: () => time.inRealTime(() => display.close()),
      };
    },
  };
}

/** Node publishes each HTTP request of this process on this channel. */
const CREATED = 'http.client.request.created';

/** Tracks the requests of this process to one host that have no answer yet. */
class RequestsUnderWay {
  readonly #host: string;
  #count = 0;
  readonly #add = (message: unknown) => {
    const { request } = message as { request: ClientRequest };
    if (request.getHeader('host') !== this.#host) return;
    this.#count += 1;
    request.once('close', () => {
      this.#count -= 1;
    });
  };

  /** `host` is as in a URL, with its port unless it is the default one. */
  constructor(host: string) {
    this.#host = host;
    subscribe(CREATED, this.#add);
  }

  get isAny(): boolean {
    return this.#count > 0;
  }

  /** Stops counting. */
  close(): void {
    unsubscribe(CREATED, this.#add);
  }
}
