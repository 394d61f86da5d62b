import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BOX_CHECKS } from '../../src/bench/judges/box/checks/all.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd } from '../support/processes.ts';
import { expectEveryClause } from './box-fixture.ts';

describe('a box of this house', () => {
  // Painting and decoding pictures is slow: here the bench reads the QR from a panel.
  it('a box of this house holds every clause over http, its QR read from its panel', async () => {
    await expectEveryClause({ transport: 'http' });
  }, 240_000);
});

describe('a box that is awaited', () => {
  it('a box of the public dialect gets an address to enrol at, and is judged by its page as a real program', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'salt'), 'sample-check-sum-salt\n', { mode: 0o600 });
    const macAddr = '02:00:5E:10:00:07';
    const page = `http://127.0.0.1:${await freePort()}`;
    const named = ['--await-box', macAddr, '--check-sum-salt-file', join(folder, 'salt')];
    const options = ['--mqtt-port', '0', '--box-page', page, '--only', 'VQD-1,VQD-2,DIA-2,DIA-4'];
    const bench = paybox('judge', 'dialect', ...named, ...options);
    const url = await eventually('where to enrol', () => /mqtt:\/\/127\.0\.0\.1:\d+/.exec(bench.output())?.[0]);
    const salts = { checkSumSalt: 'sample-check-sum-salt', boxIdSalt: 'sample-box-id-salt' };
    const config = {
      box: { terminalCode: 'VVB000007', serialNumber: 'VVB900007' },
      link: { transport: 'vietqr', url, macAddr, ...salts },
      http: { port: Number(new URL(page).port) },
      dataDir: join(folder, 'data'),
    };
    await writeFile(join(folder, 'agent.yaml'), JSON.stringify(config));
    paybox('agent', '--config', join(folder, 'agent.yaml'));
    const code = await eventually('the verdict', () => bench.child.exitCode ?? undefined, 120_000);
    expect(bench.output()).toContain(`waiting for the enrolment of ${macAddr}`);
    expect(bench.output()).toMatch(/PAYBOX-BENCH END passed=5 failed=0 skipped=1 missing=0 exit=0/);
    expect(bench.output()).toContain('the box cannot be restarted: give --restart-command');
    expect(bench.output()).not.toContain('sample-check-sum-salt');
    expect(code).toBe(0);
  });

  it('a box that never comes ends the run with exit code 3 and with what to check', async () => {
    const secret = join(await temporaryFolder(), 'secret');
    await writeFile(secret, 'Sample-secret-of-this-test-8');
    const options = ['--await-box', 'VVB000001:VVB900001', '--box-secret-file', secret, '--within', '1'];
    const ports = ['--mqtt-port', '0', '--http-port', '0'];
    const { code, output } = await payboxToEnd('judge', 'box', ...options, ...ports);
    expect(output).toContain('no hello of VVB000001 within 1 s: nothing has connected');
    expect(output).toContain('check the address in the box');
    expect(code).toBe(3);
  });
});

describe('the checks of a box', () => {
  it('the checks of a box have distinct titles', () => {
    const names = BOX_CHECKS.map(({ clause, title }) => `${clause} ${title}`);
    expect(new Set(names).size).toBe(names.length);
  });
});
