import { faultKind } from '../protocol/faults.ts';
import type { BoxClient } from './clients/box.ts';
import type { GatewayClient } from './clients/gateway.ts';
import type { PartnerServer } from './clients/partner-server.ts';
import type { Picture } from './pictures.ts';
import type { TestTime } from './test-time.ts';
import { faultOf } from './vocabulary/fault.ts';
import type { Scenario } from './vocabulary/scenario.ts';
import type { Step } from './vocabulary/steps.ts';

/** What only some targets can do. */
export type Capability =
  | 'turn boxes off and on'
  | 'turn the gateway off and on'
  | 'kill programs'
  | 'answer callbacks'
  | 'start boxes without a secret'
  | 'order faults at the gateway'
  | 'order faults at boxes'
  | 'disturb a serial line';

/** What to do where an ability is missing that a target may have. */
const ADVICE: Partial<Record<Capability, string>> = {
  'order faults at the gateway': 'it has no /_mock/faults',
  'order faults at boxes': 'set faults: true in the configuration of each box, on a test bench only',
  'disturb a serial line': 'give the box a serial panel',
};

const OWN_BOXES = 'boxes that the bench makes can: --target emulated or process';

/** What to do where an ability is missing that no target of its kind has. */
const ELSEWHERE: Partial<Record<Capability, string>> = {
  'turn boxes off and on': OWN_BOXES,
  'turn the gateway off and on': OWN_BOXES,
  'answer callbacks': OWN_BOXES,
  'start boxes without a secret': OWN_BOXES,
  'kill programs': 'programs of their own can be killed: --target process',
};

/** Whether a program of the target runs. `killed`: ended without a chance to do anything about it. */
export type Power = 'on' | 'off' | 'killed';

/** A screen as a probe has seen it. */
export interface Capture {
  /** A PNG or another picture file. */
  file: Uint8Array;
  picture: Picture;
  /** Text of the QR, read by an independent decoder; undefined without a QR. */
  qr: string | undefined;
  /** For a screen that can never show a QR: the reason. */
  noQrReason?: string;
}

/** A way to see the screen of a box. Undefined while there is nothing to see. */
export interface Probe {
  readonly name: string;
  capture(box: BoxClient): Promise<Capture | undefined>;
}

/** An emulated panel at the end of a plugged cable. */
export interface Panel {
  /** As the box's driver for it is called. */
  readonly name: string;
  /** What a box has in `displays` to show on it, before and after each plugging. */
  readonly display: object;
  /** Whether it can show a QR at all. */
  readonly drawsQr: boolean;
  /** What a person sees on it, drawn by itself from the bytes that came over the wire; dark without power or cable. */
  picture(): Picture;
  /** The words on it. */
  texts(): readonly string[];
  /** What it was sent since it was plugged in that a device would drop, garble or misprint. */
  violations(): readonly string[];
  /** Pulls the cable: whoever has the port open loses it, and the panel is dark. */
  unplug(): Promise<void>;
  /** Puts it back: the panel starts anew. */
  plug(): Promise<void>;
  /** Takes its power away. Its port stays, unless the power comes through it. */
  cutPower(): Promise<void>;
  /** Gives the power back: the panel starts anew. */
  restorePower(): Promise<void>;
  /** Unplugs it for good. */
  close(): Promise<void>;
}

/** What a scenario runs against. */
export interface Target {
  readonly name: string;
  readonly time: TestTime;
  readonly gateway: GatewayClient;
  readonly boxes: readonly BoxClient[];
  readonly probe: Probe;
  /** The emulated panels of its boxes by terminalCode, where they have some. */
  readonly panels?: ReadonlyMap<string, Panel>;
  /** The partner's server, where the bench has it. */
  readonly partnerServer?: PartnerServer;
  /** It was there before the scenario, and is after it. */
  readonly isExternal?: true;
  /** Throws PayboxError for a target that has not said that it can. */
  powerBox(box: number, power: Power): Promise<void>;
  powerGateway(power: Power): Promise<void>;
  close(): Promise<void>;
}

/** What a target is opened with. */
export interface TargetRequest {
  boxes: number;
  enrolled: boolean;
  /** Where callbacks go instead of to the partner's server of the bench, which is then not there. */
  callbackUrl?: string | undefined;
  /** Gives up what is still being opened. */
  signal?: AbortSignal | undefined;
}

/** Makes a target for one scenario. Throws MissingPeerError when what is needed is not there, or what the signal was aborted with. */
export interface TargetKind {
  readonly name: string;
  readonly capabilities: ReadonlySet<Capability>;
  /** What else it can, found out by asking what runs already. Throws MissingPeerError when that is not there. */
  askCapabilities?(): Promise<ReadonlySet<Capability>>;
  /** How many boxes it has at most; undefined where they are made as needed. */
  readonly boxesMax?: number;
  open(need: TargetRequest): Promise<Target>;
}

/** What a scenario asks of a target beyond speaking to it. */
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

/** Every step, those that others hold included. */
export function* everyStep(steps: readonly Step[]): Iterable<Step> {
  for (const step of steps) {
    yield step;
    yield* everyStep(step.repeat?.steps ?? []);
    yield* everyStep(step['for each box'] ?? []);
    for (const branch of step.parallel ?? []) yield* everyStep(branch);
  }
}

/** Why the target cannot run the scenario; undefined when it can. Throws MissingPeerError when nobody is there to ask. */
export async function reasonToSkip(scenario: Scenario, kind: TargetKind): Promise<string | undefined> {
  if (kind.boxesMax !== undefined && scenario.boxes > kind.boxesMax) {
    return `needs ${scenario.boxes} boxes, target ${kind.name} has ${kind.boxesMax}`;
  }
  const missing = [...capabilitiesNeeded(scenario)].filter((need) => !kind.capabilities.has(need));
  // Whoever runs already is asked only where that can change the answer.
  const isWorthAsking = missing.length > 0 && missing.every((need) => need in ADVICE);
  const found = isWorthAsking ? await kind.askCapabilities?.() : undefined;
  const lacking = missing.filter((need) => found?.has(need) !== true);
  if (lacking.length === 0) return undefined;
  const advice = lacking.flatMap((need) => ADVICE[need] ?? ELSEWHERE[need] ?? []);
  return [`target ${kind.name} cannot ${lacking.join(', ')}`, ...new Set(advice)].join('; ');
}
