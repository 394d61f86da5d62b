import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { ConfigError, MissingPeerError } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';

import { BoxClient } from '../clients/box.ts';
import { GatewayClient } from '../clients/gateway.ts';
import { startPartnerServer } from '../clients/partner-server.ts';
import type { PanelName } from '../panels/emulator.ts';
import type { Capability, Panel, Power, Probe, Target, TargetRequest } from '../target.ts';
import type { TestTime } from '../test-time.ts';
import { waitUntilRight } from '../test-time.ts';
import { makeWorkFolder, memoryFolder } from '../work-folder.ts';
import {
  agentConfigFor,
  type GeneratedBox,
  gatewayAccess,
  gatewayConfigFor,
  generateBoxes,
  type TargetLayout,
  type Transport,
} from './config.ts';

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
  readonly time: TestTime;
  /** Its parts cannot lose power: what they write need not survive this process. */
  readonly isVolatile?: true;
  gateway(config: object, signal?: AbortSignal): Promise<Part>;
  agent(config: object, terminalCode: string, signal?: AbortSignal): Promise<Part>;
}

export interface ManagedTargetOptions {
  name: string;
  transport: Transport;
  /** `panel`: the panels of the boxes. */
  probe: Probe | 'panel';
  /** What each box has as its first display, on a port of its own; a browser if left out. */
  panel?: PanelName | undefined;
  random: Random;
}

/** What every target of the bench's own can do. */
export function managedCapabilities({ panel }: Pick<ManagedTargetOptions, 'panel'>): readonly Capability[] {
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
export async function openManagedTarget(
  need: TargetRequest,
  starter: Starter,
  options: ManagedTargetOptions,
): Promise<Target> {
  const { transport, random, name } = options;
  const { signal } = need;
  const { time } = starter;
  const made = generateBoxes(need.boxes, need.enrolled, random);
  const { panels, probe } = await panelsOf(made, options);
  const root = () => (starter.isVolatile === true ? memoryFolder((1 + need.boxes) * PART_BYTES) : tmpdir());
  const folder = await makeWorkFolder('bench', root);
  const partnerServer = need.callbackUrl === undefined ? await startPartnerServer() : undefined;
  const callbackUrl = need.callbackUrl ?? partnerServer?.url ?? '';
  const [httpPort = 0, mqttPort = 0, ...boxPorts] = await freePorts(2 + need.boxes);
  const place: TargetLayout = { httpPort, mqttPort, transport, folder };
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
    await partnerServer?.close();
    await Promise.all([...(panels?.values() ?? [])].map((panel) => panel.close()));
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const target: Target = {
    name,
    time,
    probe,
    ...(partnerServer === undefined ? {} : { partnerServer }),
    ...(panels === undefined ? {} : { panels }),
    boxes,
    gateway: new GatewayClient(gatewayAccess(place)),
    powerBox: (box, how) => parts.power(made[box]?.terminalCode ?? '', how),
    powerGateway: (how) => parts.power(GATEWAY, how),
    close: () => time.inRealTime(() => close('off')),
  };
  try {
    await time.inRealTime(async () => {
      await parts.power(GATEWAY, 'on');
      const starting = made.map((box) => parts.power(box.terminalCode, 'on'));
      // One that is still starting when another has failed would be left behind.
      await Promise.allSettled(starting);
      await Promise.all(starting);
      await Promise.all(boxes.map((box) => waitUntilReady(box, time, signal)));
    });
    return target;
  } catch (error) {
    // What was given up has nothing that it should end in order.
    await time.inRealTime(() => close(signal?.aborted === true ? 'killed' : 'off'));
    time.close();
    throw error;
  }
}

function boxesAt(made: readonly GeneratedBox[], ports: readonly number[]): BoxClient[] {
  return made.map((box, index) => new BoxClient(`http://127.0.0.1:${ports[index]}`, box));
}

/** A panel for each box, where they are to have some, and the probe. Throws MissingPeerError where they cannot be made. */
async function panelsOf(
  boxes: readonly GeneratedBox[],
  { panel: name, probe }: ManagedTargetOptions,
): Promise<{ panels: ReadonlyMap<string, Panel> | undefined; probe: Probe }> {
  if (name === undefined) {
    if (probe === 'panel') throw new ConfigError('probe panel: there is no panel to look at', 'give --panel too');
    return { panels: undefined, probe };
  }
  // Loaded here because most targets have none.
  const { openPanel } = await import('../panels/panel.ts');
  const { panelProbe } = await import('../probes.ts');
  const panels = new Map<string, Panel>();
  try {
    for (const { terminalCode } of boxes) panels.set(terminalCode, await openPanel(name));
  } catch (error) {
    await Promise.all([...panels.values()].map((panel) => panel.close()));
    throw error;
  }
  return { panels, probe: probe === 'panel' ? panelProbe(panels) : probe };
}

/** So many different TCP ports on loopback that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject);
          server.listen(0, '127.0.0.1', () => {
            const address = server.address();
            resolve(address === null || typeof address === 'string' ? 0 : address.port);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** How long a box may take from its start to its first picture and its registration, or to the code of its enrolment. */
const READY_TIMEOUT_MS = 30_000;

/**
 * Waits until a box is at work: idle or showing, or with a code on its screen. Throws MissingPeerError, or what the
 * signal was aborted with.
 */
export async function waitUntilReady(
  box: BoxClient,
  time: TestTime,
  signal = new AbortController().signal,
): Promise<void> {
  const look = async () => {
    try {
      const { state, online, enrolment } = await box.status();
      const isThere =
        (online || (enrolment !== undefined && enrolment !== null)) && (await box.picture()) !== undefined;
      return isThere && state !== 'starting' ? undefined : `it is ${state}, ${online ? 'online' : 'offline'}`;
    } catch (error) {
      if (error instanceof MissingPeerError) return error.message;
      throw error;
    }
  };
  const problem = await waitUntilRight(time, READY_TIMEOUT_MS, look, signal);
  if (problem === undefined) return;
  throw new MissingPeerError(`box ${box.terminalCode} is not at work: ${problem}`, 'see the logs in the report folder');
}
