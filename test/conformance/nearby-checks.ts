import { type CheckResult, groupByClause } from '../../src/bench/judges/check.ts';

const IS_FULL_MATRIX = process.env.PAYBOX_MUTANTS === 'all';

/** Milliseconds for one mutant, on a busy machine. */
export const MUTANT_TIMEOUT_MS = IS_FULL_MATRIX ? 1_200_000 : 300_000;

/**
 * The checks that judge a mutant: those of the clauses that it breaks, of the clauses before and after them, and those
 * that always run. `npm run soak -- --only mutants` sets PAYBOX_MUTANTS=all: each mutant is judged by every check then.
 */
export function checksNear<C extends { clause: string }>(
  checks: readonly C[],
  clauses: readonly string[],
  always: readonly C[] = [],
): readonly C[] {
  const broken = clauses.map(partsOf);
  const isNear = ({ clause }: C) => {
    const { group, number } = partsOf(clause);
    return broken.some((it) => it.group === group && Math.abs(it.number - number) <= 1);
  };
  return IS_FULL_MATRIX ? checks : checks.filter((check) => always.includes(check) || isNear(check));
}

/**
 * Keeps the outcome of each clause with the test of a mutant, and the reasons: `npm run soak -- --only mutants` prints
 * them, as a matrix and below it. Returns the reasons as one line, for the message of a test that fails.
 */
export function keepOutcomes({ meta }: { meta: object }, results: readonly CheckResult[]): string {
  const outcomes = groupByClause(results).map(({ clause, outcome }) => [clause, outcome]);
  const broken = results.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'skipped');
  const reasons = broken.map(({ clause, title, outcome, reason }) => `${clause} ${title}: ${outcome}: ${reason}`);
  Object.assign(meta, { outcomes: Object.fromEntries(outcomes), reasons });
  return reasons.join('; ');
}

function partsOf(clause: string): { group: string; number: number } {
  const at = clause.lastIndexOf('-');
  return { group: clause.slice(0, at), number: Number(clause.slice(at + 1)) };
}
