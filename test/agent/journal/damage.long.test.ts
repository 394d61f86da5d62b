import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { JOURNAL_FILE } from '../../../src/device/agent/journal/journal.ts';
import { temporaryFolder } from '../../support/net.ts';
import { seeded } from '../../support/seeded.ts';
import { CHECKPOINTED, expectToStart, filled } from './damage-fixture.ts';

describe('whatever is found in its place, the box starts', () => {
  it.each(['', '-wal'])('with a bit flipped anywhere in journal.db%s', async (suffix) => {
    const { folder, entries } = await filled({ keepLog: true });
    const good = ['', '-wal'].map((it) => [it, readFileSync(join(folder, JOURNAL_FILE + it))] as const);
    const chance = seeded(4);
    const kept: number[] = [];
    for (let n = 0; n < 200; n += 1) {
      const damaged = await temporaryFolder();
      for (const [it, bytes] of good) {
        const copy = Buffer.from(bytes);
        // Half of them in the first page, where most of the structure is.
        const at = chance.below(n % 2 === 0 ? copy.length : Math.min(copy.length, 4_096));
        if (it === suffix) copy[at] = (copy[at] ?? 0) ^ (1 << chance.below(8));
        writeFileSync(join(damaged, JOURNAL_FILE + it), copy);
      }
      // Checksums cover what a row says, not its number, by which rows are put in order.
      kept.push(await expectToStart(damaged, entries, suffix === '' ? 1 : 0));
    }
    kept.sort((a, b) => a - b);
    expect(kept[100], 'most of the time nearly everything is kept').toBeGreaterThanOrEqual(CHECKPOINTED);
    if (suffix === '-wal') expect(kept[0], 'what is in the main file').toBeGreaterThanOrEqual(CHECKPOINTED);
  });
});
