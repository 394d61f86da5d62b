import type { Random } from '../../lib/random.ts';
import type { ActiveFaultView } from '../../protocol/faults.ts';
import type { BoxClient } from '../clients/box.ts';
import type { GatewayClient } from '../clients/gateway.ts';
import type { Transcript } from '../reports/transcript.ts';
import type { Target } from '../target.ts';
import type { Scenario } from '../vocabulary/scenario.ts';
import type { Scope } from '../vocabulary/variables.ts';

/** A fault that the scenario has injected. */
export interface InjectedFault extends ActiveFaultView {
  /** Gateway or box that makes the fault. */
  readonly at: GatewayClient | BoxClient;
  /** Path of the step that injected it. */
  readonly path: readonly (string | number)[];
  /** It was active when the power there was turned off. */
  readonly endedByPowerOff?: true;
}

/** The state before a scenario at a target that ran already. */
export interface Baseline {
  /** Transaction id of the newest payment. */
  readonly payment: string | undefined;
  /** Number of payments that each box had announced, by terminalCode. */
  readonly announcements: ReadonlyMap<string, number | undefined>;
}

/** Kept from step to step. */
export interface ScenarioState {
  firstToken?: string;
  /** In the order of injection. */
  injectedFaults?: InjectedFault[];
  baseline?: Baseline;
  /** terminalCodes of boxes that were turned off. */
  turnedOff?: Set<string>;
  /** Transaction ids of payments that the gateway accepted. */
  paid?: string[];
}

/** The context of a step. */
export interface StepContext {
  readonly scenario: Scenario;
  readonly target: Target;
  readonly transcript: Transcript;
  readonly random: Random;
  readonly scope: Scope;
  readonly state: ScenarioState;
  /** Index (from 0) of the default box of the step. */
  readonly box: number;
  /** Whether the steps name this box or run for each box. */
  readonly isBoxNamed?: boolean;
  /** Path of the steps in the file. */
  readonly path: readonly (string | number)[];
  /** Write golden pictures instead of comparing with them. */
  readonly updateGoldens: boolean;
  readonly signal: AbortSignal;
  readonly onStep: (title: string) => void;
}

/** An unmet expectation. It gives the scenario's verdict and is no error of the bench. */
export class StepFailure extends Error {
  /** Path of the step in the file. */
  readonly path: readonly (string | number)[];

  constructor(message: string, path: readonly (string | number)[], cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StepFailure';
    this.path = path;
  }
}

/** The box of a step. Throws StepFailure when it does not exist. */
export function boxOf(context: StepContext): BoxClient {
  const box = context.target.boxes[context.box];
  if (box !== undefined) return box;
  throw new StepFailure(
    `there is no box ${context.box + 1}: the scenario asks for ${context.scenario.boxes}, see "boxes"`,
    context.path,
  );
}
