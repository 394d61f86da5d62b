/** This is the library for tests: a gateway and boxes in a test of vitest, jest or node:test (README.md). */
export { NotAsExpected, PayboxRefusal } from './errors.ts';
export { openPaybox, type Paybox, type PayboxOptions } from './paybox.ts';
export type * from './words.ts';
