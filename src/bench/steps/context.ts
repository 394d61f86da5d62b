import type { Random } from '../../lib/random.ts';
import type { StandingFault } from '../../protocol/faults.ts';
import type { BoxClient } from '../clients/box.ts';
import type { GatewayClient } from '../clients/gateway.ts';
import type { Transcript } from '../reports/transcript.ts';
import type { Target } from '../target.ts';
import type { Scenario } from '../vocabulary/scenario.ts';
import type { Scope } from '../vocabulary/variables.ts';

/** A fault that a scenario has ordered by its name. */
export interface InjectedFault extends StandingFault {
  /** Where it was ordered. */
  readonly at: GatewayClient | BoxClient;
  /** The place of the step that ordered it. */
  readonly path: readonly (string | number)[];
  /** It stood when the power there was turned off. */
  readonly endedByPowerOff?: true;
}

/** How things were before a scenario, where they did not begin with it. */
export interface Baseline {
  /** The newest payment, by its transaction id. */
  readonly payment: string | undefined;
  /** How many payments each box had announced, by terminalCode. */
  readonly announcements: ReadonlyMap<string, number | undefined>;
}

/** What is kept from step to step. */
export interface ScenarioState {
  firstToken?: string;
  /** In the order in which they were injected. */
  injectedFaults?: InjectedFault[];
  baseline?: Baseline;
  /** Boxes that were, by terminalCode. */
  turnedOff?: Set<string>;
  /** Payments that the gateway has taken, by transaction id. */
  paid?: string[];
}

/** What a step works with. */
export interface StepContext {
  readonly scenario: Scenario;
  readonly target: Target;
  readonly transcript: Transcript;
  readonly random: Random;
  readonly scope: Scope;
  readonly state: ScenarioState;
  /** Of the box that a step is about unless it names another, from 0 on. */
  readonly box: number;
  /** Whether the steps name this box, or are for each box. */
  readonly isBoxNamed?: boolean;
  /** Where the steps stand in the file. */
  readonly path: readonly (string | number)[];
  /** Golden pictures are written, not compared with. */
  readonly updateGoldens: boolean;
  readonly signal: AbortSignal;
  /** Called with each step as it begins. */
  readonly onStep: (title: string) => void;
}

/** What was expected and is not so: the verdict of a scenario, and no fault of the bench. */
export class StepFailure extends Error {
  /** Where the step stands in the file. */
  readonly path: readonly (string | number)[];

  constructor(message: string, path: readonly (string | number)[], cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StepFailure';
    this.path = path;
  }
}

/** The box that a step is about. Throws StepFailure for one that there is not. */
export function boxOf(context: StepContext): BoxClient {
  const box = context.target.boxes[context.box];
  if (box !== undefined) return box;
  throw new StepFailure(
    `there is no box ${context.box + 1}: the scenario asks for ${context.scenario.boxes}, see "boxes"`,
    context.path,
  );
}
