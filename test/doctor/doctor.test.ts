import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openPty } from '../../src/bench/panels/pty.ts';
import { UsbBitmapEmulator } from '../../src/bench/panels/usb-bitmap.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { clipsConfig, recordingPlayer, writeClips, writeScript } from '../voice/support.ts';

const socat = without(PROGRAMS.socat);
const espeak = without(PROGRAMS.espeak);

interface Finding {
  check: string;
  result: string;
  found: string;
  fix: string;
}

async function configWith(change: object): Promise<{ file: string; gatewayPort: number }> {
  const folder = await temporaryFolder();
  const gatewayPort = await freePort();
  const file = join(folder, 'box.yaml');
  const config = {
    box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
    link: { transport: 'mqtt', url: `mqtt://127.0.0.1:${gatewayPort}` },
    displays: [{ driver: 'png', path: 'screen.png', width: 480, height: 320 }],
    http: { port: await freePort() },
    dataDir: 'box',
    ...change,
  };
  await writeFile(file, JSON.stringify(config));
  return { file, gatewayPort };
}

/** A gateway whose broker is at this port. */
async function startGateway(port: number): Promise<void> {
  const folder = await temporaryFolder();
  const [file, ready] = [join(folder, 'gateway.yaml'), join(folder, 'ready.json')];
  const box = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
  const config = { http: { port: await freePort() }, mqtt: { embedded: { port } }, boxes: [box], dataDir: 'gateway' };
  await writeFile(file, JSON.stringify(config));
  await readyFile(ready, paybox('gateway', '--config', file, '--ready-file', ready));
}

async function findings(file: string): Promise<{ code: number | string; of: (check: string) => Finding | undefined }> {
  const { code, output } = await payboxToEnd('doctor', '--config', file, '--json');
  const all = JSON.parse(output) as Finding[];
  return { code, of: (check) => all.find((finding) => finding.check === check) };
}

describe('paybox doctor', () => {
  it('doctor ends with 0 when nothing is wrong and prints the verdict for each length of QR', async () => {
    const { file, gatewayPort } = await configWith({});
    await startGateway(gatewayPort);
    const { code, output } = await payboxToEnd('doctor', '--config', file);
    expect(output).not.toContain('failed');
    expect(code).toBe(0);
    for (const chars of [94, 142, 220, 280])
      expect(output).toMatch(
        new RegExp(`QR of ${chars} characters .*error correction [LMQH], .*modules of \\d+ px, .*dark on light`),
      );
  });

  it('doctor ends with 1 and says what to do when no gateway listens', async () => {
    const { file, gatewayPort } = await configWith({});
    const { code, of } = await findings(file);
    expect(code).toBe(1);
    expect(of('gateway')).toMatchObject({ result: 'failed', found: expect.stringContaining(`${gatewayPort}`) });
    expect(of('gateway')?.fix).toContain('link.url');
    expect(of('display png')?.result).toBe('ok');
  });

  it('doctor warns where a display cannot show a QR, and fails where it cannot be opened', async () => {
    const small = await configWith({ displays: [{ driver: 'png', path: 'screen.png', width: 32, height: 32 }] });
    const dense = await findings(small.file);
    expect(dense.of('QR of 94 characters')).toMatchObject({
      result: 'warning',
      found: expect.stringMatching(/33 x 33 modules and needs/),
    });
    const absent = await configWith({ displays: [{ driver: 'terminal' }] });
    expect((await findings(absent.file)).of('display terminal')).toMatchObject({ result: 'failed' });
  });

  it('doctor warns of no refusal for a display beside the first, which confirms the pushes alone', async () => {
    const beside = { driver: 'png', path: 'pole.png', width: 32, height: 32 };
    const { file } = await configWith({ displays: [{ driver: 'png', path: 'screen.png' }, beside] });
    const { output } = await payboxToEnd('doctor', '--config', file);
    expect(output).toContain('opens; the first display confirms pushes');
    expect(output).not.toContain('QR_TOO_DENSE');
  });

  it('doctor says on a fresh device to copy the example that lies there', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'agent.yaml');
    const bare = await payboxToEnd('doctor', '--config', file);
    expect(bare).toEqual({
      code: 2,
      output: expect.stringContaining('there is no such file\n  name a file that exists'),
    });
    await writeFile(join(folder, 'agent.example.yaml'), '');
    const fresh = await payboxToEnd('doctor', '--config', file);
    expect(fresh).toEqual({ code: 2, output: expect.stringContaining(`copy ${folder}/agent.example.yaml there`) });
  });

  it('doctor fails where the box could not write anything down', async () => {
    const { file } = await configWith({ dataDir: 'taken/box' });
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(join(file, '..', 'taken'), 'a file where a folder should be');
    const { code, of } = await findings(file);
    expect(code).toBe(1);
    expect(of('storage')).toMatchObject({ result: 'failed', fix: expect.stringContaining('dataDir') });
  });

  it('doctor ends with 2 for a configuration that it cannot read', async () => {
    expect(await payboxToEnd('doctor', '--config', '/nonexistent/box.yaml')).toMatchObject({ code: 2 });
  });

  it('doctor tries the voice with every word and a silence', async () => {
    const recording = await recordingPlayer();
    const { file } = await configWith({ voice: await clipsConfig(recording.command) });
    const { of } = await findings(file);
    expect(of('voice clips')).toEqual({ check: 'voice clips', result: 'ok', found: 'speaks', fix: '' });
    expect(await readdir(join(recording.command, '..'))).toContain('times');
    expect(await recording.played()).toEqual([]);
  });

  it('doctor names a clip that is missing, and that only the chime would ring', async () => {
    const { command } = await recordingPlayer();
    const voice = await clipsConfig(command);
    await rm(join(voice.options.folder, 'mốt.wav'));
    const { code, of } = await findings((await configWith({ voice })).file);
    expect(code).toBe(1);
    expect(of('voice clips')).toMatchObject({
      result: 'failed',
      found: expect.stringMatching(/^only the chime rings: no clip mốt\.wav in /),
      fix: expect.stringContaining('record it'),
    });
  });

  it.skipIf(espeak.missing)(`doctor warns where another voice has to speak${espeak.note}`, async () => {
    const { command } = await recordingPlayer();
    const options = { folder: await writeClips(['một']), fallback: 'espeak', player: { kind: 'aplay', command } };
    const { of } = await findings((await configWith({ voice: { driver: 'clips', options } })).file);
    expect(of('voice clips')).toMatchObject({
      result: 'warning',
      found: expect.stringContaining('another voice speaks instead: no clip'),
    });
  });

  it.each([
    ['is missing', undefined, /is not installed/, 'sudo apt-get install alsa-utils'],
    ['fails', 'echo no such device >&2; exit 1', /failed with exit code 1: no such device/, 'aplay -L'],
    ['hangs', 'exec sleep 1000', /hung and was killed/, 'aplay -L'],
  ])('names a player that %s', async (_, body, found, fix) => {
    const command = body === undefined ? '/nonexistent/player' : await writeScript('player', body);
    const { file } = await configWith({ voice: await clipsConfig(command) });
    const { code, of } = await findings(file);
    expect(code).toBe(1);
    expect(of('voice clips')).toMatchObject({
      result: 'failed',
      found: expect.stringMatching(found),
      fix: expect.stringContaining(fix),
    });
  });

  it('doctor finds the tools and the chip of light and buttons, and sets no line', async () => {
    const command = await writeScript('gpio', 'echo "$*" >> "$HERE/calls"', 'echo "gpio (libgpiod) v2.2.1"');
    // Any device will do: its lines are not touched.
    const part = { chip: '/dev/null', command };
    const { file } = await configWith({ light: { line: 1, ...part }, buttons: { lines: { dismiss: 2 }, ...part } });
    const { of } = await findings(file);
    for (const check of ['light', 'buttons']) {
      expect(of(check)).toMatchObject({ result: 'ok', found: '/dev/null, gpio (libgpiod) v2.2.1' });
    }
    expect(await readFile(join(command, '..', 'calls'), 'utf8')).toBe('--version\n--version\n');
  });

  it('doctor names the tool or the chip that light and buttons lack', async () => {
    const good = await writeScript('gpio', 'echo "gpio (libgpiod) v1.6.3"');
    const strange = await writeScript('gpio', 'echo "gpio (libgpiod) v9.0"');
    const lines = { dismiss: 2 };
    const absent = await configWith({ light: { line: 1, chip: 'gpiochip987', command: good } });
    expect((await findings(absent.file)).of('light')).toMatchObject({
      result: 'failed',
      found: '/dev/gpiochip987: ENOENT',
      fix: expect.stringContaining('gpiodetect'),
    });
    const missing = await configWith({
      light: { line: 1, chip: '/dev/null', command: '/nonexistent/gpioset' },
      buttons: { lines, chip: '/dev/null', command: strange },
    });
    const { code, of } = await findings(missing.file);
    expect(code).toBe(1);
    expect(of('light')).toMatchObject({
      found: '/nonexistent/gpioset is not installed',
      fix: 'sudo apt-get install gpiod',
    });
    expect(of('buttons')).toMatchObject({
      result: 'failed',
      found: expect.stringContaining('unknown version: gpio (libgpiod) v9.0'),
    });
  });

  it('doctor says nothing of parts and ports that are not configured', async () => {
    const { of } = await findings((await configWith({})).file);
    for (const check of ['light', 'buttons', 'serial ports']) expect(of(check)).toBeUndefined();
  });

  it.skipIf(socat.missing)(`doctor opens a serial display and lists the ports there are${socat.note}`, async () => {
    const device = new UsbBitmapEmulator();
    const pty = await openPty((bytes) => device.receive(bytes));
    onTestFinished(() => pty.close());
    const { file } = await configWith({ displays: [{ driver: 'usb-bitmap', path: pty.path }] });
    const { of } = await findings(file);
    expect(of('display usb-bitmap')?.result).toBe('ok');
    // Which ports there are is up to the machine.
    const ports = of('serial ports');
    expect(ports?.found).toMatch(/^(none|\/dev\/\S.*|cannot be listed: .*)$/);
    expect(ports?.result).toBe(ports?.found.startsWith('/dev/') ? 'ok' : 'warning');
    await pty.unplug();
    expect((await findings(file)).of('display usb-bitmap')).toMatchObject({
      result: 'failed',
      found: expect.stringContaining('No such file'),
      fix: expect.stringContaining('plug the device in'),
    });
  });
});
