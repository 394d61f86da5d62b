import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './support/longest-first.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WORKERS_MAX = 16;

const filesOf = (...patterns: string[]) => globSync(patterns, { cwd: ROOT });
/** Tests that change what a process has once, so that each has its own: a module, the environment, memory, listeners. */
const ALONE = filesOf(
  'test/agent/all-dead.test.ts',
  'test/agent/journal/**/*.test.ts',
  'test/agent/parts/keyboard.test.ts',
  'test/display/{drivers,io}/**/*.test.ts',
  'test/display/fonts.test.ts',
  'test/gateway/**/{broker,broker-limits,enrolment-crowd,faults-held,hardening,known-logins,login-work,logins}.test.ts',
  'test/lib/parent.test.ts',
  'test/provision/{disk,provision}.test.ts',
  'test/voice/speech/espeak.test.ts',
);
const filesBut = (others: readonly string[], ...patterns: string[]) =>
  filesOf(...patterns).filter((file) => !others.includes(file));
/** Rooms without files, sockets and programs: `npm run test:quick`. */
const PURE = filesBut(ALONE, 'test/{box,lib,protocol}/**/*.test.ts', 'test/display/layout/**/*.test.ts');
/** Rooms whose tests run in their own process: a worker imports the code once for many files. */
const IN_PROCESS = filesBut([...ALONE, ...PURE], 'test/{agent,display,gateway,provision,voice}/**/*.test.ts');
const OTHERS = filesBut([...PURE, ...IN_PROCESS], 'test/**/*.test.ts');

/** `needs` is what all files of the project need to be there before. */
const project = (name: string, include: string[], isolate: boolean, ...needs: string[]) => ({
  extends: true as const,
  test: { name, include, isolate, globalSetup: needs },
});

export default defineConfig({
  test: {
    root: ROOT,
    pool: 'forks',
    // Most tests wait for programs and clocks for half of their time.
    maxWorkers: Math.min(WORKERS_MAX, Math.max(4, 2 * availableParallelism())),
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/support/slowest-files.ts', './test/support/closing-line.ts'],
    projects: [
      project('pure', PURE, false),
      project('in-process', IN_PROCESS, false, 'test/support/caches.setup.ts', 'test/support/programs.setup.ts'),
      project('alone', OTHERS, true, 'test/support/caches.setup.ts', 'test/support/programs.setup.ts'),
    ],
  },
});
