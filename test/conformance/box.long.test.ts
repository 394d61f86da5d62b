import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { screenProbe } from '../../src/bench/engine/probes.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { paybox } from '../support/processes.ts';
import { expectEveryClause } from './box-fixture.ts';

/** Clauses of which a program is judged in seconds. */
const FAST = 'AGT-2,AGT-4,SIG,MSG-3,MSG-7,MSG-9,TOP,LIM';

describe('a box of this house', () => {
  it('a box of this house holds every clause over mqtt, its QR read from its picture', async () => {
    await expectEveryClause({ transport: 'mqtt', probe: screenProbe() });
  }, 240_000);
});

describe('a box that is awaited', () => {
  it('a box that is awaited gets an address to connect to, and is judged as a real program', async () => {
    const folder = await temporaryFolder();
    const at = (name: string) => join(folder, name);
    const identity = { terminalCode: 'VVB000007', serialNumber: 'VVB900007' };
    await writeFile(at('secret'), 'Sample-secret-of-this-test-8\n', { mode: 0o600 });
    const named = ['--await-box', 'VVB000007:VVB900007', '--box-secret-file', at('secret')];
    const ports = ['--mqtt-port', '0', '--http-port', '0'];
    const bench = paybox('judge', 'box', ...named, ...ports, '--only', FAST);
    const url = await eventually('where to connect', () => /mqtt:\/\/127\.0\.0\.1:\d+/.exec(bench.output())?.[0]);
    const config = {
      box: { ...identity, secretFile: at('secret') },
      link: { transport: 'mqtt', url },
      http: { port: 0 },
      dataDir: at('data'),
    };
    await writeFile(at('agent.yaml'), JSON.stringify(config));
    paybox('agent', '--config', at('agent.yaml'));
    const code = await eventually('the verdict', () => bench.child.exitCode ?? undefined, 50_000);
    expect(bench.output()).toMatch(/PAYBOX-BENCH END passed=\d\d failed=0 skipped=\d+ missing=0 exit=0/);
    expect(bench.output()).toContain('nobody sees the screen: give --box-page or --probe');
    expect(code).toBe(0);
  });
});
