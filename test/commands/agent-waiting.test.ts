import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { configured } from '../../src/commands/actions/agent-waiting.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { glyphCache } from '../display/pictures.ts';
import { DARK, TerminalEmulator } from '../display/terminal-emulator.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';

const source = glyphCache();
const CONFIG = {
  box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
  link: { transport: 'mqtt', url: 'mqtt://127.0.0.1:9' },
  dataDir: 'box',
};

/** A box on a machine with a terminal and no framebuffer, whose configuration is `file`. */
async function box(file?: string, report?: object) {
  const root = await temporaryFolder();
  await mkdir(join(root, 'proc/device-tree'), { recursive: true });
  await writeFile(join(root, 'proc/device-tree/serial-number'), '10000000abcdef01\0');
  const [config, setupReport] = [join(root, 'agent.yaml'), join(root, 'report.json')];
  if (file !== undefined) await writeFile(config, file);
  if (report !== undefined) await writeFile(setupReport, JSON.stringify({ file: '/boot/paybox.yaml', ...report }));
  const terminal = new TerminalEmulator(80, 24, DARK, 24);
  const stopped = new AbortController();
  const lines = new PassThrough();
  const options = {
    config,
    setupReport: report === undefined ? undefined : setupReport,
    cacheDir: source.cacheDir,
    root,
  };
  const deps = {
    // Ten times as fast.
    clock: { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 10, signal) },
    random: systemRandom,
    log: createLogger(lines, systemClock, 'json'),
    terminal: terminal as unknown as NodeJS.WriteStream,
    terminalInput: undefined,
  };
  const found = configured(options, deps, undefined, stopped.signal);
  onTestFinished(() => stopped.abort());
  const picture = () =>
    terminal
      .text()
      .map((line) => line.trim())
      .filter((line) => line !== '');
  const tell = (problem: string) => writeFile(setupReport, JSON.stringify({ file: '/boot/paybox.yaml', problem }));
  return { config, tell, found, picture, stop: () => stopped.abort() };
}

/** A whole file but for this; its pages are at a free port. */
const wrong = async (change: object) => JSON.stringify({ ...CONFIG, http: { port: await freePort() }, ...change });

describe('a box without a configuration that it could start with', () => {
  it('a box that cannot start says which line of the file on its card is wrong, and starts once that is corrected', async () => {
    const problem = 'paybox.yaml:4: wifi.psk: expected a WPA password of 8 to 63 characters';
    const { config, tell, found, picture } = await box(await wrong({ box: {} }), { problem });
    await eventually('the words', () => picture().length >= 4);
    expect(picture()).toEqual([
      'Chưa cài đặt xong',
      'Vấn đề: paybox.yaml:4: wifi.psk: expected a WPA password of 8 to 63 characters',
      'Số sê-ri: 10000000abcdef01',
      'Sửa paybox.yaml trên thẻ nhớ rồi bật lại máy',
    ]);
    await tell('paybox.yaml:7: unknown key x');
    await eventually('the other line', () => picture()[1] === 'Vấn đề: paybox.yaml:7: unknown key x');
    await writeFile(config, JSON.stringify(CONFIG));
    expect(await found).toMatchObject({ box: { terminalCode: 'VVB000001' } });
    // The display is given back.
    expect(picture()).toEqual([]);
  });

  it('a box that cannot start says what is wrong with its configuration, and what else once that has changed', async () => {
    const { config, picture } = await box(await wrong({ speling: 1 }));
    await eventually('the words', () => picture().join(' ').includes('unknown key speling'));
    expect(picture().join(' ')).toContain('Sửa tệp cấu hình');
    await writeFile(config, await wrong({ link: undefined }));
    await eventually('other words', () => picture().join(' ').includes('link'));
    expect(picture().join(' ')).not.toContain('speling');
  });

  it('a box without any file says its serial number and what to write', async () => {
    const { picture, found, stop } = await box(undefined, { problem: null });
    await eventually('the words', () => picture().length >= 4);
    expect(picture().join(' ')).toMatch(/Chưa có paybox\.yaml.*10000000abcdef01.*Ghi paybox\.yaml vào phân vùng boot/);
    expect(picture().join(' ')).toContain('terminalCode, serialNumber, gateway');
    stop();
    expect(await found).toBeUndefined();
  });
});

describe('a box that has a configuration', () => {
  it('a box that has a configuration starts at once', async () => {
    const { found, picture } = await box(JSON.stringify(CONFIG), { problem: null });
    expect(await found).toMatchObject({ box: { secret: 'Sample-box-secret-known-to-all' } });
    expect(picture()).toEqual([]);
  });

  it('a box that has a configuration says first that a newer one was refused', async () => {
    const { found, picture } = await box(await wrong({}), { problem: 'paybox.yaml:1: is no text' });
    await eventually('the words', () => picture().join(' ').includes('paybox.yaml:1: is no text'));
    expect(picture().join(' ')).toContain('VVB000001');
    expect(await found).toMatchObject({ box: { secret: 'Sample-box-secret-known-to-all' } });
  });
});
