import { expect, it } from 'vitest';
import { PROGRAMS, without } from '../support/programs.ts';
import { playSources } from './sources.ts';
import { SOURCES_KINDS } from './sources-plan.ts';

const postgres = without(PROGRAMS.postgres);
/** `npm run soak -- --only sources` plays a thousand, with new seeds. */
const RUNS = 2;
const TIMEOUT_MS = 300_000;

it.for(SOURCES_KINDS.map((kind, index) => ({ kind, seed: 1 + index * RUNS })))(
  'CRE-1 CRE-2 CRE-5 SRC-27 SYN-2 every transfer is one payment, whoever tells it, how often and when, and whatever is killed: $kind.name',
  { timeout: TIMEOUT_MS },
  async ({ kind, seed }, { skip }) => {
    if (kind.store !== undefined && postgres.missing) skip(postgres.note);
    const report = await playSources(
      kind,
      Array.from({ length: RUNS }, (_, run) => seed + run),
    );
    process.stdout.write(`${kind.name}: ${JSON.stringify(report)}\n`);
    expect(report['gateways killed']).toBeGreaterThan(0);
    expect(report.callbacks).toBe(report.payments);
  },
);
