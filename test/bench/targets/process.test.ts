import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { screenProbe } from '../../../src/bench/engine/probes.ts';
import { processTarget } from '../../../src/bench/engine/targets/process.ts';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';

/** A program that says that it is ready if it is one of `ready`, and ends only by force; each leaves a file `PID.pid`. */
async function stubborn(folder: string, ready: readonly string[]): Promise<string> {
  const file = join(folder, 'stubborn.mjs');
  const code = `
    import { writeFileSync } from 'node:fs';
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => undefined);
    process.on('disconnect', () => undefined);
    const [command] = process.argv.slice(2);
    writeFileSync(${JSON.stringify(folder)} + '/' + process.pid + '.pid', '');
    if (${JSON.stringify(ready)}.includes(command)) writeFileSync(process.argv.at(-1), '{}');
    setInterval(() => undefined, 1000);
  `;
  await writeFile(file, code);
  return file;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

// Whoever waits for them waits for half a minute.
it.each([
  ['a gateway that does not come up', [], 4],
  ['boxes that do not come up', ['gateway'], 4],
  ['boxes that are not at work', ['gateway', 'agent'], 4],
])('gives up %s at once, and leaves no program and no file', async (_what, ready, programs) => {
  const folder = await temporaryFolder();
  const script = await stubborn(folder, ready);
  const pids = async () =>
    (await readdir(folder)).filter((name) => name.endsWith('.pid')).map((name) => Number.parseInt(name, 10));
  onTestFinished(async () => {
    for (const pid of (await pids()).filter(isRunning)) process.kill(pid, 'SIGKILL');
  });
  const kind = processTarget({
    transport: mqttTransport,
    probe: screenProbe(),
    random: systemRandom,
    program: [process.execPath, script],
  });
  const ending = new AbortController();
  const opening = kind.open({ boxes: 3, enrolled: true, signal: ending.signal });
  const given = expect(opening).rejects.toThrow('ended by SIGINT');
  await eventually('all have begun', async () => (await pids()).length === programs);
  const [pid = 0] = await pids();
  const args = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
  ending.abort(new Error('ended by SIGINT'));
  await given;
  expect((await pids()).filter(isRunning)).toEqual([]);
  await expect(readFile(args[args.indexOf('--config') + 1] ?? '')).rejects.toThrow(/ENOENT/);
});
