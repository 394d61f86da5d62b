import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Scene } from '../../../src/device/scene.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { expectDecodes, glyphCache } from '../pictures.ts';
import { PAYMENT, QR_CODE, SCENES } from '../scenes.ts';
import { fake, openOn, RGB565 } from './framebuffer-support.ts';

const IDLE = SCENES.idle as Scene;
const glyphs = glyphCache();

describe('a framebuffer at night', () => {
  const NIGHT = { blankFrom: '23:00', blankTo: '06:00' };
  const at = (hours: number, minutes: number) => new VirtualClock(new Date(2026, 0, 2, hours, minutes).getTime());

  it('a framebuffer at night is dark while it waits for a payment, and lit for one', async () => {
    const device = await fake(RGB565);
    const { show } = await openOn(device, glyphs.cacheDir, NIGHT, at(23, 0));
    await show(IDLE);
    expect(device.blank()).toBe('4');
    for (const scene of [PAYMENT, SCENES.paid, SCENES.expired, SCENES.cancelled, SCENES.fault]) {
      await show(scene as Scene);
      expect(device.blank()).toBe('0');
    }
    await show(IDLE);
    expect(device.blank()).toBe('4');
  });

  it('the night of a framebuffer begins and ends by the clock, without anything to draw', async () => {
    const device = await fake(RGB565);
    const { show, clock } = await openOn(device, glyphs.cacheDir, NIGHT, at(22, 59));
    await show(IDLE);
    expect(device.blank(), 'lit, whatever was left of an earlier night').toBe('0');
    await clock.advance(75_000);
    await expect.poll(() => device.blank()).toBe('4');
    await clock.advance(7 * 3_600_000);
    await expect.poll(() => device.blank()).toBe('0');
  });

  it('a framebuffer at night is black where the light cannot be switched', async () => {
    const device = await fake(RGB565);
    rmSync(`${device.root}/sys/class/graphics/fb0/blank`);
    const { show } = await openOn(device, glyphs.cacheDir, NIGHT, at(1, 0));
    await show(IDLE);
    expect(device.memory().every((byte) => byte === 0)).toBe(true);
    await show(PAYMENT);
    expectDecodes(device.picture(), QR_CODE);
  });

  it('a framebuffer is lit again when it is released', async () => {
    const device = await fake(RGB565);
    const { show, display } = await openOn(device, glyphs.cacheDir, NIGHT, at(1, 0));
    await show(IDLE);
    await display.close();
    expect(device.blank()).toBe('0');
  });
});
