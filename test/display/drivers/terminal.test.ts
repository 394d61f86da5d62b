import { describe, expect, it } from 'vitest';
import { terminal } from '../../../src/device/display/drivers/terminal.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { testIo } from '../io.ts';
import { expectDecodes, expectGeometry } from '../pictures.ts';
import { PAYMENT, payloadOf, QR_CODE, SCENES } from '../scenes.ts';
import { DARK, LIGHT, TerminalEmulator } from '../terminal-emulator.ts';

async function openOn(out: TerminalEmulator, options = {}, requestDraw = () => {}) {
  const display = await terminal.open(
    { graphics: 'auto', ...options },
    testIo('', out, requestDraw),
    new AbortController().signal,
  );
  const show = async (scene: Scene) => {
    const renderer = await openRenderer(display.surface, { cacheDir: '' });
    await display.draw(renderer.render(scene), scene);
    return renderer.checkQr(QR_CODE);
  };
  return { display, show };
}

describe('the terminal display', () => {
  it.each([
    ['dark, 24-bit colours', DARK, 24],
    ['light, 24-bit colours', LIGHT, 24],
    ['dark, 256 colours', DARK, 8],
    ['light, 256 colours', LIGHT, 8],
  ])('shows a QR that phones read in 80 x 24: %s', async (_name, theme, colorBits) => {
    const out = new TerminalEmulator(80, 24, theme, colorBits);
    const { show } = await openOn(out);
    const qrCheck = await show(PAYMENT);
    if (!qrCheck.ok) throw new Error(qrCheck.reason);
    expectDecodes(out.picture(), QR_CODE);
    expectGeometry(out.picture(), { x: 12, y: 12 }, { ...qrCheck, modulePixels: 6 });
    expect(out.text().join('\n')).toContain('50.000 ₫');
    const block = out.cells().slice(0, Math.ceil((qrCheck.modules + 2 * qrCheck.quietModules) / 2));
    expect(block.flat().filter(({ paper }) => paper === theme.paper)).toEqual([]);
  });

  it.each([
    ['dark', DARK],
    ['light', LIGHT],
  ])('has no colours but those of the QR where the terminal has none, as under NO_COLOR: %s', async (_name, theme) => {
    const out = new TerminalEmulator(80, 24, theme, 1);
    const { show } = await openOn(out);
    await show(PAYMENT);
    expectDecodes(out.picture(), QR_CODE);
    const isModule = ({ char }: { char: string }) => char === '▀';
    const others = out
      .cells()
      .flat()
      .filter((cell) => !isModule(cell) && cell.char.trim() !== '');
    expect(others.length).toBeGreaterThan(50);
    expect(others.filter(({ ink, paper }) => ink !== theme.ink || paper !== theme.paper)).toEqual([]);
    for (const scene of Object.values(SCENES)) {
      await show(scene);
      const cells = out.cells().flat();
      const coloured = cells.filter((cell) => !isModule(cell) && cell.paper !== theme.paper);
      expect([scene.kind, coloured.length]).toEqual([scene.kind, 0]);
    }
  });

  it('the terminal display draws modules of two columns where there is room', async () => {
    const out = new TerminalEmulator(100, 60, DARK, 24);
    const { show } = await openOn(out);
    const qrCheck = await show(PAYMENT);
    if (!qrCheck.ok) throw new Error(qrCheck.reason);
    expect(qrCheck).toMatchObject({ modulePixels: 2, quietModules: 4 });
    expectDecodes(out.picture(), QR_CODE);
    const left = Math.floor((100 - (qrCheck.modules + 8) * 2) / 2);
    expectGeometry(out.picture(), { x: 12 + left * 6, y: 12 }, { ...qrCheck, modulePixels: 12 });
  });

  it('the terminal display fits 41 modules into 80 x 24 with the texts beside them', async () => {
    const out = new TerminalEmulator(80, 24, DARK, 24);
    const { show } = await openOn(out);
    const qrCode = payloadOf(106);
    await show({ ...PAYMENT, qrCode });
    expectDecodes(out.picture(), qrCode);
    expect(out.text().join('\n')).toContain('Thanh toan don hang 1234');
  });

  it('the terminal display is redrawn in its place, by the lines that changed, and leaves what was above', async () => {
    const out = new TerminalEmulator(80, 30, DARK, 24);
    out.write('$ paybox agent\r\n');
    const { show } = await openOn(out);
    await show(PAYMENT);
    const whole = out.bytes;
    for (let secondsLeft = 271; secondsLeft > 200; secondsLeft -= 1) await show({ ...PAYMENT, secondsLeft });
    expect((out.bytes - whole) / 71).toBeLessThan(whole / 5);
    for (const scene of Object.values(SCENES)) await show(scene);
    await show(SCENES.fault ?? PAYMENT);
    const before = out.bytes;
    await show(SCENES.fault ?? PAYMENT);
    expect(out.bytes).toBe(before);
    await show(PAYMENT);
    expect([...out.scrollback, ...out.text()].filter((line) => line.includes('paybox agent'))).toHaveLength(1);
    expectDecodes(out.picture(), QR_CODE);

    const fresh = new TerminalEmulator(80, 30, DARK, 24);
    fresh.write('$ paybox agent\r\n');
    await (await openOn(fresh)).show(PAYMENT);
    expect(out.cells().slice(0, 24)).toEqual(fresh.cells().slice(0, 24));
  });

  it('the terminal display begins anew after a resize, and says in words what room a QR needs', async () => {
    const out = new TerminalEmulator(80, 24, DARK, 24);
    let resized = 0;
    const { display, show } = await openOn(out, {}, () => {
      resized += 1;
    });
    await show(PAYMENT);
    out.resize(44, 18);
    expect(resized).toBe(1);
    expect(display.surface).toMatchObject({ columns: 44, rows: 18 });
    const qrCheck = await show(PAYMENT);
    expect(qrCheck).toMatchObject({ ok: false, reason: expect.stringContaining('36 x 36') });
    const text = out.text().join('\n');
    expect(text.replaceAll(/\s+/g, ' ')).toContain('cần 41 cột × 21 hàng');
    expect(text).toContain('50.000 ₫');
    expect(text).not.toContain('▀');
    out.resize(100, 40);
    await show(PAYMENT);
    expectDecodes(out.picture(), QR_CODE);
  });

  it('the terminal display cuts a frame that was laid out before the window shrank', async () => {
    const out = new TerminalEmulator(80, 24, DARK, 24);
    const { display } = await openOn(out);
    const frame = (await openRenderer(display.surface, { cacheDir: '' })).render(PAYMENT);
    out.resize(50, 10);
    await display.draw(frame, PAYMENT);
    expect(out.text().join('')).toContain('▀');
  });

  it('the terminal display gives the cursor back when it is closed', async () => {
    const out = new TerminalEmulator(80, 24, DARK, 24);
    const { display, show } = await openOn(out);
    await show(PAYMENT);
    expect(out.cursorVisible).toBe(false);
    await display.close();
    expect(out.cursorVisible).toBe(true);
    expect(out.listenerCount('resize')).toBe(0);
    const { bytes } = out;
    await display.close();
    expect(out.bytes).toBe(bytes);
    out.write('$');
    const line = out.cells().find((cells) => cells[0]?.char === '$');
    expect(line?.[0]).toEqual({ char: '$', ...DARK });
  });

  it('the terminal display is wiped in its place by a blank scene, and leaves the lines above', async () => {
    const out = new TerminalEmulator(80, 30, DARK, 24);
    out.write('$ paybox agent\r\n');
    const { display, show } = await openOn(out);
    await show(PAYMENT);
    await show({ kind: 'blank' });
    await display.close();
    expect(out.text().filter((line) => line !== '')).toEqual(['$ paybox agent']);
    expect(out.cursorVisible).toBe(true);
    out.write('$');
    expect(out.text()[1]).toBe('$');
  });

  it('the terminal display leaves its last picture above the prompt when it is closed, but no QR', async () => {
    const out = new TerminalEmulator(80, 30, DARK, 24);
    const left = await openOn(out);
    await left.show(SCENES.paid ?? PAYMENT);
    await left.display.close();
    expect(out.text().join('\n')).toContain('50.000 ₫');
    const { display, show } = await openOn(out);
    await show(PAYMENT);
    await display.close();
    expect(out.text().join('\n')).not.toContain('▀');
    expect(out.text().join('\n')).toContain('50.000 ₫');
  });

  it('the terminal display has the size of its options', async () => {
    const { display } = await openOn(new TerminalEmulator(200, 100, DARK, 24), { columns: 60, rows: 26 });
    expect(display.surface).toMatchObject({ columns: 60, rows: 26 });
  });

  it('the terminal display is refused without a terminal, and says what to do', async () => {
    await expect(terminal.open({ graphics: 'auto' }, testIo(''), new AbortController().signal)).rejects.toMatchObject({
      code: 'PEER_MISSING',
      fix: expect.stringContaining('another display'),
    });
  });
});
