import type { Random } from '../../lib/random.ts';
import { seededRandom } from '../../lib/seeded.ts';
import type { Step } from '../vocabulary/steps.ts';
import type { StepContext } from './context.ts';

const SEED_LIMIT = 2 ** 31;

/** `repeat`: the steps one round after the other. */
export async function repeat({ times, steps }: NonNullable<Step['repeat']>, context: StepContext): Promise<undefined> {
  const path = [...context.path, 'repeat', 'steps'];
  for (let n = 1; n <= times; n += 1) {
    await context.run(steps, { ...context, path, scope: context.scope.inner({ n }) });
  }
}

/** `parallel`: lists of steps at the same time. */
export async function parallel(branches: readonly (readonly Step[])[], context: StepContext): Promise<undefined> {
  const chances = branches.map(() => branched(context.random));
  await allOf(
    branches.map((steps, index) =>
      context.run(steps, {
        ...context,
        random: chances[index] ?? context.random,
        path: [...context.path, 'parallel', index],
        scope: context.scope.inner({ branch: index + 1 }),
      }),
    ),
  );
}

/** `for each box`: the steps for every box at the same time. */
export async function forEachBox(steps: readonly Step[], context: StepContext): Promise<undefined> {
  const chances = context.target.boxes.map(() => branched(context.random));
  await allOf(
    context.target.boxes.map(({ terminalCode, serialNumber }, box) =>
      context.run(steps, {
        ...context,
        random: chances[box] ?? context.random,
        box,
        isBoxNamed: true,
        path: [...context.path, 'for each box'],
        scope: context.scope.inner({ n: box + 1, box: { terminalCode, serialNumber } }),
      }),
    ),
  );
}

/** Chance of one branch's own, so that what it meets does not depend on how fast the others are. */
function branched(random: Random): Random {
  return seededRandom(Math.floor(random.fraction() * SEED_LIMIT));
}

/** Waits for all, also when one fails, so that nothing goes on behind the verdict; then throws the first failure. */
async function allOf(running: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(running)).find((it) => it.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
