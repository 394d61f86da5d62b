import { reasonOf } from '../../lib/errors.ts';
import { type Step, VERBS, type Verb } from '../vocabulary/steps.ts';
import { shown } from '../vocabulary/variables.ts';
import { type StepContext, StepFailure } from './context.ts';
import { enrol, press, wait } from './control.ts';
import { expect } from './expect.ts';
import { fault } from './faults.ts';
import { forEachBox, parallel, repeat } from './flow.ts';
import { cancel, generate, pay, push } from './orders.ts';

/** Steps that hold others: what is in them is filled in when its turn comes. */
const HOLDERS: readonly Verb[] = ['repeat', 'parallel', 'for each box'];

/** Runs a list of steps, one after the other. Throws StepFailure for the first that is not as it should be. */
export async function runSteps(steps: readonly Step[], context: StepContext): Promise<void> {
  for (const [index, step] of steps.entries()) {
    await runStep(step, { ...context, path: [...context.path, index] });
  }
}

/**
 * Runs the step that stands at the path of the context; what it gave, as variables name it. Throws StepFailure, or what
 * the signal was aborted with.
 */
export async function runStep(step: Step, context: StepContext): Promise<object | undefined> {
  context.signal.throwIfAborted();
  try {
    return await told(step, step.box === undefined ? context : { ...context, box: step.box - 1, isBoxNamed: true });
  } catch (error) {
    if (error instanceof StepFailure || context.signal.aborted) throw error;
    throw new StepFailure(reasonOf(error), context.path, error);
  }
}

/** The verb of a step; the schema has it that there is exactly one. */
export function verbOf(step: Step): Verb {
  return VERBS.find((verb) => step[verb] !== undefined) ?? 'wait';
}

async function told(step: Step, context: StepContext): Promise<object | undefined> {
  const verb = verbOf(step);
  const isHolder = HOLDERS.includes(verb);
  const filled = isHolder ? step : context.scope.fill(step);
  const words = isHolder ? '' : `: ${shown(filled[verb])}`;
  const title = step.title ?? `${verb}${words}`;
  context.onStep(title);
  context.transcript.add('step', title, { detail: { path: context.path.join('.') } });
  const work = () => perform(filled, context);
  // Time may be skipped while a step only waits for it.
  const isWaiting = isHolder || ['wait', 'expect', 'enrol'].includes(verb);
  const result = await (isWaiting ? work() : context.target.time.inRealTime(work));
  if (result !== undefined) {
    context.scope.set(verb, result);
    if (step.as !== undefined) context.scope.set(step.as, result);
  }
  return result;
}

async function perform(step: Step, context: StepContext): Promise<object | undefined> {
  if (step.generate !== undefined) return generate(step.generate, context);
  if (step.push !== undefined) return push(step.push, context);
  if (step.pay !== undefined) return pay(step.pay, context);
  if (step.cancel !== undefined) return cancel(step.cancel, context);
  if (step.enrol !== undefined) return enrol(step.enrol, context);
  if (step.expect !== undefined) return expect(step.expect, context);
  if (step.wait !== undefined) return wait(step.wait, context);
  if (step.press !== undefined) return press(step.press, context);
  if (step.fault !== undefined) return fault(step.fault, context);
  if (step.repeat !== undefined) return repeat(step.repeat, context);
  if (step.parallel !== undefined) return parallel(step.parallel, context);
  if (step['for each box'] !== undefined) return forEachBox(step['for each box'], context);
  for (const [name, value] of Object.entries(step.set ?? {})) context.scope.set(name, value);
  return undefined;
}
