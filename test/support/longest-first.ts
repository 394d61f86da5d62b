import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Seconds of the files that take longest, for a machine that has not run them before. */
export const SECONDS: Readonly<Record<string, number>> = {
  'test/bench/faults-library.test.ts': 119,
  'test/conformance/box-mutants.test.ts': 76,
  'test/conformance/mutants.test.ts': 67,
};
/** Of a file that is not among them, and that has not run here before. */
const SECONDS_OF_OTHERS = 1;

/** Starts the files first that take longest, so that no worker ends long after the others. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = (file: TestSpecification) => {
      const declared = SECONDS[relative(this.ctx.config.root, file.moduleId)] ?? SECONDS_OF_OTHERS;
      const last = this.ctx.cache.getTestSpecificationResult(file);
      return last === undefined || last.failed ? declared : last.duration / 1000;
    };
    const seconds = new Map(files.map((file) => [file, secondsOf(file)]));
    return files.toSorted((a, b) => (seconds.get(b) ?? 0) - (seconds.get(a) ?? 0));
  }
}
