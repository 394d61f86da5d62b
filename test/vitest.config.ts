import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './support/longest-first.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WORKERS_MAX = 16;

const filesOf = (...patterns: string[]) => globSync(patterns, { cwd: ROOT });
const filesBut = (others: readonly string[], ...patterns: string[]) =>
  filesOf(...patterns).filter((file) => !others.includes(file));
/** Tests that change or measure what a process has once: a module, its environment, its listeners, its memory. */
const NEEDS_A_PROCESS = /\bvi\.(mock|spyOn|stubEnv)|\bprocess\.(env|on|once|chdir|umask|memoryUsage)\b|\bkeptBytes\b/;
const ALONE = filesOf('test/**/*.test.ts').filter((file) =>
  NEEDS_A_PROCESS.test(readFileSync(join(ROOT, file), 'utf8')),
);
/** Rooms without files, sockets and programs: `npm run test:quick`. */
const PURE = filesBut(ALONE, 'test/{box,lib,protocol}/**/*.test.ts', 'test/display/layout/**/*.test.ts');
/** Rooms whose tests run in their own process: a worker imports the code once for many files. */
const IN_PROCESS = filesBut([...ALONE, ...PURE], 'test/{agent,display,gateway,provision,store,voice}/**/*.test.ts');
const OTHERS = filesBut([...PURE, ...IN_PROCESS], 'test/**/*.test.ts');

/**
 * Rooms whose tests judge programs in real time, which one attempt may miss while the machine does much else. What concerns money or
 * attackers counts at once.
 */
const SECOND_TRY = /^test\/(agent|bench|commands|conformance|display|e2e|gateway|systemd)\//;

const SETUP = ['test/support/shared.setup.ts', 'test/support/programs.setup.ts'];
const project = (name: string, include: string[], isolate: boolean, { retry = 0, globalSetup = SETUP } = {}) => ({
  extends: true as const,
  test: { name, include, isolate, retry, globalSetup },
});
/** One project for files that count at once, and one for those that may be tried again. */
const projects = (name: string, files: string[], isolate: boolean) => {
  const again = files.filter((file) => SECOND_TRY.test(file));
  const once = files.filter((file) => !again.includes(file));
  return [project(name, once, isolate), project(`${name}-again`, again, isolate, { retry: 1 })];
};

export default defineConfig({
  test: {
    root: ROOT,
    pool: 'forks',
    // Most tests wait for programs and clocks for more than half of their time.
    maxWorkers: Math.min(WORKERS_MAX, Math.max(4, 3 * availableParallelism())),
    // Of one file; other files go on beside it.
    maxConcurrency: 3,
    sequence: { sequencer: LongestFirst },
    // Of a test that hangs: on a machine with much else to do any other may take long.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    reporters: ['default', './test/support/slowest-files.ts', './test/support/closing-line.ts'],
    projects: [
      project('pure', PURE, false, { globalSetup: [] }),
      ...projects('in-process', IN_PROCESS, false),
      ...projects('alone', OTHERS, true),
    ],
  },
});
