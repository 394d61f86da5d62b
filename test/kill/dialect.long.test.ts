import { expect, it } from 'vitest';
import { PROGRAMS, without } from '../support/programs.ts';
import { DIALECT_KINDS, playDialect } from './dialect.ts';

const { missing, note } = without(PROGRAMS.mosquitto);
/** `npm run soak -- --only dialect` plays hundreds, with new seeds. */
const SEEDS = [1, 2, 3, 1000];
const TIMEOUT_MS = 300_000;
const TITLE =
  'DIA-6 VQD-6 no payment is said twice, and none that the box has taken is not told, whatever is cut or killed,';

it(`${TITLE} over the embedded broker`, { timeout: TIMEOUT_MS }, () => play('embedded'));
it.skipIf(missing)(`${TITLE} over Mosquitto${note}`, { timeout: TIMEOUT_MS }, () => play('mosquitto'));

async function play(link: 'embedded' | 'mosquitto'): Promise<void> {
  const report = await playDialect(DIALECT_KINDS[link], SEEDS);
  process.stdout.write(`${link}: ${JSON.stringify(report)}\n`);
  expect(report.payments).toBeGreaterThanOrEqual(SEEDS.length);
  expect(report.delivered).toBeGreaterThan(0);
}
