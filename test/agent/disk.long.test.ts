import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startAgent } from '../../src/device/agent/agent.ts';
import { JOURNAL_FILE } from '../../src/device/agent/journal/journal.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { CONFIG } from '../box/samples.ts';
import { memoryDisk } from '../support/disk.ts';
import { eventually } from '../support/net.ts';
import { memory, quiet } from './disk-fixture.ts';

describe('a box on a small disk', () => {
  it.skipIf(memory.missing)(`a box reports a failed disk and damaged journals on its pages${memory.note}`, async () => {
    const disk = await memoryDisk();
    writeFileSync(join(disk.folder, JOURNAL_FILE), 'no database');
    disk.fill();
    const browser = DISPLAY_DRIVERS.get('browser');
    const { terminalCode, serialNumber, version, paidHoldMs, endedHoldMs } = CONFIG;
    const agent = await startAgent(
      {
        identity: { terminalCode, serialNumber, secret: 'Sample-box-secret-known-to-all' },
        version,
        displays: [{ driver: 'browser', open: browser?.configure({}).open as never }],
        link: { transport: 'none', gateway: 'none:', open: () => new Promise(() => undefined) },
        http: { host: '127.0.0.1', port: 0 },
        parts: {},
        dataDir: disk.folder,
        paidHoldMs,
        endedHoldMs,
        onStop: 'blank',
      },
      {
        clock: systemClock,
        random: systemRandom,
        log: quiet(systemClock),
        terminal: undefined,
        terminalInput: undefined,
      },
    );
    onTestFinished(() => agent.close());
    const journal = () => agent.box.status().journal;
    const health = async () => (await fetch(`${agent.origin}/healthz`)).json();
    const setAside = [expect.stringMatching(/^journal\.db\.damaged-/)];
    const reason = 'database or disk is full';
    expect(journal()).toEqual({ ok: false, reason, complete: false, setAside, unwritten: 0 });
    await eventually('the screen', () => agent.box.status().display.ok);
    expect(await health()).toEqual({ ok: false, reason: `journal: ${reason}` });
    expect(readdirSync(disk.folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    disk.makeRoom();
    await eventually('the probe', () => journal().ok);
    expect(journal()).toEqual({ ok: true, reason: null, complete: false, setAside, unwritten: 0 });
    expect(await health()).toMatchObject({ ok: true });
  });
});
