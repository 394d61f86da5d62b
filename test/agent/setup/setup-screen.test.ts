import { createServer } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type SetupNeed, showSetup } from '../../../src/device/agent/setup/setup-screen.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { FakeFramebuffer, type FakeFramebufferSettings } from '../../display/emulators/framebuffer.ts';
import { glyphCache } from '../../display/pictures.ts';
import { DARK, TerminalEmulator } from '../../display/terminal-emulator.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';

const NEED: SetupNeed = {
  problem: 'paybox.yaml dòng 4: link.url: expected mqtts://…',
  action: 'Sửa tệp paybox.yaml trên thẻ nhớ rồi khởi động lại',
  terminalCode: 'VVB000001',
  serialNumber: null,
};
const XRGB: FakeFramebufferSettings = { width: 320, height: 240, bitsPerPixel: 32, strideBytes: 1280 };
const source = glyphCache();
const wordsOn = (terminal: TerminalEmulator) => terminal.text().join('\n');

async function shown({ root, port = 0, terminal }: { root?: string; port?: number; terminal?: TerminalEmulator } = {}) {
  const lines = new PassThrough();
  const screen = await showSetup(
    NEED,
    {
      version: '0.1.0',
      http: { host: '127.0.0.1', port },
      cacheDir: source.cacheDir,
      root: root ?? (await temporaryFolder()),
    },
    {
      clock: systemClock,
      random: systemRandom,
      log: createLogger(lines, systemClock, 'json'),
      terminal: terminal as unknown as NodeJS.WriteStream | undefined,
      terminalInput: undefined,
    },
  );
  onTestFinished(() => screen.close());
  const ask = async (path: string) => fetch(`${screen.origin}${path}`);
  return { screen, ask, logged: () => String(lines.read() ?? '') };
}

describe('a box that cannot start', () => {
  it('a box that cannot start shows why on every framebuffer, and clears it when it is closed', async () => {
    const root = await temporaryFolder();
    const devices = [0, 1].map((number) => new FakeFramebuffer(root, { ...XRGB, number, name: `fb-${number}` }));
    const renderer = await openRenderer({ kind: 'pixels', width: 320, height: 240 }, source);
    const wanted = renderer.render({ kind: 'setup', ...NEED });
    if (wanted.kind !== 'pixels') throw new Error('not pixels');
    const { screen } = await shown({ root });
    for (const device of devices) {
      await eventually('the picture', () => Buffer.from(device.picture().data).equals(Buffer.from(wanted.data)));
    }
    await screen.close();
    for (const device of devices)
      expect(device.picture().data.every((byte, at) => at % 4 === 3 || byte === 0)).toBe(true);
  });

  it('a box that cannot start says why in the terminal where there is no framebuffer', async () => {
    const terminal = new TerminalEmulator(80, 24, DARK, 24);
    const { ask } = await shown({ terminal });
    await eventually('the words', () => wordsOn(terminal).includes('Chưa cài đặt xong'));
    expect(wordsOn(terminal)).toContain(NEED.problem);
    expect(await (await ask('/status')).json()).toMatchObject({ display: { driver: 'terminal', ok: true } });
  });

  it('a box that cannot start says why on its pages', async () => {
    const { ask } = await shown();
    await eventually('a picture', async () => (await ask('/screen.png')).status === 200);
    const status = await (await ask('/status')).json();
    expect(status).toMatchObject({
      state: 'fault',
      online: false,
      terminalCode: 'VVB000001',
      serialNumber: '',
      fault: { code: 'NOT_CONFIGURED', reason: NEED.problem },
      display: { driver: 'browser', ok: true },
    });
    const text = await (await ask('/screen.txt')).text();
    for (const words of [NEED.problem, NEED.action, 'VVB000001']) expect(text).toContain(words);
    expect((await ask('/healthz')).status).toBe(503);
    expect(await (await ask('/')).text()).toContain('<html');
  });

  it('a box that cannot start says why on the screen although its pages cannot be opened', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void taken.close());
    const address = taken.address();
    const terminal = new TerminalEmulator(80, 24, DARK, 24);
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { screen, logged } = await shown({ terminal, port });
    await eventually('the words', () => wordsOn(terminal).includes(NEED.problem));
    expect(screen.origin).toBeUndefined();
    expect(logged()).toContain('pages-unavailable');
  });
});
