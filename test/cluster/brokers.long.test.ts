import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PROGRAMS, without } from '../support/programs.ts';
import { BrokerFacts, FACT_LOGINS } from './broker-facts.ts';
import { BROKERS, startBroker } from './brokers.ts';

const lacks = BROKERS.map((it) => without(PROGRAMS[it]));

describe.skipIf(lacks.some(({ missing }) => missing))(`brokers${lacks.map(({ note }) => note).join('')}`, () => {
  it.each(BROKERS)(
    'TLS-5 PRE-4 PRE-5 %s does what the table in the manual says',
    async (name) => {
      const broker = await startBroker(name, FACT_LOGINS);
      onTestFinished(() => broker.close());
      const facts = new BrokerFacts(broker);
      onTestFinished(() => facts.close());
      const found = await facts.look();
      expect(found).toEqual(columnOf(name));
    },
    180_000,
  );
});

/** The column of a broker in the table of the manual: cells by the first of their row. */
function columnOf(name: string): Record<string, string> {
  const manual = readFileSync(join(import.meta.dirname, '../../src/gateway/README.md'), 'utf8');
  const rows = manual.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  const head = rows.findIndex(
    (row) =>
      row.some((cell) => cell.toLowerCase().startsWith('rabbitmq')) &&
      row.some((cell) => cell.toLowerCase().startsWith('mosquitto')),
  );
  const at = rows[head]?.findIndex((cell) => cell.toLowerCase().startsWith(name)) ?? -1;
  const end = rows.findIndex((row, i) => i > head && row.length < 3);
  return Object.fromEntries(
    rows.slice(head + 2, end).flatMap((row) => (row[at] === '' || row[at] === '—' ? [] : [[row[1], row[at]]])),
  );
}
