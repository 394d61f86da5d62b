import { spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { isPanelName, PANEL_NAMES } from '../../src/bench/panels/emulator.ts';
import { EMULATORS } from '../../src/bench/panels/panel.ts';
import { onPty } from '../display/emulators/hardware.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { end, Fixture, NODE, startPair } from './fixture.ts';
import { type Benchmark, percentile, type Row, rowUnder } from './row.ts';

const STARTS = 7;
const REST_MS = 3_000;

/** From `paybox up` until all parts answer, with a data folder in use before, compared with plain Node. */
export const up: Benchmark = {
  name: 'up',
  async run(progress) {
    const fixture = new Fixture();
    try {
      const folder = await fixture.folder();
      const ports = await freePorts(3);
      const names = ['--http-port', '--mqtt-port', '--box-port'];
      const args = ['up', '--no-open', '--data', folder, ...names.flatMap((name, index) => [name, `${ports[index]}`])];
      const ours: number[] = [];
      const bare: number[] = [];
      for (let n = 0; n <= STARTS; n += 1) {
        progress(`up ${n}/${STARTS}`);
        const { child, tookMs } = await fixture.paybox(folder, args);
        await end(child);
        const startedMs = performance.now();
        spawnSync(NODE, ['-e', '0']);
        if (n === 0) continue;
        ours.push(tookMs);
        bare.push(performance.now() - startedMs);
      }
      const against = { name: 'bare Node start', value: percentile(bare, 0.5) };
      return [rowUnder('up to ready, p50', 'ms', percentile(ours, 0.5), against, 2_000)];
    } finally {
      await fixture.close();
    }
  },
};

/** Resident memory of an agent with an idle box on each kind of display, compared with idle plain Node. */
export const memory: Benchmark = {
  name: 'memory',
  async run(progress, leaveOut) {
    const { missing, note } = without(PROGRAMS.socat);
    if (missing) leaveOut(`memory of an agent with a serial panel${note}`);
    const bare = spawn(NODE, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    try {
      await delay(REST_MS);
      const against = { name: 'bare Node', value: await residentMegabytes(bare.pid) };
      const rows: Row[] = [];
      for (const driver of ['browser', 'png', ...(missing ? [] : PANEL_NAMES)]) {
        progress(`memory at rest: ${driver}`);
        rows.push(rowUnder(`agent memory at rest, ${driver}`, 'MB', await atRest(driver), against, 90));
      }
      return rows;
    } finally {
      await end(bare);
    }
  },
};

async function atRest(driver: string): Promise<number> {
  const fixture = new Fixture();
  const device = isPanelName(driver) ? await onPty(EMULATORS[driver]) : undefined;
  try {
    const file = driver === 'png' ? { path: 'screen.png' } : {};
    const pair = await startPair(fixture, { display: { driver, ...file, ...device?.options } });
    await delay(REST_MS);
    return await residentMegabytes(pair.agent.pid);
  } finally {
    await fixture.close();
    await device?.pty.close();
  }
}

export async function residentMegabytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1];
  return (Number(kilobytes) * 1024) / 1e6;
}
