import { describe, expect, it } from 'vitest';
import { terminal } from '../../../src/device/display/drivers/terminal.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { testIo } from '../io.ts';
import { type Answers, PictureTerminal } from '../picture-terminal.ts';
import { expectDecodes, glyphCache } from '../pictures.ts';
import { PAYMENT, QR_CODE, SCENES } from '../scenes.ts';

const source = glyphCache();
const CELL = '\x1b[6;20;10t';
const KITTY: Answers = { kitty: '\x1b_Gi=ID;OK\x1b\\', cell: CELL, da1: '\x1b[?62;22c' };
const SIXEL: Answers = { cell: CELL, da1: '\x1b[?62;4;22c' };

async function openOn(out: PictureTerminal, graphics: 'auto' | 'blocks' | 'kitty' | 'sixel' = 'auto') {
  const io = { ...testIo(source.cacheDir), terminal: out as unknown as NodeJS.WriteStream, terminalInput: out.input };
  const display = await terminal.open({ graphics }, io, new AbortController().signal);
  const renderer = await openRenderer(display.surface, source);
  return { display, show: (scene: Scene) => display.draw(renderer.render(scene), scene) };
}

describe('a terminal that draws pictures', () => {
  it.each([
    ['kitty graphics', KITTY],
    ['sixels', SIXEL],
  ])('shows a code that phones read: %s', async (_name, answers) => {
    const out = new PictureTerminal(80, 30, answers);
    out.write('$ paybox agent\r\n');
    const { display, show } = await openOn(out);
    expect(display.surface).toEqual({ kind: 'pixels', width: 800, height: 480 });
    for (const scene of Object.values(SCENES)) await show(scene);
    await show(PAYMENT);
    expectDecodes(out.picture(), QR_CODE);
    // All but the blank one, and the payment again.
    expect(out.pictures).toBe(Object.keys(SCENES).length);
    const { bytes } = out;
    await show(PAYMENT);
    expect(out.bytes, 'the same picture is not sent again').toBe(bytes);
    expect(out.listeningCount).toBe(0);
    await display.close();
    await display.close();
    expect(out.cursorVisible).toBe(true);
    expect(
      out
        .picture()
        .data.subarray(40 * 800 * 4)
        .every((byte) => byte === 16 || byte === 255),
    ).toBe(true);
  });

  it.each([
    ['answers nothing', {}],
    ['has neither', { cell: CELL, da1: '\x1b[?62;22c' }],
    ['is of class 4, which is not sixel', { da1: '\x1b[?4;6c' }],
    ['refuses the query', { kitty: '\x1b_Gi=ID;EINVAL:no\x1b\\', da1: '\x1b[?1;2c' }],
    ['answers too late', { ...KITTY, delayed: true as const }],
  ])('gets half blocks where it %s', async (_name, answers) => {
    const out = new PictureTerminal(80, 30, answers);
    const { display } = await openOn(out);
    expect(display.surface.kind).toBe('characters');
    out.answerLate();
    expect(out.listeningCount).toBe(0);
    await display.close();
  });

  it('a terminal is not asked for pictures where blocks are chosen, nor where nobody reads its answers', async () => {
    const out = new PictureTerminal(80, 30, KITTY);
    await openOn(out, 'blocks');
    expect(out.bytes).toBe(0);
    const io = { ...testIo(''), terminal: out as unknown as NodeJS.WriteStream };
    const { surface } = await terminal.open({ graphics: 'auto' }, io, new AbortController().signal);
    expect([surface.kind, out.bytes]).toEqual(['characters', 0]);
  });

  it('a terminal draws pictures where they are chosen, though it does not answer', async () => {
    const out = new PictureTerminal(80, 24, {});
    const { display, show } = await openOn(out, 'sixel');
    expect(display.surface).toEqual({ kind: 'pixels', width: 640, height: 368 });
    await show(PAYMENT);
    expectDecodes(out.picture(), QR_CODE);
  });

  it('a terminal with pictures begins anew after a resize', async () => {
    const out = new PictureTerminal(80, 30, KITTY);
    const { display, show } = await openOn(out);
    await show(PAYMENT);
    out.columns = 70;
    out.emit('resize');
    expect(display.surface).toEqual({ kind: 'pixels', width: 700, height: 420 });
    await expect(show(PAYMENT), 'a frame of the old size').rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
    await display.close();
    expect(out.listenerCount('resize')).toBe(0);
  });
});
