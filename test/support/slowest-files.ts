import { relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

const FILES_MAX = 20;

/** Prints the slowest files with the seconds of their tests and of their imports. */
export default class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules.map((module) => {
      const { duration, collectDuration } = module.diagnostic();
      return {
        file: relative(process.cwd(), module.moduleId),
        tests: duration / 1000,
        imports: collectDuration / 1000,
      };
    });
    const total = (row: (typeof rows)[number]) => row.tests + row.imports;
    const slowest = rows.toSorted((a, b) => total(b) - total(a)).slice(0, FILES_MAX);
    if (slowest.length < 2) return;
    process.stdout.write('\nslowest files: seconds of tests, and of imports\n');
    for (const { file, tests, imports } of slowest) {
      process.stdout.write(`${tests.toFixed(1).padStart(7)} ${imports.toFixed(1).padStart(6)}  ${file}\n`);
    }
    process.stdout.write(`${rows.reduce((sum, row) => sum + total(row), 0).toFixed(0)} s in ${rows.length} files\n\n`);
  }
}
