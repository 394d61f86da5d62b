import { chmodSync, rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { PixelFrame } from '../../../src/device/display/contract.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { FakeFramebuffer } from '../emulators/framebuffer.ts';
import { expectDecodes, expectGolden, glyphCache } from '../pictures.ts';
import { PAYMENT, QR_CODE, SCENES } from '../scenes.ts';
import { fake, openOn, RGB565, XRGB } from './framebuffer-support.ts';

const glyphs = glyphCache();

/** A 16 × 16 picture with every corner and many shades of its own. */
function testFrame(): PixelFrame {
  const data = new Uint8Array(16 * 16 * 4).fill(255);
  for (let y = 0; y < 16; y += 1) {
    for (let x = 0; x < 16; x += 1) data.set([x * 17, y * 17, (x * 16 + y) & 255], (y * 16 + x) * 4);
  }
  return { kind: 'pixels', width: 16, height: 16, data };
}

describe('the framebuffer display', () => {
  it.each([
    [16, 37],
    [32, 69],
  ])('writes %i bits a pixel, byte for byte', async (bitsPerPixel, strideBytes) => {
    const device = await fake({ width: 16, height: 16, bitsPerPixel, strideBytes });
    const { display } = await openOn(device, glyphs.cacheDir);
    await display.draw(testFrame(), PAYMENT);
    const rows = Array.from({ length: 16 }, (_, row) =>
      device
        .memory()
        .subarray(row * strideBytes, (row + 1) * strideBytes)
        .toString('hex'),
    );
    await expectGolden(`framebuffer-${bitsPerPixel}-bits`, `${rows.join('\n')}\n`);
  });

  it.each([RGB565, XRGB])(
    'a framebuffer shows a payment that two decoders read off the memory (%j)',
    async (settings) => {
      const device = await fake(settings);
      const { show } = await openOn(device, glyphs.cacheDir);
      await show(PAYMENT);
      expectDecodes(device.picture(), QR_CODE);
    },
  );

  it('a framebuffer fills the visible rows only, where the memory holds two screens', async () => {
    const device = await fake({ ...XRGB, virtualHeight: 480 });
    const { display, show } = await openOn(device, glyphs.cacheDir);
    expect(display.surface).toEqual({ kind: 'pixels', width: 320, height: 240 });
    await show(PAYMENT);
    const hidden = device.memory().subarray(240 * XRGB.strideBytes);
    expect(hidden.every((byte) => byte === 0xa5)).toBe(true);
  });

  it('a framebuffer turns the picture for a panel that hangs sideways', async () => {
    const device = await fake(XRGB);
    const { display, show } = await openOn(device, glyphs.cacheDir, { rotation: 90 });
    expect(display.surface).toMatchObject({ width: 240, height: 320 });
    await show(PAYMENT);
    expectDecodes(device.picture(), QR_CODE);
  });

  it('a framebuffer writes only the rows that have changed', async () => {
    const device = await fake(RGB565);
    const { display } = await openOn(device, glyphs.cacheDir);
    const data = new Uint8Array(320 * 240 * 4).fill(255);
    const frame = { kind: 'pixels', width: 320, height: 240, data } as const;
    await display.draw(frame, PAYMENT);
    device.scribble(0x11);
    data.fill(0, 100 * 1280, 102 * 1280);
    await display.draw(frame, PAYMENT);
    const memory = device.memory();
    const touched = Array.from({ length: 240 }, (_, row) => row).filter(
      (row) => memory[row * 647] !== 0x11 || memory[row * 647 + 639] !== 0x11,
    );
    expect(touched).toEqual([100, 101]);
  });

  it('a framebuffer writes everything anew now and then', async () => {
    const device = await fake(RGB565);
    const { show, clock } = await openOn(device, glyphs.cacheDir, { repaintSeconds: 30 });
    await show(PAYMENT);
    const whole = device.memory();
    device.scribble();
    await clock.advance(29_000);
    expect(device.memory().equals(whole)).toBe(false);
    await clock.advance(1_000);
    await expect.poll(() => device.memory().equals(whole)).toBe(true);
  });
});

describe('which framebuffer', () => {
  it('the framebuffer is chosen by its name, whatever its number', async () => {
    const small = await fake({ ...RGB565, name: 'fb_ili9341', number: 0 });
    const large = new FakeFramebuffer(small.root, { ...XRGB, name: 'vc4drmfb', number: 1 });
    const { show } = await openOn(large, glyphs.cacheDir, { name: 'vc4drmfb' });
    await show(PAYMENT);
    expectDecodes(large.picture(), QR_CODE);
    expect(small.memory().every((byte) => byte === 0xa5)).toBe(true);
    const other = await openOn(small, glyphs.cacheDir, { device: '/dev/fb0' });
    await other.show(PAYMENT);
    expectDecodes(small.picture(), QR_CODE);
  });

  it('the framebuffer must be named where there are several', async () => {
    const device = await fake({ ...RGB565, name: 'fb_ili9341' });
    new FakeFramebuffer(device.root, { ...XRGB, number: 1 }).tell('name', 'vc4drmfb');
    await expect(openOn(device, glyphs.cacheDir)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: 'several framebuffers fit: /dev/fb0 (fb_ili9341), /dev/fb1 (vc4drmfb)',
      fix: expect.stringContaining('by name'),
    });
  });

  it.each([
    [{ name: 'vc4drmfb2' }, 'there is no framebuffer named vc4drmfb2; the machine has: /dev/fb0 (vc4drmfb)'],
    [{ device: '/dev/fb7' }, 'there is no framebuffer at /dev/fb7; the machine has: /dev/fb0 (vc4drmfb)'],
  ])('is named when it is absent: %j', async (options, message) => {
    const device = await fake(RGB565);
    await expect(openOn(device, glyphs.cacheDir, options)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message,
      fix: expect.stringContaining('modprobe'),
    });
  });

  it('a machine without any framebuffer is refused', async () => {
    const device = await fake(RGB565);
    rmSync(`${device.root}/sys`, { recursive: true });
    await expect(openOn(device, glyphs.cacheDir)).rejects.toMatchObject({
      message: 'there is no framebuffer; the machine has: none',
    });
  });

  it.each([8, 24, 1])('a framebuffer is refused with %i bits a pixel', async (bits) => {
    const device = await fake(RGB565);
    device.tell('bits_per_pixel', String(bits));
    await expect(openOn(device, glyphs.cacheDir)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: `the framebuffer vc4drmfb has ${bits} bits a pixel, and 16 or 32 are supported`,
    });
  });

  it.each([
    ['stride', ''],
    ['stride', '0'],
    ['stride', '600'],
    ['virtual_size', '320'],
    ['virtual_size', '-1,240'],
    ['virtual_size', '99999999,240'],
  ])('is refused when its %s is %j', async (attribute, value) => {
    const device = await fake(RGB565);
    device.tell(attribute, value);
    await expect(openOn(device, glyphs.cacheDir)).rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
  });
});

describe('a framebuffer that fails', () => {
  it('a framebuffer names a missing device file, and opens once it is there', async () => {
    const device = await fake(RGB565);
    rmSync(device.node);
    await expect(openOn(device, glyphs.cacheDir)).rejects.toMatchObject({ fix: expect.stringContaining('modprobe') });
    new FakeFramebuffer(device.root, RGB565);
    await (await openOn(device, glyphs.cacheDir)).show(PAYMENT);
    expectDecodes(device.picture(), QR_CODE);
  });

  it('a framebuffer names a missing permission', async () => {
    const device = await fake(RGB565);
    chmodSync(device.root, 0o755);
    chmodSync(device.node, 0o000);
    // Root may do anything: for a moment this is somebody else.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) process.seteuid?.('nobody');
    await expect(openOn(device, glyphs.cacheDir).finally(() => isRoot && process.seteuid?.(0))).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('EACCES'),
      fix: expect.stringContaining('usermod -aG video'),
    });
  });

  it('a framebuffer names a device that accepts no pixels, stays spent, and works when opened anew', async () => {
    const device = await fake(RGB565);
    device.refuseBytes();
    const { show, display } = await openOn(device, glyphs.cacheDir);
    const fault = { code: 'DISPLAY_FAULT', message: expect.stringContaining('takes no pixels') };
    await expect(show(PAYMENT)).rejects.toMatchObject(fault);
    await expect(show(SCENES.idle as Scene)).rejects.toMatchObject(fault);
    await display.close();
    rmSync(device.node);
    const back = new FakeFramebuffer(device.root, RGB565);
    await (await openOn(back, glyphs.cacheDir)).show(PAYMENT);
    expectDecodes(back.picture(), QR_CODE);
  });

  it('a framebuffer is black in the end, also where the pixels are not accepted any more', async () => {
    const device = await fake(RGB565);
    const { show, display } = await openOn(device, glyphs.cacheDir);
    await show(PAYMENT);
    await display.close();
    expect(device.memory().every((byte) => byte === 0)).toBe(true);
    device.refuseBytes();
    const refusing = await openOn(device, glyphs.cacheDir);
    await expect(refusing.show(PAYMENT)).rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
    await refusing.display.close();
  });

  it('a framebuffer has the agent draw when a repaint fails', async () => {
    const device = await fake(RGB565);
    device.refuseBytes();
    const { show, asked, clock } = await openOn(device, glyphs.cacheDir);
    await clock.advance(60_000);
    await expect.poll(asked).toBe(1);
    await expect(show(PAYMENT)).rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
  });
});

describe('the console on a framebuffer', () => {
  it('the console is detached while its framebuffer is open, and no other console is', async () => {
    const device = await fake(RGB565);
    const { display } = await openOn(device, glyphs.cacheDir);
    expect(device.told('vtconsole/vtcon1/bind')).toBe('0');
    await display.close();
    expect(device.told('vtconsole/vtcon1/bind')).toBe('1');
    expect(device.told('vtconsole/vtcon0/bind')).toBe('0');
  });

  it('the console stays detached where a picture stays, which it would draw over', async () => {
    const device = await fake(RGB565);
    const { show, display } = await openOn(device, glyphs.cacheDir);
    await show(SCENES.paid as Scene);
    const before = device.memory();
    await display.close();
    expect(device.told('vtconsole/vtcon1/bind')).toBe('0');
    expect(Buffer.compare(device.memory(), before)).toBe(0);
    const next = await openOn(device, glyphs.cacheDir);
    await next.show({ kind: 'blank' });
    await next.display.close();
    expect(device.memory().every((byte) => byte === 0)).toBe(true);
  });

  it('the console is left alone where somebody else has detached it', async () => {
    const device = await fake(RGB565);
    device.console('vtcon1', '(M) frame buffer device', '0');
    const { display } = await openOn(device, glyphs.cacheDir);
    await display.close();
    expect(device.told('vtconsole/vtcon1/bind')).toBe('0');
  });

  it('a console that cannot be detached is only logged', async () => {
    const device = await fake(RGB565);
    rmSync(`${device.root}/sys/class/vtconsole/vtcon1/bind`);
    const { show, logged } = await openOn(device, glyphs.cacheDir);
    await show(PAYMENT);
    expectDecodes(device.picture(), QR_CODE);
    expect(await logged()).toMatch(/warn +console-not-detached .*echo 0 >/);
  });
});
