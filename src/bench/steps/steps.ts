import { reasonOf } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { seededRandom } from '../../lib/random.ts';
import { type Step, VERBS, type Verb } from '../vocabulary/steps.ts';
import { shown } from '../vocabulary/variables.ts';
import { cancel, enrol, generate, pay, press, push, wait } from './actions.ts';
import { type StepContext, StepFailure } from './context.ts';
import { expect } from './expect.ts';
import { fault } from './faults.ts';

/** Runs steps one after another. Throws StepFailure for the first that fails. */
export async function runSteps(steps: readonly Step[], context: StepContext): Promise<void> {
  for (const [index, step] of steps.entries()) {
    await runStep(step, { ...context, path: [...context.path, index] });
  }
}

/** Runs the step at the context's path. Returns its result for variables. Throws StepFailure, or the signal's reason. */
export async function runStep(step: Step, context: StepContext): Promise<object | undefined> {
  context.signal.throwIfAborted();
  const at = step.box === undefined ? context : { ...context, box: step.box - 1, isBoxNamed: true };
  try {
    return await runVerb(verbOf(step), step, at);
  } catch (error) {
    if (error instanceof StepFailure || context.signal.aborted) throw error;
    throw new StepFailure(reasonOf(error), context.path, error);
  }
}

/** The verb of a step; the schema guarantees exactly one. */
export function verbOf(step: Step): Verb {
  return VERBS.find((verb) => step[verb] !== undefined) ?? 'wait';
}

/** How a verb runs. Its result is what later steps can refer to. */
interface StepRunner<Value> {
  run(value: Value, context: StepContext): Promise<object | undefined>;
  /** Whether it waits: only then may virtual time be skipped. */
  waits?: true;
  /** Whether it has steps of its own. Their variables are replaced when they run. */
  nests?: true;
}

const RUNNERS: { readonly [V in Verb]: StepRunner<NonNullable<Step[V]>> } = {
  generate: { run: generate },
  push: { run: push },
  pay: { run: pay },
  cancel: { run: cancel },
  enrol: { run: enrol, waits: true },
  expect: { run: expect, waits: true },
  wait: { run: wait, waits: true },
  press: { run: press },
  fault: { run: fault },
  set: {
    run: async (variables, { scope }) => {
      for (const [name, value] of Object.entries(variables)) scope.set(name, value);
      return undefined;
    },
  },
  repeat: { run: repeat, waits: true, nests: true },
  parallel: { run: parallel, waits: true, nests: true },
  'for each box': { run: forEachBox, waits: true, nests: true },
};

async function runVerb<V extends Verb>(verb: V, step: Step, context: StepContext): Promise<object | undefined> {
  const { run, waits, nests } = RUNNERS[verb];
  const filled: Step = nests ? step : context.scope.fill(step);
  const value = filled[verb];
  const title = step.title ?? (nests ? verb : `${verb}: ${shown(value)}`);
  context.onStep(title);
  context.transcript.add('step', title, { detail: { path: context.path.join('.') } });
  if (value === undefined) return undefined;
  const work = () => run(value, context);
  const result = await (waits ? work() : context.target.time.inRealTime(work));
  if (result !== undefined) {
    context.scope.set(verb, result);
    if (step.as !== undefined) context.scope.set(step.as, result);
  }
  return result;
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
