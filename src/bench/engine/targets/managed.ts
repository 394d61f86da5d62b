import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, MissingPeerError } from '../../../lib/errors.ts';
import type { Random } from '../../../lib/random.ts';
import type { PanelName } from '../../panels/emulator.ts';
import { BoxClient } from '../clients/box.ts';
import { GatewayClient } from '../clients/gateway.ts';
import { startPartnerServer } from '../clients/partner-server.ts';
import { freePorts } from '../free-ports.ts';
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

/** One gateway or box writes at most this many bytes to disk. */
export const PART_BYTES = 64 * 1024 * 1024;

/** A gateway or agent that the bench has started. */
export interface Part {
  /**
   * Ends the part. `killed`: without time to shut down. Otherwise it has `withinMs` milliseconds for that, by default
   * some seconds.
   */
  end(how: Exclude<Power, 'on'>, withinMs?: number): Promise<void>;
}

/** Starts a box by its configuration. It resolves when the box's port answers. The signal cancels a start. */
export interface AgentStarter {
  readonly time: TestTime;
  agent(config: object, terminalCode: string, signal?: AbortSignal): Promise<Part>;
}

/**
 * Starts the parts of a target by their configurations. It resolves when the part's port answers. The signal cancels a
 * start.
 */
export interface Starter extends AgentStarter {
  /** True for parts that cannot lose power, so that their files need not survive this process. */
  readonly isVolatile?: true;
  gateway(config: object, signal?: AbortSignal): Promise<Part>;
}

export interface ManagedTargetOptions {
  name: string;
  transport: Transport;
  /** The probe. `panel` captures the boxes' emulated panels. */
  probe: Probe | 'panel';
  /** The first display of each box, on its own port; a browser by default. */
  panel?: PanelName | undefined;
  random: Random;
}

/** Returns the dialect that boxes on this transport speak; undefined for the gateway's own messages. */
export function dialectOf({ name, ownLogin }: Transport): string | undefined {
  return ownLogin === undefined ? undefined : name;
}

/** Returns the capabilities of every target that the bench starts itself. */
export function managedCapabilities({
  panel,
  transport,
}: Pick<ManagedTargetOptions, 'panel' | 'transport'>): readonly Capability[] {
  return [
    'turn boxes off and on',
    'turn the gateway off and on',
    'answer callbacks',
    'order faults at the gateway',
    'order faults at boxes',
    // Boxes of a dialect have no secret of their own, and an admin never enrols them.
    ...(transport.ownLogin === undefined ? (['start boxes without a secret'] as const) : []),
    ...(panel === undefined ? [] : (['disturb a serial line'] as const)),
  ];
}

const GATEWAY = 'gateway';

/** The parts of a target, by terminalCode, or `gateway`. */
class Parts {
  readonly #starts: ReadonlyMap<string, () => Promise<Part>>;
  readonly #running = new Map<string, Part>();

  constructor(starts: ReadonlyMap<string, () => Promise<Part>>) {
    this.#starts = starts;
  }

  async power(name: string, how: Power, withinMs?: number): Promise<void> {
    const running = this.#running.get(name);
    if (how === 'on') {
      const start = this.#starts.get(name);
      if (running === undefined && start !== undefined) this.#running.set(name, await start());
    } else {
      this.#running.delete(name);
      await running?.end(how, withinMs);
    }
  }

  /**
   * Ends all running parts: boxes before the gateway, but killed parts say no goodbye. Each stage has half of the time.
   */
  async end(how: Exclude<Power, 'on'>, withinMs?: number): Promise<void> {
    const stageMs = withinMs === undefined ? undefined : withinMs / 2;
    const names = [...this.#running.keys()];
    const first = how === 'killed' ? names : names.filter((name) => name !== GATEWAY);
    await Promise.all(first.map((name) => this.power(name, how, stageMs)));
    await this.power(GATEWAY, how, stageMs);
  }
}

/**
 * Starts a gateway, boxes and a partner's server on free ports, with a temporary folder. When cancelled during the
 * start, it kills all of them.
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
  const start = async () => {
    const gateway = parts.power(GATEWAY, 'on');
    // The programs load side by side. A box that starts first dials again soon, but repeats its request for enrolment
    // only much later.
    if (starter.isVolatile === true || !need.enrolled) await gateway;
    const starting = [gateway, ...made.map((box) => parts.power(box.terminalCode, 'on'))];
    // Otherwise a part that is still starting would outlive the failure of another.
    await Promise.allSettled(starting);
    await Promise.all(starting);
    await Promise.all(boxes.map((box) => waitUntilReady(box, time, signal)));
  };
  const reset = async () => {
    await parts.end('killed');
    // Each part has a folder with its name.
    const folders = [...starts.keys()].map((name) => join(folder, name));
    await Promise.all(folders.map((path) => rm(path, { recursive: true, force: true, maxRetries: 5 })));
    partnerServer?.forget();
    await start();
  };
  const close = async (how: Exclude<Power, 'on'>, withinMs?: number) => {
    await parts.end(how, withinMs);
    await partnerServer?.close();
    await Promise.all([...(panels?.values() ?? [])].map((panel) => panel.close()));
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const target: Target = {
    name,
    time,
    probe,
    dialect: dialectOf(transport),
    ...(partnerServer === undefined ? {} : { partnerServer }),
    ...(panels === undefined ? {} : { panels }),
    boxes,
    gateway: new GatewayClient(gatewayAccess(place)),
    powerBox: (box, how) => parts.power(made[box]?.terminalCode ?? '', how),
    powerGateway: (how) => parts.power(GATEWAY, how),
    reset: () => time.inRealTime(reset),
    close: (withinMs) => time.inRealTime(() => close('off', withinMs)),
  };
  try {
    await time.inRealTime(start);
    return target;
  } catch (error) {
    // A cancelled start needs no orderly shutdown.
    await time.inRealTime(() => close(signal?.aborted === true ? 'killed' : 'off'));
    time.close();
    throw error;
  }
}

function boxesAt(made: readonly GeneratedBox[], ports: readonly number[]): BoxClient[] {
  return made.map((box, index) => new BoxClient(`http://127.0.0.1:${ports[index]}`, box));
}

/** Returns the probe, and a panel for each box if wanted. Throws MissingPeerError when it cannot make them. */
async function panelsOf(
  boxes: readonly GeneratedBox[],
  { panel: name, probe }: ManagedTargetOptions,
): Promise<{ panels: ReadonlyMap<string, Panel> | undefined; probe: Probe }> {
  if (name === undefined) {
    if (probe === 'panel') throw new ConfigError('probe panel: the boxes have no panel', 'give --panel too');
    return { panels: undefined, probe };
  }
  // The module is loaded on demand, because most targets have no panels.
  const { openPanel } = await import('../../panels/panel.ts');
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

/** A box of a dialect is linked only some time after it has enrolled. */
const NOT_READY: readonly string[] = ['starting', 'unlinked'];
/** The time limit from a box's start to its first picture and registration, or to its enrolment code. */
const READY_TIMEOUT_MS = 30_000;

/**
 * Waits until a box is ready: idle, showing an order, or showing an enrolment code, and in none of the states
 * `notReady`. Throws MissingPeerError, or the signal's reason.
 */
export async function waitUntilReady(
  box: BoxClient,
  time: TestTime,
  signal = new AbortController().signal,
  notReady = NOT_READY,
): Promise<void> {
  const look = async () => {
    try {
      const { state, online, enrolment } = await box.status();
      const isThere =
        (online || (enrolment !== undefined && enrolment !== null)) && (await box.picture()) !== undefined;
      return isThere && !notReady.includes(state) ? undefined : `it is ${state}, ${online ? 'online' : 'offline'}`;
    } catch (error) {
      if (error instanceof MissingPeerError) return error.message;
      throw error;
    }
  };
  const problem = await waitUntilRight(time, READY_TIMEOUT_MS, look, signal);
  if (problem === undefined) return;
  throw new MissingPeerError(`box ${box.terminalCode} is not ready: ${problem}`, 'see the logs in the report folder');
}
