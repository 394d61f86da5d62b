import { defineConfig } from 'vitest/config';

/** Packages, bundles and the image, on emulated machines. They take minutes, so they are a command of their own: `npm run test:image`. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/image/**/*.image.ts'],
    globalSetup: ['test/image/setup.ts'],
    pool: 'forks',
    // One virtual machine at a time.
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/support/closing-line.ts'],
    disableConsoleIntercept: true,
  },
});
