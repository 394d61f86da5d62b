import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { TRANSPORTS } from '../src/device/agent/transports/registry.ts';
import { DISPLAY_DRIVERS } from '../src/device/display/registry.ts';
import { SPEAKER_DRIVERS } from '../src/device/voice/registry.ts';
import { SOURCE_KINDS } from '../src/gateway/money/sources/registry.ts';

const ROOT = resolve(import.meta.dirname, '..');
const summaries = (registry: ReadonlyMap<string, { name: string; summary: string }>) =>
  [...registry.values()].map(({ name, summary }) => [`\`${name}\``, summary]);
const sources = [...SOURCE_KINDS.values()].map(({ kind, manual: { atProvider, proof, catchUp } }) => [
  ...[`\`${kind}\``, atProvider, proof, catchUp],
]);

/** Tables of the manuals: the manual, the head of the table, and the rows that the registry exports. */
const TABLES: [string, string[], string[][]][] = [
  ['device-config/README.md', ['`driver`', 'display'], summaries(DISPLAY_DRIVERS)],
  ['device-config/README.md', ['`link.transport`', 'how the box reaches its gateway'], summaries(TRANSPORTS)],
  ['device-config/README.md', ['`voice.driver`', 'who speaks'], summaries(SPEAKER_DRIVERS)],
  ['src/gateway/README.md', ['`kind`', 'at the provider', 'proof in the file', 'catch-up'], sources],
];

const lineOf = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;

it.each(TABLES)('%s has the table %j as its registry exports it (UPDATE_MANUALS=1 writes it)', (file, head, rows) => {
  const path = join(ROOT, file);
  const manual = readFileSync(path, 'utf8');
  const start = manual.indexOf(lineOf(head));
  expect(start, `${file} has no table ${lineOf(head)}`).toBeGreaterThan(0);
  const [found = ''] = /^(?:\|.*\n)+/.exec(manual.slice(start)) ?? [];
  const expected = `${[lineOf(head), `|${head.map(() => '---|').join('')}`, ...rows.map(lineOf)].join('\n')}\n`;
  if (process.env.UPDATE_MANUALS === '1') writeFileSync(path, manual.split(found).join(expected));
  else expect(found).toBe(expected);
});

it('the manual of the gateway names each metric of gateways that share a database', () => {
  const read = (file: string) => readFileSync(join(ROOT, 'src/gateway', file), 'utf8');
  const metrics = read('common/metrics.ts').match(/paybox_cluster_\w+/g) ?? [];
  expect(metrics.length).toBeGreaterThan(1);
  const manual = read('README.md');
  expect(metrics.filter((it) => !manual.includes(`\`${it}\``))).toEqual([]);
});
