import { type Agent, startAgent } from '../agent/agent.ts';
import { parseAgentConfig } from '../agent/config.ts';
import { VirtualPace } from '../bench/pace.ts';
import type { TargetKind } from '../bench/target.ts';
import { type OwnTargetOptions, openOwnTarget, type Starter } from '../bench/targets/own.ts';
import { parseGatewayConfig } from '../gateway/config.ts';
import { type Gateway, startGateway } from '../gateway/gateway.ts';
import type { Logger } from '../lib/log.ts';
import { setupOf } from './agent-setup.ts';

const NAME = 'paybox bench';

/** Gateway and boxes in this process, on a clock that skips what is only waited for. */
export function emulatedTarget(options: Omit<OwnTargetOptions, 'name'> & { log: Logger }): TargetKind {
  return {
    name: 'emulated',
    abilities: new Set([
      'turn boxes off and on',
      'turn the gateway off and on',
      'answer callbacks',
      'start boxes without a secret',
      'order faults at the gateway',
      'order faults at boxes',
    ]),
    open: (need) => openOwnTarget(need, emulatedStarter(options), { ...options, name: 'emulated' }),
  };
}

/** Starts parts in this process. */
export function emulatedStarter({ random, log }: Omit<OwnTargetOptions, 'name'> & { log: Logger }): Starter {
  const pace = new VirtualPace();
  const deps = { clock: pace.clock, random };
  const partOf = (running: Agent | Gateway) => ({ end: () => running.close() });
  return {
    pace,
    gateway: async (config) =>
      partOf(await startGateway(parseGatewayConfig(config, NAME), { ...deps, log: log.with({ program: 'gateway' }) })),
    agent: async (config, terminalCode) =>
      partOf(
        await startAgent(setupOf(parseAgentConfig(config, NAME)), {
          ...deps,
          log: log.with({ program: terminalCode }),
          terminal: undefined,
          terminalInput: undefined,
        }),
      ),
  };
}
