import type { Reporter, TestModule } from 'vitest/node';

/** Prints the closing line `N passed, N failed, N skipped`, and each skipped test with its reason. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    const skipped: string[] = [];
    for (const module of modules) {
      const before = passed + failed + skipped.length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped.push(test.fullName);
      }
      if (module.state() === 'failed' && passed + failed + skipped.length === before) failed += 1;
    }
    for (const name of skipped) process.stdout.write(`skipped: ${name}\n`);
    process.stdout.write(`${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
  }
}
