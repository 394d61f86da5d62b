import { DIALECT_KINDS, type DialectReport, playDialect } from '../kill/dialect.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import type { Soak } from './soak.ts';

/** Our box and our gateway in the public dialect, with connections cut and both killed; see test/kill. */
export const dialect: Soak = {
  name: 'dialect',
  unit: 'runs',
  amount: 500,
  async run({ amount, firstSeed, lanes, signal, progress }) {
    const failures: string[] = [];
    const figures: Record<string, number> = {};
    const { missing } = without(PROGRAMS.mosquitto);
    let next = firstSeed;
    let done = 0;
    const onRun = (report: DialectReport) => {
      done += 1;
      for (const [name, figure] of Object.entries(report)) figures[name] = (figures[name] ?? 0) + figure;
      progress(done, `${figures.payments} payments, ${failures.length} failures`);
      return !signal.aborted;
    };
    function* seeds() {
      while (next < firstSeed + amount) yield next++;
    }
    const lane = async (_: unknown, index: number) => {
      const kind = index % 2 === 1 && !missing ? DIALECT_KINDS.mosquitto : DIALECT_KINDS.embedded;
      while (next < firstSeed + amount && failures.length < FAILURES_MAX && !signal.aborted) {
        await playDialect(kind, seeds(), onRun).catch((error: unknown) => failures.push(String(error)));
      }
    };
    await Promise.all(Array.from({ length: Math.max(2, lanes) }, lane));
    return { figures: { runs: done, ...figures }, failures };
  },
};

/** More failures say no more. */
const FAILURES_MAX = 5;
