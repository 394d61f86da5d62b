import { type Agent, startAgent } from '../agent/agent.ts';
import { parseAgentConfig } from '../agent/config.ts';
import type { ConfiguredDisplay } from '../agent/screen/screen.ts';
import { setupOf } from '../agent/setup.ts';
import { type Pace, VirtualPace } from '../bench/pace.ts';
import type { TargetKind } from '../bench/target.ts';
import { type OwnTargetOptions, openOwnTarget, ownAbilities, type Starter } from '../bench/targets/own.ts';
import { parseGatewayConfig } from '../gateway/config.ts';
import { type Gateway, startGateway } from '../gateway/gateway.ts';
import type { Logger } from '../lib/log.ts';

const NAME = 'paybox bench';

type EmulatedOptions = Omit<OwnTargetOptions, 'name'> & { log: Logger };

/** Gateway and boxes in this process, on a clock that skips what is only waited for. */
export function emulatedTarget(options: EmulatedOptions): TargetKind {
  return {
    name: 'emulated',
    abilities: new Set(ownAbilities(options)),
    open: (need) => openOwnTarget(need, emulatedStarter(options), { ...options, name: 'emulated' }),
  };
}

/** Starts parts in this process. */
export function emulatedStarter({ random, log, panel }: EmulatedOptions): Starter {
  const pace = new VirtualPace();
  const deps = { clock: pace.clock, random };
  const partOf = (running: Agent | Gateway) => ({ end: () => running.close() });
  return {
    pace,
    isVolatile: true,
    gateway: async (config) =>
      partOf(await startGateway(parseGatewayConfig(config, NAME), { ...deps, log: log.with({ program: 'gateway' }) })),
    agent: async (config, terminalCode) => {
      const setup = setupOf(parseAgentConfig(config, NAME));
      const [first, ...others] = setup.displays;
      const displays = panel === undefined ? setup.displays : ([onWire(first, pace), ...others] as const);
      return partOf(
        await startAgent(
          { ...setup, displays },
          { ...deps, log: log.with({ program: terminalCode }), terminal: undefined, terminalInput: undefined },
        ),
      );
    },
  };
}

/**
 * The panel at the other end of a wire answers in everybody's time: none is skipped while it is spoken to, or whoever
 * waits for it would give it up.
 */
function onWire({ driver, open }: ConfiguredDisplay, pace: Pace): ConfiguredDisplay {
  return {
    driver,
    open: async (io, signal) => {
      const display = await pace.during(() => open(io, signal));
      const { refresh } = display;
      return {
        get surface() {
          return display.surface;
        },
        refresh: refresh && {
          everyMs: refresh.everyMs,
          run: (frame, scene) => pace.during(() => refresh.run(frame, scene)),
        },
        draw: (frame, scene) => pace.during(() => display.draw(frame, scene)),
        close: () => pace.during(() => display.close()),
      };
    },
  };
}
