import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, vi } from 'vitest';
import { boxChecksNear, brokenClauses, judge } from './box-fixture.ts';
import type { Reduce, ReducerChange } from './mutants/reducer.ts';
import { STATE_MUTANTS } from './mutants/state.ts';
import { keepOutcomes, MUTANT_TIMEOUT_MS } from './nearby-checks.ts';

const changes = vi.hoisted(() => ({ of: undefined as AsyncLocalStorage<Reduce> | undefined }));
const original = vi.hoisted(() => ({ reduce: undefined as unknown }));

vi.mock('../../src/device/box/reduce.ts', async (importOriginal) => {
  const { reduce } = await importOriginal<{ reduce: Reduce }>();
  original.reduce = reduce;
  return { reduce: (...given: Parameters<Reduce>) => (changes.of?.getStore() ?? reduce)(...given) };
});

changes.of = new AsyncLocalStorage<Reduce>();

describe.concurrent('a box that', () => {
  it.for(Object.entries(STATE_MUTANTS))(
    'the judge fails a box that %s by its clause, and by no other',
    { timeout: MUTANT_TIMEOUT_MS },
    async ([, { breaks, change, needs = [] }], { task }) => {
      const without = (['restart', 'slow'] as const).filter((need) => !needs.includes(need));
      const results = await changes.of?.run(changed(change), () =>
        judge({ breaks }, { without, checks: boxChecksNear(breaks) }),
      );
      const reasons = keepOutcomes(task, results ?? []);
      expect(brokenClauses(results ?? []), reasons).toEqual(breaks);
    },
  );
});

/** The mutant's own reducer, so that it can remember something. */
function changed(change: ReducerChange): Reduce {
  return change((...given) => (original.reduce as Reduce)(...given));
}
