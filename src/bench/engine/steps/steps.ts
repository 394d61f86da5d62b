import { reasonOf } from '../../../lib/errors.ts';
import type { Random } from '../../../lib/random.ts';
import { seededRandom } from '../../../lib/random.ts';
import { shown } from '../../scenarios/difference.ts';
import { truth } from '../../scenarios/expression.ts';
import { COUNTER, type Step, VERBS, type Verb } from '../../scenarios/steps.ts';
import { LIMITS } from '../../scenarios/values.ts';
import { cancel, enrol, generate, pay, press, push, wait } from './actions.ts';
import { placeOf, type StepContext, StepFailure } from './context.ts';
import { expect } from './expect.ts';
import { fault } from './faults.ts';

/** Runs steps one after another. Throws StepFailure for the first one that fails. */
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
    throw new StepFailure(reasonOf(error), context, { cause: error });
  }
}

/** Returns the verb of a step. The schema guarantees exactly one. */
function verbOf(step: Step): Verb {
  return VERBS.find((verb) => step[verb] !== undefined) ?? 'wait';
}

/** Runs one verb. Later steps can refer to its result. */
interface StepRunner<Value> {
  run(value: Value, context: StepContext, step: Step): Promise<object | undefined>;
  /** True if the verb waits. Only then may virtual time be skipped. */
  waits?: true;
  /** True if the verb has steps of its own. Their variables are replaced when they run. */
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
  if: { run: choose, waits: true, nests: true },
  include: { run: include, waits: true, nests: true },
};

async function runVerb<V extends Verb>(verb: V, step: Step, context: StepContext): Promise<object | undefined> {
  const { run, waits, nests } = RUNNERS[verb];
  const { scope, random, state } = context;
  const { title: named, ...rest } = step;
  const filled: Step = nests ? rest : scope.fill(rest, random);
  const value = filled[verb];
  const title = named === undefined ? titleOf(verb, value, nests) : String(scope.fill(named, random));
  state.stepsRun = (state.stepsRun ?? 0) + 1;
  state.latest = context;
  if (state.stepsRun > LIMITS.stepsInAll)
    throw new StepFailure(`more than ${LIMITS.stepsInAll} steps were run`, context);
  announceStep(verb, title, context);
  if (value === undefined) return undefined;
  const work = () => run(value, context, step);
  const result = await (waits ? work() : context.target.time.untilAnswered(work));
  if (result !== undefined) {
    scope.set(verb, result);
    if (step.as !== undefined) scope.set(step.as, result);
  }
  return result;
}

function titleOf(verb: Verb, value: unknown, nests: true | undefined): string {
  if (verb === 'include' || verb === 'if') return `${verb}: ${String(value)}`;
  return nests ? verb : `${verb}: ${shown(value)}`;
}

/** These verbs are about a box, whether or not they name it. */
const OF_BOX: ReadonlySet<Verb> = new Set(['push', 'enrol', 'expect', 'press']);

/** Records that a step begins. Where there are several boxes it names the box. */
function announceStep(verb: Verb, title: string, context: StepContext): void {
  const { source, path, target, transcript, isBoxNamed, onStep } = context;
  const { terminalCode } = target.boxes[context.box] ?? {};
  const isOfBox = isBoxNamed === true || (target.boxes.length > 1 && OF_BOX.has(verb));
  const box = isOfBox || target.boxes.length === 1 ? terminalCode : undefined;
  const words = isOfBox && terminalCode !== undefined ? `${terminalCode}  ${title}` : title;
  onStep(words);
  const lines = source.excerpt(path).filter(({ isOfStep }) => isOfStep);
  transcript.add('step', words, { box, where: placeOf(source, path), lines, detail: { path: path.join('.') } });
}

const SEED_LIMIT = 2 ** 31;

/**
 * Runs `repeat`: the steps several times, one round after another. Afterwards the results still exist, but not the
 * counter.
 */
async function repeat(
  { times, as = COUNTER, steps }: NonNullable<Step['repeat']>,
  context: StepContext,
): Promise<undefined> {
  const path = [...context.path, 'repeat', 'steps'];
  const given = context.scope.fill<unknown>(times, context.random);
  const rounds = Number(given);
  if (!Number.isSafeInteger(rounds) || rounds < 1 || rounds > LIMITS.times) {
    throw new StepFailure(`repeat: expected from 1 to ${LIMITS.times} times, is ${shown(given)}`, context);
  }
  for (let round = 1; round <= rounds; round += 1) {
    await runSteps(steps, { ...context, path, scope: context.scope.loop({ [as]: round }) });
  }
}

/** Runs `if`: the steps of one case. */
async function choose(condition: boolean | string, context: StepContext, step: Step): Promise<undefined> {
  const isTrue = truth(context.scope.fill<unknown>(condition, context.random));
  const which = isTrue ? 'then' : 'else';
  await runSteps(step[which] ?? [], { ...context, path: [...context.path, which] });
}

/** Runs `include`: the steps of another file. The file's variables are defaults for those of the same name. */
async function include(name: string, context: StepContext, { included }: Step): Promise<undefined> {
  if (included === undefined) throw new StepFailure(`include: ${name} was not read`, context);
  const { scope, random } = context;
  for (const [variable, value] of Object.entries(included.variables)) {
    if (scope.valueOf(variable) === undefined) scope.set(variable, scope.fill(value, random));
  }
  await runSteps(included.steps, { ...context, source: included.source, path: ['steps'] });
}

/** Runs `parallel`: lists of steps at the same time. */
async function parallel(branches: readonly (readonly Step[])[], context: StepContext): Promise<undefined> {
  const each = branches.map((steps, index) => ({
    steps,
    random: branchRandom(context.random),
    path: [...context.path, 'parallel', index],
    scope: context.scope.branch({ branch: index + 1 }),
  }));
  await allSettled(each.map(({ steps, ...own }) => runSteps(steps, { ...context, ...own })));
  context.scope.adopt(
    each.map(({ scope }) => scope),
    ['branch'],
  );
}

/** Runs `for each box`: the steps for all boxes at the same time. */
async function forEachBox(steps: readonly Step[], context: StepContext): Promise<undefined> {
  const each = context.target.boxes.map(({ terminalCode, serialNumber }, box) => ({
    random: branchRandom(context.random),
    box,
    scope: context.scope.branch({ [COUNTER]: box + 1, box: { terminalCode, serialNumber } }),
  }));
  const path = [...context.path, 'for each box'];
  await allSettled(each.map((own) => runSteps(steps, { ...context, isBoxNamed: true, path, ...own })));
  context.scope.forget(
    each.map(({ scope }) => scope),
    [COUNTER, 'box'],
  );
}

/** Returns random numbers for one branch, so that its choices do not depend on the speed of other branches. */
function branchRandom(random: Random): Random {
  return seededRandom(Math.floor(random.fraction() * SEED_LIMIT));
}

/** Waits for all, also when one fails, so that nothing runs after the verdict. Then it throws the first failure. */
async function allSettled(running: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(running)).find((it) => it.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
