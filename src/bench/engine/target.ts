import { faultKind } from '../../protocol/faults.ts';
import { dialectLimits } from '../scenarios/dialect-limits.ts';
import { faultOf } from '../scenarios/fault.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { listsIn, type Step } from '../scenarios/steps.ts';
import type { BoxClient } from './clients/box.ts';
import type { GatewayClient } from './clients/gateway.ts';
import type { PartnerServer } from './clients/partner-server.ts';
import type { Picture } from './pictures.ts';
import type { TestTime } from './test-time.ts';

/** Capabilities that only some targets have. */
export type Capability =
  | 'turn boxes off and on'
  | 'turn the gateway off and on'
  | 'kill programs'
  | 'answer callbacks'
  | 'start boxes without a secret'
  | 'order faults at the gateway'
  | 'order faults at boxes'
  | 'disturb a serial line';

/** The advice when a target lacks a capability that other targets of its kind may have. */
const ADVICE: Partial<Record<Capability, string>> = {
  'order faults at the gateway': 'it has no /_mock/faults',
  'order faults at boxes': 'set faults: true in the configuration of each box, on a test bench only',
  'disturb a serial line': '--panel nextion gives boxes of the bench an emulated panel; other boxes need a serial one',
};

const OWN_BOXES = 'boxes that the bench makes can: --target emulated or process';

/** The advice when no target of the kind has the capability. */
const ELSEWHERE: Partial<Record<Capability, string>> = {
  'turn boxes off and on': OWN_BOXES,
  'turn the gateway off and on': OWN_BOXES,
  'answer callbacks': OWN_BOXES,
  'start boxes without a secret': `${OWN_BOXES}, without --dialect`,
  'kill programs': 'programs of their own can be killed: --target process',
};

/** The power state of a target's program. `killed`: ended without time to shut down. */
export type Power = 'on' | 'off' | 'killed';

/** One screen, as a probe captured it. */
export interface Capture {
  /** The picture, as PNG or in another format. */
  file: Uint8Array;
  picture: Picture;
  /** The QR's text, which an independent decoder read; undefined without a QR. */
  qr: string | undefined;
  /** The reason why this screen can never show a QR. */
  noQrReason?: string;
}

/** Captures the screen of a box; undefined while there is no picture. */
export interface Probe {
  readonly name: string;
  capture(box: BoxClient): Promise<Capture | undefined>;
}

/** An emulated panel on a plugged cable. */
export interface Panel {
  /** The name of the box's driver for it. */
  readonly name: string;
  /** The entry of the box's `displays`. It stays the same after replugging. */
  readonly display: object;
  /** True if it can show a QR. */
  readonly drawsQr: boolean;
  /**
   * Returns the screen as a person sees it, drawn only from the bytes on the wire. It is dark without power or cable.
   */
  picture(): Picture;
  /** Returns the texts on the screen. */
  texts(): readonly string[];
  /** Returns the data received since it was plugged in that a device would drop, garble or misprint. */
  violations(): readonly string[];
  /** Unplugs the cable: open ports fail and the panel goes dark. */
  unplug(): Promise<void>;
  /** Plugs it in again; the panel restarts. */
  plug(): Promise<void>;
  /** Turns the power off. The port stays unless it supplies the power. */
  cutPower(): Promise<void>;
  /** Turns the power on. The panel restarts. */
  restorePower(): Promise<void>;
  /** Unplugs it for good. */
  close(): Promise<void>;
}

/** The gateway, boxes and partner that a scenario runs against. */
export interface Target {
  readonly name: string;
  readonly time: TestTime;
  readonly gateway: GatewayClient;
  readonly boxes: readonly BoxClient[];
  readonly probe: Probe;
  /** The emulated panels by terminalCode, if the boxes have some. */
  readonly panels?: ReadonlyMap<string, Panel>;
  /** The partner's server, if the bench runs it. */
  readonly partnerServer?: PartnerServer;
  /** True if the target ran before the scenario and keeps running after it. */
  readonly isExternal?: true;
  /** The dialect of other makers that its boxes speak. */
  readonly dialect?: string | undefined;
  /** Turns the power of a box on or off. Throws PayboxError for a target without the capability. */
  powerBox(box: number, power: Power): Promise<void>;
  powerGateway(power: Power): Promise<void>;
  /**
   * Ends all parts, deletes everything that they and the partner's server stored, and starts them again at the same
   * addresses, with the same credentials. Undefined for a target that ran before. Throws MissingPeerError when a part
   * does not start.
   */
  reset?(): Promise<void>;
  /**
   * Ends all parts that it has started. It kills or abandons those that have not ended after `withinMs` milliseconds.
   */
  close(withinMs?: number): Promise<void>;
}

/** Request to open a target. */
export interface TargetRequest {
  boxes: number;
  enrolled: boolean;
  /** The URL for callbacks. With it the bench runs no partner's server. */
  callbackUrl?: string | undefined;
  /** Cancels the opening. */
  signal?: AbortSignal | undefined;
}

/** Makes a target for one scenario. Throws MissingPeerError when something it needs is missing, or the signal's reason. */
export interface TargetKind {
  readonly name: string;
  readonly capabilities: ReadonlySet<Capability>;
  /**
   * Returns further capabilities, which it asks of the running parts. Throws MissingPeerError when they do not answer.
   */
  askCapabilities?(): Promise<ReadonlySet<Capability>>;
  /** The dialect of other makers that its boxes speak. */
  readonly dialect?: string | undefined;
  /** The maximum number of boxes; undefined where boxes are created as needed. */
  readonly boxesMax?: number;
  open(need: TargetRequest): Promise<Target>;
}

/** Returns the capabilities that a scenario needs. */
export function capabilitiesNeeded(scenario: Scenario): Set<Capability> {
  const needs = new Set<Capability>();
  if (!scenario.enrolled) needs.add('start boxes without a secret');
  for (const { fault: args } of everyStep(scenario.steps)) {
    const fault = args === undefined ? undefined : faultOf(args);
    if (fault?.inject !== undefined) {
      needs.add(faultKind(fault.inject).place === 'box' ? 'order faults at boxes' : 'order faults at the gateway');
    }
    if (fault?.inject === 'serial-noise') needs.add('disturb a serial line');
    if (fault?.box !== undefined) needs.add('turn boxes off and on');
    if (fault?.gateway !== undefined) needs.add('turn the gateway off and on');
    if (fault?.box === 'killed' || fault?.gateway === 'killed') needs.add('kill programs');
    if (fault?.partner !== undefined) needs.add('answer callbacks');
  }
  return needs;
}

/** Yields all steps, nested ones included. */
export function* everyStep(steps: readonly Step[]): Iterable<Step> {
  for (const step of steps) {
    yield step;
    for (const list of listsIn(step)) yield* everyStep(list.steps);
  }
}

/**
 * Returns why the target cannot run the scenario; undefined when it can. Throws MissingPeerError when the target does
 * not answer.
 */
export async function reasonToSkip(scenario: Scenario, kind: TargetKind): Promise<string | undefined> {
  if (kind.boxesMax !== undefined && scenario.boxes > kind.boxesMax) {
    return `needs ${scenario.boxes} boxes, target ${kind.name} has ${kind.boxesMax}`;
  }
  const limits = kind.dialect === undefined ? undefined : dialectLimits(everyStep(scenario.steps));
  if (limits !== undefined) return `the dialect ${kind.dialect} cannot have ${limits}`;
  const missing = [...capabilitiesNeeded(scenario)].filter((need) => !kind.capabilities.has(need));
  // The bench asks running parts only when the answer can change the result.
  const isWorthAsking = missing.length > 0 && missing.every((need) => need in ADVICE);
  const found = isWorthAsking ? await kind.askCapabilities?.() : undefined;
  const lacking = missing.filter((need) => found?.has(need) !== true);
  if (lacking.length === 0) return undefined;
  const advice = lacking.flatMap((need) => ADVICE[need] ?? ELSEWHERE[need] ?? []);
  return [`target ${kind.name} cannot ${lacking.join(', ')}`, ...new Set(advice)].join('; ');
}
