/**
 * A program that appends to a journal until it is killed, or has appended as many entries as it was told, and says of each entry on
 * stdout that it was taken.
 */
import { writeSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { openJournal } from '../../../src/device/agent/journal/journal.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { systemRandom } from '../../../src/lib/random.ts';

const [folder = '', most = ''] = process.argv.slice(2);
const log = createLogger(new PassThrough().resume(), systemClock, 'json');
const journal = openJournal(folder, 'VVB000001', { clock: systemClock, log });
for (let appended = 0; appended < Number(most); appended += 1) {
  const transactionId = systemRandom.uuid();
  const paid = { transactionId, orderId: '', amount: 1_000, content: '', paidAtMs: systemClock.wallMs() };
  const payment = { ...paid, late: false, due: null };
  await journal.append([{ kind: 'payment', payment, pushId: null }]);
  writeSync(1, `${transactionId}\n`);
}
