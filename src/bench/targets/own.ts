import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { ConfigError } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { BoxAt } from '../clients/box.ts';
import { GatewayAt } from '../clients/gateway.ts';
import { startShopServer } from '../clients/shop-server.ts';
import type { Pace } from '../pace.ts';
import type { PanelName } from '../panels/names.ts';
import type { Panel } from '../panels/panel.ts';
import type { Probe } from '../probes.ts';
import type { Ability, Need, Power, Target } from '../target.ts';
import { makeWorkFolder } from '../work-folder.ts';
import {
  accessTo,
  agentConfigFor,
  gatewayConfigFor,
  type MadeBox,
  makeBoxes,
  type Place,
  type Transport,
} from './identities.ts';
import { freePorts } from './ports.ts';
import { untilAtWork } from './running.ts';
import { volatileRoot } from './volatile.ts';

/** More than a gateway or a box of a bench comes to write. */
const PART_BYTES = 64 * 1024 * 1024;

/** A gateway or an agent that the bench started. */
export interface Part {
  /** `killed`: without a chance to do anything about it. */
  end(how: Exclude<Power, 'on'>): Promise<void>;
}

/**
 * How the parts of a target are started, each by its configuration; settled once its port answers. The signal gives up
 * one that is still starting.
 */
export interface Starter {
  readonly pace: Pace;
  /** Its parts cannot lose power: what they write need not survive this process. */
  readonly isVolatile?: true;
  gateway(config: object, signal?: AbortSignal): Promise<Part>;
  agent(config: object, terminalCode: string, signal?: AbortSignal): Promise<Part>;
}

export interface OwnTargetOptions {
  name: string;
  transport: Transport;
  /** `panel`: the panels of the boxes. */
  probe: Probe | 'panel';
  /** What each box has as its first display, on a port of its own; a browser if left out. */
  panel?: PanelName | undefined;
  random: Random;
}

/** What every target of the bench's own can do. */
export function ownAbilities({ panel }: Pick<OwnTargetOptions, 'panel'>): readonly Ability[] {
  return [
    'turn boxes off and on',
    'turn the gateway off and on',
    'answer callbacks',
    'start boxes without a secret',
    'order faults at the gateway',
    'order faults at boxes',
    ...(panel === undefined ? [] : (['disturb a serial line'] as const)),
  ];
}

const GATEWAY = 'gateway';

/** The parts of a target, by terminalCode and `gateway`. */
class Parts {
  readonly #starts: ReadonlyMap<string, () => Promise<Part>>;
  readonly #running = new Map<string, Part>();

  constructor(starts: ReadonlyMap<string, () => Promise<Part>>) {
    this.#starts = starts;
  }

  async power(name: string, how: Power): Promise<void> {
    const running = this.#running.get(name);
    if (how === 'on') {
      const start = this.#starts.get(name);
      if (running === undefined && start !== undefined) this.#running.set(name, await start());
    } else {
      this.#running.delete(name);
      await running?.end(how);
    }
  }

  /** Ends all that runs, the gateway after its boxes. */
  async end(how: Exclude<Power, 'on'>): Promise<void> {
    const boxes = [...this.#running.keys()].filter((name) => name !== GATEWAY);
    await Promise.all(boxes.map((name) => this.power(name, how)));
    await this.power(GATEWAY, how);
  }
}

/**
 * Starts a gateway, boxes and a partner's server of the bench's own, on free ports and in a folder that goes with them.
 * Given up while it starts, it ends all of it at once.
 */
export async function openOwnTarget(need: Need, starter: Starter, options: OwnTargetOptions): Promise<Target> {
  const { transport, random, name } = options;
  const { signal } = need;
  const { pace } = starter;
  const made = makeBoxes(need.boxes, need.enrolled, random);
  const { panels, probe } = await panelsOf(made, options);
  const root = () => (starter.isVolatile === true ? volatileRoot((1 + need.boxes) * PART_BYTES) : tmpdir());
  const folder = await makeWorkFolder('bench', root);
  const shop = need.callbackUrl === undefined ? await startShopServer() : undefined;
  const callbackUrl = need.callbackUrl ?? shop?.url ?? '';
  const [httpPort = 0, mqttPort = 0, ...boxPorts] = await freePorts(2 + need.boxes);
  const place: Place = { httpPort, mqttPort, transport, folder };
  const starts = new Map<string, () => Promise<Part>>([
    [GATEWAY, () => starter.gateway(gatewayConfigFor(place, made, callbackUrl), signal)],
    ...made.map((box, index): [string, () => Promise<Part>] => [
      box.terminalCode,
      () => {
        const display = panels?.get(box.terminalCode)?.display;
        return starter.agent(agentConfigFor(place, box, boxPorts[index] ?? 0, display), box.terminalCode, signal);
      },
    ]),
  ]);
  const parts = new Parts(starts);
  const boxes = boxesAt(made, boxPorts);
  const close = async (how: Exclude<Power, 'on'>) => {
    await parts.end(how);
    await shop?.close();
    await Promise.all([...(panels?.values() ?? [])].map((panel) => panel.close()));
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const target: Target = {
    name,
    pace,
    probe,
    ...(shop === undefined ? {} : { shop }),
    ...(panels === undefined ? {} : { panels }),
    boxes,
    gateway: new GatewayAt(accessTo(place)),
    powerBox: (box, how) => parts.power(made[box]?.terminalCode ?? '', how),
    powerGateway: (how) => parts.power(GATEWAY, how),
    close: () => pace.during(() => close('off')),
  };
  try {
    await pace.during(async () => {
      await parts.power(GATEWAY, 'on');
      const starting = made.map((box) => parts.power(box.terminalCode, 'on'));
      // One that is still starting when another has failed would be left behind.
      await Promise.allSettled(starting);
      await Promise.all(starting);
      await Promise.all(boxes.map((box) => untilAtWork(box, pace, signal)));
    });
    return target;
  } catch (error) {
    // What was given up has nothing that it should end in order.
    await pace.during(() => close(signal?.aborted === true ? 'killed' : 'off'));
    pace.close();
    throw error;
  }
}

function boxesAt(made: readonly MadeBox[], ports: readonly number[]): BoxAt[] {
  return made.map((box, index) => new BoxAt(`http://127.0.0.1:${ports[index]}`, box));
}

/** A panel for each box, where they are to have some, and the probe. Throws MissingPeerError where they cannot be made. */
async function panelsOf(
  boxes: readonly MadeBox[],
  { panel: name, probe }: OwnTargetOptions,
): Promise<{ panels: ReadonlyMap<string, Panel> | undefined; probe: Probe }> {
  if (name === undefined) {
    if (probe === 'panel') throw new ConfigError('probe panel: there is no panel to look at', 'give --panel too');
    return { panels: undefined, probe };
  }
  // Loaded here because most targets have none.
  const { openPanel } = await import('../panels/panel.ts');
  const { panelProbe } = await import('../panels/panel-probe.ts');
  const panels = new Map<string, Panel>();
  try {
    for (const { terminalCode } of boxes) panels.set(terminalCode, await openPanel(name));
  } catch (error) {
    await Promise.all([...panels.values()].map((panel) => panel.close()));
    throw error;
  }
  return { panels, probe: probe === 'panel' ? panelProbe(panels) : probe };
}
