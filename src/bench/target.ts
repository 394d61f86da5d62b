import type { BoxAt } from './box-at.ts';
import type { GatewayAt } from './gateway-at.ts';
import type { Pace } from './pace.ts';
import type { Probe } from './probe.ts';
import type { Scenario, Step } from './scenario.ts';
import type { ShopServer } from './shop-server.ts';

/** What only some targets can do. */
export type Ability =
  | 'turn boxes off and on'
  | 'turn the gateway off and on'
  | 'kill programs'
  | 'answer callbacks'
  | 'start boxes without a secret';

/** Whether a program of the target runs. `killed`: ended without a chance to do anything about it. */
export type Power = 'on' | 'off' | 'killed';

/** What a scenario runs against. */
export interface Target {
  readonly name: string;
  readonly pace: Pace;
  readonly gateway: GatewayAt;
  readonly boxes: readonly BoxAt[];
  readonly probe: Probe;
  /** The partner's server, where the bench has it. */
  readonly shop?: ShopServer;
  /** Throws PayboxError for a target that has not said that it can. */
  powerBox(box: number, power: Power): Promise<void>;
  powerGateway(power: Power): Promise<void>;
  close(): Promise<void>;
}

/** What a target is opened with. */
export interface Need {
  boxes: number;
  enrolled: boolean;
  /** Where callbacks go instead of to the partner's server of the bench, which is then not there. */
  callbackUrl?: string | undefined;
}

/** Makes a target for one scenario. Throws MissingPeerError when what is needed is not there. */
export interface TargetKind {
  readonly name: string;
  readonly abilities: ReadonlySet<Ability>;
  /** How many boxes it has at most; undefined where they are made as needed. */
  readonly boxesMax?: number;
  open(need: Need): Promise<Target>;
}

/** What a scenario asks of a target beyond speaking to it. */
export function needsOf(scenario: Scenario): Set<Ability> {
  const needs = new Set<Ability>();
  if (!scenario.enrolled) needs.add('start boxes without a secret');
  for (const { fault } of everyStep(scenario.steps)) {
    if (fault?.box !== undefined) needs.add('turn boxes off and on');
    if (fault?.gateway !== undefined) needs.add('turn the gateway off and on');
    if (fault?.box === 'killed' || fault?.gateway === 'killed') needs.add('kill programs');
    if (fault?.partner !== undefined) needs.add('answer callbacks');
  }
  return needs;
}

function* everyStep(steps: readonly Step[]): Iterable<Step> {
  for (const step of steps) {
    yield step;
    yield* everyStep(step.repeat?.steps ?? []);
    yield* everyStep(step['for each box'] ?? []);
    for (const branch of step.parallel ?? []) yield* everyStep(branch);
  }
}

/** Why the target cannot run the scenario; undefined when it can. */
export function obstacle(scenario: Scenario, kind: TargetKind): string | undefined {
  const missing = [...needsOf(scenario)].filter((need) => !kind.abilities.has(need));
  if (missing.length > 0) return `target ${kind.name} cannot ${missing.join(', ')}`;
  if (kind.boxesMax !== undefined && scenario.boxes > kind.boxesMax) {
    return `needs ${scenario.boxes} boxes, target ${kind.name} has ${kind.boxesMax}`;
  }
  return undefined;
}
