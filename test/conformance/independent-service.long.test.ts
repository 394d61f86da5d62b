import { describe, expect, it } from 'vitest';
import { SERVICE_CHECKS } from '../../src/bench/judges/service/checks/all.ts';
import { CHOICES, type Fault, WRONGS } from './independent/faults.ts';
import { judgeIndependent } from './independent/judged.ts';
import { checksNear, keepOutcomes, MUTANT_TIMEOUT_MS } from './nearby-checks.ts';
import { clausesOf } from './service-fixture.ts';

const entriesOf = <F extends Fault>(faults: Readonly<Record<F, readonly string[]>>) =>
  Object.entries(faults) as [F, readonly string[]][];

describe.concurrent('a service that was written from the documents alone', { timeout: MUTANT_TIMEOUT_MS }, () => {
  it.each([true, false])(
    'an independent service raises no alarm, also with --strict; its box is on: %s',
    async (isBoxOn) => {
      const results = await judgeIndependent([], { strict: isBoxOn, isBoxOn });
      expect(results.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'skipped')).toEqual([]);
      const skipped = results.filter(({ outcome }) => outcome === 'skipped');
      expect(skipped.filter(({ reason }) => !/^needs a box that (the bench can simulate|shows)/.test(reason))).toEqual(
        [],
      );
      expect(clausesOf(results, 'passed').length).toBeGreaterThan(35);
    },
  );

  it.for(entriesOf(WRONGS))(
    'an independent service with a fault fails its clauses and no others without --strict: %s',
    async ([fault, clauses], { task }) => {
      const results = await judgeIndependent([fault], { checks: checksNear(SERVICE_CHECKS, clauses) });
      const reasons = keepOutcomes(task, results);
      expect(clausesOf(results, 'failed'), reasons).toEqual(clauses.toSorted());
    },
  );

  it.for(entriesOf(CHOICES))(
    'an independent service with a difference only differs in its clauses: %s',
    async ([fault, clauses], { task }) => {
      const results = await judgeIndependent([fault], { checks: checksNear(SERVICE_CHECKS, clauses) });
      const reasons = keepOutcomes(task, results);
      expect(clausesOf(results, 'failed'), reasons).toEqual([]);
      expect(clausesOf(results, 'differs'), reasons).toEqual(clauses.toSorted());
    },
  );

  it('an independent service whose box is off is skipped, and not failed, where it cannot judge a wrong checkSum', async () => {
    const checks = SERVICE_CHECKS.filter(({ clause }) => clause === 'SUM-1');
    const results = await judgeIndependent(['any checkSum is taken'], { checks, isBoxOn: false });
    expect(results.map(({ level, outcome }) => [level, outcome])).toEqual([
      ['spec', 'skipped'],
      ['gap', 'differs'],
    ]);
  });
});
