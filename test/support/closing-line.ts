import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** So many tests of a run may need a second try; more fail it. */
const SECOND_TRIES_MAX = 3;

/**
 * Prints each skipped test with its reason, each test that passed only at the second try with what it failed of before, and the closing line
 * `N passed, N failed, N skipped`. Where more than 3 needed a second try, all of them count as failed.
 */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    const skipped: string[] = [];
    const secondTries: string[] = [];
    for (const module of modules) {
      const before = passed + failed + skipped.length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped.push(test.fullName);
        if (test.diagnostic()?.flaky)
          secondTries.push(`${relative(process.cwd(), module.moduleId)} > ${firstFailure(test)}`);
      }
      if (module.state() === 'failed' && passed + failed + skipped.length === before) failed += 1;
    }
    if (secondTries.length > SECOND_TRIES_MAX) {
      passed -= secondTries.length;
      failed += secondTries.length;
      process.exitCode = 1;
    }
    for (const name of skipped) process.stdout.write(`skipped: ${name}\n`);
    process.stdout.write(`passed at the second try: ${secondTries.length}\n`);
    for (const line of secondTries) process.stdout.write(`  ${line}\n`);
    process.stdout.write(`${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
  }
}

/** The name of a test with the first line of its first error. */
function firstFailure(test: TestCase): string {
  const [error] = test.result().errors ?? [];
  return `${test.fullName}: ${error?.message.split('\n')[0]}`;
}
