import { describe, expect, it } from 'vitest';
import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import { crcOf, modbusCrc, readFrame, switchPage, writeFrame } from '../../../src/device/display/drivers/dgus.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { cabled } from '../opened.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';

const AMOUNT_VP = 0x1080;

const device = (project = PROJECT) => cabled('dwin', (send) => new DwinEmulator(send, project));

describe('a DWIN panel', () => {
  it.each([19, 140, 141, 142, 246, 247, 248, 249, 250, 458])(
    'a DWIN panel shows a payload of %d characters, never a part of it',
    async (length) => {
      const { panel, open, shownQr } = device();
      const { show } = await open();
      await show(PAYMENT);
      const qrCode = payloadOf(length);
      await show({ ...PAYMENT, qrCode });
      expect(shownQr()).toBe(qrCode);
      expect(panel.everShown).toEqual([PAYMENT.qrCode, qrCode]);
    },
  );

  it.each([154, 155, 458])('a DWIN panel is judged by the code of %d bytes that it draws', async (length) => {
    const { open } = device();
    const { display } = await open();
    const renderer = await openRenderer(display.surface, { cacheDir: '/nowhere' });
    expect(renderer.checkQr(payloadOf(length))).toMatchObject({ modules: length < 155 ? 45 : 73, modulePixels: 4 });
  });

  it('a DWIN panel keeps texts within their memory', async () => {
    const texts = [{ vp: 0x1000, words: 16, unicode: true }];
    const { panel, open } = device({ ...PROJECT, texts });
    const only = {
      title: null,
      amount: null,
      content: 0x1000,
      holder: null,
      account: null,
      timeLeft: null,
      hint: null,
    };
    const { show } = await open({ texts: { ...only, offline: null }, textWords: 16 });
    await show({ ...PAYMENT, content: 'Thanh toán đơn hàng số 1234' });
    expect(panel.shownTexts()).toEqual(['Thanh toán đơn…']);
  });

  it('a DWIN panel draws everything anew after a restart that it does not report', async () => {
    const { panel, open, shownQr } = device();
    const { show } = await open({ pages: { payment: 1 } });
    await show(PAYMENT);
    panel.restart();
    expect(shownQr()).toBeUndefined();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(shownQr()).toBe(PAYMENT.qrCode);
    expect(panel.shownTexts()[1]).toBe('50.000 ₫');
    expect(panel.page).toBe(1);
  });

  it('a DWIN panel draws an amount anew that its memory has lost or changed, beside whatever is drawn next', async () => {
    const { panel, open } = device();
    const { show } = await open();
    await show(PAYMENT);
    for (const [index, wrong] of ['90.000 ₫', '50.000.000 ₫', ''].entries()) {
      // Nobody has asked for this, so nobody is told.
      panel.silent = true;
      panel.receive(writeFrame(AMOUNT_VP, Buffer.from(`${wrong}\uffff`, 'utf16le').swap16()));
      panel.silent = false;
      expect(panel.shownTexts()[1]).toBe(wrong);
      await show({ ...PAYMENT, secondsLeft: 9 - index });
      expect(panel.shownTexts()[1]).toBe('50.000 ₫');
    }
  });
});

describe('frames of DGUS II', () => {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

  it('frames of DGUS II are those of the guide', () => {
    expect(hex(switchPage(0x0102))).toBe('5aa5078200845a010102');
    expect(hex(readFrame(0x1000, 1))).toBe('5aa50483100001');
    expect(hex(writeFrame(0x1000, Uint8Array.of(0x31, 0x32, 0xff, 0xff)))).toBe('5aa5078210003132ffff');
  });

  it('frames of DGUS II carry the CRC of Modbus, its low byte first, and count it', () => {
    expect(modbusCrc(Buffer.from('123456789'))).toBe(0x4b37);
    expect(hex(crcOf(Uint8Array.of(0x5a, 0xa5, 3, 0x82, 0x4f, 0x4b)))).toMatch(/^5aa505824f4b/);
    const body = Buffer.from('83100001', 'hex');
    expect(Buffer.from(crcOf(readFrame(0x1000, 1))).readUInt16LE(7)).toBe(modbusCrc(body));
  });

  it('frames of DGUS II write at most 249 bytes, in whole words', () => {
    expect(() => writeFrame(0x1000, new Uint8Array(250))).toThrow(RangeError);
    expect(() => writeFrame(0x1000, new Uint8Array(3))).toThrow(RangeError);
  });
});
