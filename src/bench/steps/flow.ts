import type { Step } from '../scenario.ts';
import type { StepContext } from './context.ts';

/** `repeat`: the steps one round after the other. */
export async function repeat({ times, steps }: NonNullable<Step['repeat']>, context: StepContext): Promise<undefined> {
  const path = [...context.path, 'repeat', 'steps'];
  for (let n = 1; n <= times; n += 1) {
    await context.run(steps, { ...context, path, scope: context.scope.inner({ n }) });
  }
}

/** `parallel`: lists of steps at the same time. */
export async function parallel(branches: readonly (readonly Step[])[], context: StepContext): Promise<undefined> {
  await allOf(
    branches.map((steps, index) =>
      context.run(steps, {
        ...context,
        path: [...context.path, 'parallel', index],
        scope: context.scope.inner({ branch: index + 1 }),
      }),
    ),
  );
}

/** `for each box`: the steps for every box at the same time. */
export async function forEachBox(steps: readonly Step[], context: StepContext): Promise<undefined> {
  await allOf(
    context.target.boxes.map(({ terminalCode, serialNumber }, box) =>
      context.run(steps, {
        ...context,
        box,
        path: [...context.path, 'for each box'],
        scope: context.scope.inner({ n: box + 1, box: { terminalCode, serialNumber } }),
      }),
    ),
  );
}

/** Waits for all, also when one fails, so that nothing goes on behind the verdict; then throws the first failure. */
async function allOf(running: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(running)).find((it) => it.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
