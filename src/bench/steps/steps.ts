import { reasonOf } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { seededRandom } from '../../lib/random.ts';
import { type Step, VERBS, type Verb } from '../vocabulary/steps.ts';
import { shown } from '../vocabulary/variables.ts';
import { cancel, enrol, generate, pay, press, push, wait } from './actions.ts';
import { type StepContext, StepFailure } from './context.ts';
import { expect } from './expect.ts';
import { fault } from './faults.ts';

/** Verbs with nested steps. Variables in nested steps are replaced when those steps run. */
const NESTING_VERBS: readonly Verb[] = ['repeat', 'parallel', 'for each box'];

/** Runs steps one after another. Throws StepFailure for the first that fails. */
export async function runSteps(steps: readonly Step[], context: StepContext): Promise<void> {
  for (const [index, step] of steps.entries()) {
    await runStep(step, { ...context, path: [...context.path, index] });
  }
}

/** Runs the step at the context's path. Returns its result for variables. Throws StepFailure, or the signal's reason. */
export async function runStep(step: Step, context: StepContext): Promise<object | undefined> {
  context.signal.throwIfAborted();
  try {
    return await told(step, step.box === undefined ? context : { ...context, box: step.box - 1, isBoxNamed: true });
  } catch (error) {
    if (error instanceof StepFailure || context.signal.aborted) throw error;
    throw new StepFailure(reasonOf(error), context.path, error);
  }
}

/** The verb of a step; the schema guarantees exactly one. */
export function verbOf(step: Step): Verb {
  return VERBS.find((verb) => step[verb] !== undefined) ?? 'wait';
}

async function told(step: Step, context: StepContext): Promise<object | undefined> {
  const verb = verbOf(step);
  const hasNestedSteps = NESTING_VERBS.includes(verb);
  const filled = hasNestedSteps ? step : context.scope.fill(step);
  const words = hasNestedSteps ? '' : `: ${shown(filled[verb])}`;
  const title = step.title ?? `${verb}${words}`;
  context.onStep(title);
  context.transcript.add('step', title, { detail: { path: context.path.join('.') } });
  const work = () => perform(filled, context);
  // Virtual time may be skipped only while a step waits.
  const isWaiting = hasNestedSteps || ['wait', 'expect', 'enrol'].includes(verb);
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

const SEED_LIMIT = 2 ** 31;

/** `repeat`: runs the steps several times, one round after another. */
export async function repeat({ times, steps }: NonNullable<Step['repeat']>, context: StepContext): Promise<undefined> {
  const path = [...context.path, 'repeat', 'steps'];
  for (let n = 1; n <= times; n += 1) {
    await runSteps(steps, { ...context, path, scope: context.scope.inner({ n }) });
  }
}

/** `parallel`: runs lists of steps at the same time. */
export async function parallel(branches: readonly (readonly Step[])[], context: StepContext): Promise<undefined> {
  const randoms = branches.map(() => branchRandom(context.random));
  await allSettled(
    branches.map((steps, index) =>
      runSteps(steps, {
        ...context,
        random: randoms[index] ?? context.random,
        path: [...context.path, 'parallel', index],
        scope: context.scope.inner({ branch: index + 1 }),
      }),
    ),
  );
}

/** `for each box`: runs the steps for all boxes at the same time. */
export async function forEachBox(steps: readonly Step[], context: StepContext): Promise<undefined> {
  const randoms = context.target.boxes.map(() => branchRandom(context.random));
  await allSettled(
    context.target.boxes.map(({ terminalCode, serialNumber }, box) =>
      runSteps(steps, {
        ...context,
        random: randoms[box] ?? context.random,
        box,
        isBoxNamed: true,
        path: [...context.path, 'for each box'],
        scope: context.scope.inner({ n: box + 1, box: { terminalCode, serialNumber } }),
      }),
    ),
  );
}

/** Own random numbers for each branch, so that its choices do not depend on the speed of other branches. */
function branchRandom(random: Random): Random {
  return seededRandom(Math.floor(random.fraction() * SEED_LIMIT));
}

/** Waits for all, also when one fails, so that nothing runs after the verdict. Then throws the first failure. */
async function allSettled(running: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(running)).find((it) => it.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
