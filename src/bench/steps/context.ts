import type { Random } from '../../lib/random.ts';
import type { BoxAt } from '../box-at.ts';
import type { Evidence } from '../evidence.ts';
import type { Scenario, Step } from '../scenario.ts';
import type { Target } from '../target.ts';
import type { Scope } from '../values.ts';

/** What a step works with. */
export interface StepContext {
  readonly scenario: Scenario;
  readonly target: Target;
  readonly evidence: Evidence;
  readonly random: Random;
  readonly scope: Scope;
  /** What the partner keeps from step to step. */
  readonly session: { firstToken?: string };
  /** Of the box that a step is about unless it names another, from 0 on. */
  readonly box: number;
  /** Where the steps stand in the file. */
  readonly path: readonly (string | number)[];
  /** Golden pictures are written, not compared with. */
  readonly updateGoldens: boolean;
  /** Runs the steps of a list; for steps that hold others. */
  readonly run: (steps: readonly Step[], context: StepContext) => Promise<void>;
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
export function boxOf(context: StepContext): BoxAt {
  const box = context.target.boxes[context.box];
  if (box !== undefined) return box;
  throw new StepFailure(
    `there is no box ${context.box + 1}: the scenario asks for ${context.scenario.boxes}, see "boxes"`,
    context.path,
  );
}
