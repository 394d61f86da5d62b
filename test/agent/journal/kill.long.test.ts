import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { run } from '../../support/processes.ts';
import { seeded } from '../../support/seeded.ts';
import { open } from './support.ts';

const APPENDER = resolve(import.meta.dirname, 'appender.ts');
const KILLS = 20;
const KILLS_PER_JOURNAL = 5;
/** However fast the disk: few enough that no journal grows so long that it is compacted. */
const ENTRIES_PER_RUN = 1_000;

it('AGT-8 a journal has every append that was acknowledged when its program is killed in the middle of one', async () => {
  const chance = seeded(20);
  let [folder, taken] = ['', [] as string[]];
  for (let n = 0; n < KILLS; n += 1) {
    if (n % KILLS_PER_JOURNAL === 0) [folder, taken] = [await temporaryFolder(), []];
    const program = run(process.execPath, [APPENDER, folder, String(ENTRIES_PER_RUN)]);
    await eventually('the first entry', () => program.output().includes('\n'));
    await delay(chance.below(60));
    await program.stop('SIGKILL');
    const lines = program.output().split('\n');
    expect(lines.pop(), 'no half line and no error').toBe('');
    taken.push(...lines);
    const { journal, lines: complaints } = open(folder, undefined, systemClock);
    const there = journal.load().map((it) => (it.kind === 'payment' ? it.payment.transactionId : ''));
    // One more may be there: killed between its commit and saying so.
    expect(there.filter((id) => taken.includes(id))).toEqual(taken);
    expect(there.length - taken.length).toBeLessThanOrEqual(KILLS_PER_JOURNAL);
    expect(complaints).toEqual([]);
    journal.close();
  }
});
