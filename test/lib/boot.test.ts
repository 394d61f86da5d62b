import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { thisBoot } from '../../src/lib/boot.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { temporaryFolder } from '../support/net.ts';
import { writeScript } from '../voice/support.ts';

/** A machine with these files. */
async function machine(files: Record<string, string>) {
  const root = await temporaryFolder();
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
  return root;
}

const BOOT_ID = { 'proc/sys/kernel/random/boot_id': '3f0b1c52-8d6b-4b7e-8f0e-5d2f1c7b9a01\n' };
const SYSTEMD = { 'run/systemd/system/x': '' };

it('AGT-8 names the boot by the id of the kernel; where there is none it has no name', async () => {
  expect(thisBoot(systemClock, await machine(BOOT_ID)).id).toBe('3f0b1c52-8d6b-4b7e-8f0e-5d2f1c7b9a01');
  expect(thisBoot(systemClock, await machine({})).id).toBeUndefined();
});

it.runIf(process.platform === 'linux')('counts from the start of the boot, the same in every program', () => {
  const boot = thisBoot(systemClock);
  const kernelMs = Number(process.hrtime.bigint() / 1_000_000n);
  expect(Math.abs(systemClock.monotonicMs() + boot.offsetMs - kernelMs)).toBeLessThan(1_000);
});

it.each([
  ['systemd-timesyncd has agreed with a server', { 'run/systemd/timesync/synchronized': '' }, 'exit 1', true],
  ['systemd says that the clock is synchronized', SYSTEMD, 'echo yes', true],
  ['systemd says that it is not', SYSTEMD, 'echo no', false],
  ['systemd does not answer', SYSTEMD, 'exec sleep 60', false],
  ['systemd does not run', {}, 'echo yes', false],
])('AGT-8 the time is right or not: %s', async (_what, files, timedatectl, expected) => {
  const program = await writeScript('timedatectl', timedatectl);
  const boot = thisBoot(systemClock, await machine(files), program);
  expect(await boot.isTimeRight()).toBe(expected);
});

it('AGT-8 the time is not right where there is no program to ask', async () => {
  const boot = thisBoot(systemClock, await machine(SYSTEMD), '/nonexistent/timedatectl');
  expect(await boot.isTimeRight()).toBe(false);
});
