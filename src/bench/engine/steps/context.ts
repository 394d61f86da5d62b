import type { Random } from '../../../lib/random.ts';
import type { ActiveFaultView } from '../../../protocol/faults.ts';
import { type Problem, reasonIn } from '../../scenarios/difference.ts';
import type { Scenario } from '../../scenarios/scenario.ts';
import type { Scope } from '../../scenarios/scope.ts';
import type { Source } from '../../scenarios/source.ts';
import type { BoxClient } from '../clients/box.ts';
import type { GatewayClient } from '../clients/gateway.ts';
import type { FailureDetail } from '../reports/result.ts';
import type { Transcript } from '../reports/transcript.ts';
import type { Target } from '../target.ts';

/** A fault that the scenario has injected. */
export interface InjectedFault extends ActiveFaultView {
  /** The gateway or box that makes the fault. */
  readonly at: GatewayClient | BoxClient;
  /** The path and file of the step that injected it. */
  readonly path: readonly (string | number)[];
  readonly source: Source;
  /** The fault was active when the power was turned off there. */
  readonly endedByPowerOff?: true;
}

/** The state before a scenario at a target that ran already. */
export interface Baseline {
  /** The transaction id of the newest payment. */
  readonly payment: string | undefined;
  /** The number of payments that each box had announced, by terminalCode. */
  readonly announcements: ReadonlyMap<string, number | undefined>;
}

/** An order whose QR was pushed to a box. */
export interface PushedOrder {
  readonly orderId: string;
  readonly terminalCode: string;
}

/** The answers of the partner that a step has ordered. */
export interface OrderedAnswers {
  /** The number of callbacks that the partner had received before. */
  readonly after: number;
  readonly path: readonly (string | number)[];
  readonly source: Source;
}

/** The state that steps hand on to the next one. */
export interface ScenarioState {
  firstToken?: string;
  /** The injected faults in the order of their injection. */
  injectedFaults?: InjectedFault[];
  orderedAnswers?: OrderedAnswers[];
  baseline?: Baseline;
  /** The terminalCodes of boxes that were turned off. */
  turnedOff?: Set<string>;
  /** The transaction ids of payments that the gateway accepted. */
  paid?: string[];
  /** The number of steps that have begun. */
  stepsRun?: number;
  latest?: StepContext;
  /** The box and order of each QR's last push, to name the owner of a wrong one. */
  pushed?: Map<string, PushedOrder>;
}

/** The context of a step. */
export interface StepContext {
  readonly scenario: Scenario;
  /** The file of the steps: the scenario's own file, or one that it includes. */
  readonly source: Source;
  readonly target: Target;
  readonly transcript: Transcript;
  readonly random: Random;
  readonly scope: Scope;
  readonly state: ScenarioState;
  /** The index (from 0) of the step's default box. */
  readonly box: number;
  /** True if the steps name this box, or run for each box. */
  readonly isBoxNamed?: boolean;
  /** The path of the steps in the file. */
  readonly path: readonly (string | number)[];
  /** Writes golden pictures instead of comparing with them. */
  readonly updateGoldens: boolean;
  readonly signal: AbortSignal;
  readonly onStep: (title: string) => void;
}

/** Reports an unmet expectation. It decides the scenario's verdict and is no error of the bench. */
export class StepFailure extends Error {
  /** The path of the step in the file. */
  readonly path: readonly (string | number)[];
  /** The expected value, where the reason does not say everything. */
  readonly expected: string | undefined;
  readonly actual: string | undefined;
  /** Observations that help to understand the failure. */
  readonly notes: readonly string[];
  /** The file of the step. */
  readonly source: Source | undefined;

  constructor(
    problem: Problem,
    { path, source }: Pick<StepContext, 'path'> & Partial<Pick<StepContext, 'source'>>,
    { cause, notes = [] }: { cause?: unknown; notes?: readonly string[] } = {},
  ) {
    super(reasonIn(problem), cause === undefined ? undefined : { cause });
    this.name = 'StepFailure';
    this.path = path;
    this.source = source;
    this.notes = notes;
    ({ expected: this.expected, actual: this.actual } =
      typeof problem === 'string' ? { expected: undefined, actual: undefined } : problem);
  }

  /** Returns the place of the step, for example `happy-path.yaml:12`. */
  get where(): string | undefined {
    return this.source && placeOf(this.source, this.path);
  }

  /** Returns the failure for a report. */
  get detail(): FailureDetail {
    const { expected, actual, notes } = this;
    return { lines: this.source?.excerpt(this.path) ?? [], expected, actual, notes };
  }
}

/** Returns the box of a step. Throws StepFailure when it does not exist. */
export function boxOf(context: StepContext): BoxClient {
  const box = context.target.boxes[context.box];
  if (box !== undefined) return box;
  throw new StepFailure(
    `there is no box ${context.box + 1}: the scenario asks for ${context.scenario.boxes}, see "boxes"`,
    context,
  );
}

/** Returns the place of a step, for example `happy-path.yaml:12`. */
export function placeOf(source: Source, path: readonly (string | number)[]): string {
  return `${source.file}:${source.placeOf(path).line}`;
}
