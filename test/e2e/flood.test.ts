import { describe, expect, it } from 'vitest';
import { PUSHES_PER_SECOND, problemsOf, run, summaryOf } from '../soak/flood.ts';

const SEED = 1;
/** `npm run soak -- --only flood` takes 30. */
const SECONDS = 5;
const isLinux = process.platform === 'linux';

describe.skipIf(!isLinux)(`a box under a flood${isLinux ? '' : ' (its memory is read from /proc: Linux only)'}`, () => {
  it('SND-8 AGT-5 MSG-7 shows the newest push, announces each payment once, and keeps its memory', {
    timeout: 240_000,
  }, async () => {
    const counts = await run(SEED, { seconds: SECONDS, pushesPerSecond: PUSHES_PER_SECOND });
    process.stdout.write(`flood of ${SECONDS} s: ${summaryOf(counts)}\n`);
    expect(problemsOf(counts)).toEqual([]);
    expect(counts.payments).toBe(SECONDS);
    expect(counts.shown).toBeGreaterThan(0);
    expect(counts.refused).toEqual({ REPLACED: expect.any(Number) });
  });
});
