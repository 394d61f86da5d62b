import { AsyncLocalStorage } from 'node:async_hooks';
import type { IClientOptions } from 'mqtt';
import { describe, expect, it, vi } from 'vitest';
import { screenProbe } from '../../src/bench/engine/probes.ts';
import { DIALECT_CHECKS } from '../../src/bench/judges/dialect/checks/all.ts';
import { brokenClauses, Panel, troubles } from './box-fixture.ts';
import { judgeDialect } from './dialect-fixture.ts';
import { DIALECT_MUTANTS } from './mutants/dialect.ts';
import type { DialectMutant } from './mutants/dialect-habits.ts';
import { checksNear, keepOutcomes, MUTANT_TIMEOUT_MS } from './nearby-checks.ts';

interface Judged {
  mutant: DialectMutant;
  panel: Panel;
}

const judged = vi.hoisted(() => ({ now: undefined as AsyncLocalStorage<Judged> | undefined }));
const lacks = vi.hoisted(() => (rule: string) => judged.now?.getStore()?.mutant.lacks === rule);

vi.mock('mqtt', async (importOriginal) => {
  const real = await importOriginal<typeof import('mqtt')>();
  const connect = (url: string, options: IClientOptions) => {
    const it = judged.now?.getStore();
    const client = real.connect(url, it?.mutant.options?.(options) ?? options);
    it?.mutant.client?.(client, it.panel);
    return client;
  };
  return { ...real, connect };
});

vi.mock('../../src/protocol/vietqr.ts', async (importOriginal) => {
  const real = await importOriginal<typeof import('../../src/protocol/vietqr.ts')>();
  return { ...real, isPayable: (text: string) => !lacks('isPayable') && real.isPayable(text) };
});

vi.mock('../../src/device/box/push.ts', async (importOriginal) => {
  const real = await importOriginal<typeof import('../../src/device/box/push.ts')>();
  const staticQrProblem: typeof real.staticQrProblem = (...given) =>
    lacks('staticQrProblem') ? undefined : real.staticQrProblem(...given);
  return { ...real, staticQrProblem };
});

judged.now = new AsyncLocalStorage<Judged>();

describe('our own box in the public dialect', () => {
  it('our box in the public dialect holds every clause, seen by a panel (VQD-1, VQD-2, VQD-4, DIA-1 to DIA-8)', async () => {
    const results = await judgeDialect({ breaks: [] });
    expect(troubles(results)).toEqual([]);
    expect(results).toHaveLength(DIALECT_CHECKS.length);
  }, 240_000);

  // Painting and decoding pictures is slow.
  it('our box in the public dialect shows its QRs, seen by its picture (DIA-2, DIA-4)', async () => {
    const checks = DIALECT_CHECKS.filter(({ clause }) => ['DIA-2', 'DIA-4'].includes(clause));
    expect(troubles(await judgeDialect({ breaks: [] }, { probe: screenProbe(), checks }))).toEqual([]);
  }, 240_000);
});

describe.concurrent('a box of the dialect that', () => {
  it.for(Object.entries(DIALECT_MUTANTS))(
    'the judge fails a box of the dialect that %s by its clause, and by no other',
    { timeout: MUTANT_TIMEOUT_MS },
    async ([, mutant], { task }) => {
      const panel = new Panel();
      const checks = checksNear(DIALECT_CHECKS, mutant.breaks);
      const results = await judged.now?.run({ mutant, panel }, () => judgeDialect(mutant, { panel, checks }));
      const reasons = keepOutcomes(task, results ?? []);
      expect(brokenClauses(results ?? []), reasons).toEqual(mutant.breaks);
      expect(mutant.fails === true && !results?.some(({ outcome }) => outcome === 'failed')).toBe(false);
    },
  );
});

describe('the judge of a box of the dialect', () => {
  it('the judge of a box of the dialect has a mutant for each clause that it judges, and no other mutant', () => {
    const clauses = [...new Set(DIALECT_CHECKS.map(({ clause }) => clause))].sort();
    const broken = [...new Set(Object.values(DIALECT_MUTANTS).flatMap(({ breaks }) => breaks))].sort();
    expect(broken).toEqual(clauses);
  });

  it('the checks of a box of the dialect have distinct titles', () => {
    const names = DIALECT_CHECKS.map(({ clause, title }) => `${clause} ${title}`);
    expect(new Set(names).size).toBe(names.length);
  });
});
