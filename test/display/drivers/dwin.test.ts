import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { loadAgentConfig } from '../../../src/agent/config.ts';
import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import { crcOf, modbusCrc, readFrame, switchPage, writeFrame } from '../../../src/display/drivers/dgus.ts';
import { DISPLAY_DRIVERS } from '../../../src/display/registry.ts';
import { openRenderer } from '../../../src/display/render.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { onPty } from '../emulators/hardware.ts';
import { openOn, scene, wireOf } from '../opened.ts';
import { expectGolden } from '../pictures.ts';
import { PAYMENT, payloadOf, SCENES } from '../scenes.ts';

const { missing, note } = without(PROGRAMS.socat);
const driver = DISPLAY_DRIVERS.get('dwin');
const idle = scene('idle');
const paid = scene('paid');
const ASCII_TEXTS = PROJECT.texts.map((text) => ({ ...text, unicode: false }));

async function panel(project = PROJECT) {
  const hardware = await onPty((send) => new DwinEmulator(send, project));
  onTestFinished(async () => {
    await hardware.close();
    expect(hardware.violations()).toEqual([]);
  });
  return hardware;
}

describe.skipIf(missing)(`a DWIN panel${note}`, () => {
  it('gets exactly these bytes', async () => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware, { pages: { payment: 1, paid: 2 } });
    const wire = await wireOf(hardware, {
      idle: () => show(idle),
      payment: () => show(PAYMENT),
      'a second later': () => show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 }),
      'another payment, of two frames': () => show({ ...PAYMENT, qrCode: payloadOf(280), amount: 1_180_000 }),
      paid: () => show(paid),
    });
    await expectGolden('dwin-wire', wire);
  });

  it.each([true, false])('shows a payment, with a CRC: %s', async (crc) => {
    const hardware = await panel({ ...PROJECT, crc });
    const { show } = await openOn(driver, hardware, { crc, pages: { payment: 1 } });
    await show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
    expect(hardware.emulator.page).toBe(1);
    expect(hardware.shownTexts()).toEqual([
      'Quét mã để thanh toán',
      '50.000 ₫',
      PAYMENT.content,
      'NGUYEN VAN A',
      'MB • 0123456789',
      'Còn lại 4:32',
      '',
      '',
    ]);
    await show(paid);
    expect(hardware.shownQr()).toBeUndefined();
    expect(hardware.shownTexts()[0]).toBe('Đã nhận');
    expect(hardware.emulator.page).toBe(0);
  });

  it('takes its QR away when it is closed', async () => {
    const hardware = await panel();
    const { show, display } = await openOn(driver, hardware);
    await show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
    await display.close();
    expect(hardware.shownQr()).toBeUndefined();
  });

  it('closes where nothing answers, and twice', async () => {
    const hardware = await panel();
    const { show, display } = await openOn(driver, hardware);
    await show(PAYMENT);
    hardware.emulator.silent = true;
    await display.close();
    await display.close();
  });

  it.each([
    ['the same page', 0, 200],
    ['another page', 1, 220],
  ])('takes few bytes more than the payload from idle to payment on %s', async (_, payment, more) => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware, { pages: { payment } });
    await show(idle);
    hardware.forget();
    await show(PAYMENT);
    expect(hardware.received().length).toBeLessThanOrEqual(PAYMENT.qrCode.length + more);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(hardware.received().length).toBeLessThan(60);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(hardware.received().length).toBeLessThan(10);
  });

  it.each([19, 140, 141, 142, 246, 247, 248, 249, 250, 458])(
    'shows a payload of %d characters, never a part of it',
    async (length) => {
      const hardware = await panel();
      const { show } = await openOn(driver, hardware);
      await show(PAYMENT);
      const qrCode = payloadOf(length);
      await show({ ...PAYMENT, qrCode });
      expect(hardware.shownQr()).toBe(qrCode);
      expect(hardware.emulator.everShown).toEqual([PAYMENT.qrCode, qrCode]);
    },
  );

  it.each([154, 155, 458])('is judged by the code of %d bytes that it draws', async (length) => {
    const hardware = await panel();
    const { display } = await openOn(driver, hardware);
    const renderer = await openRenderer(display.surface, { cacheDir: '/nowhere' });
    expect(renderer.checkQr(payloadOf(length))).toMatchObject({ modules: length < 155 ? 45 : 73, modulePixels: 4 });
  });

  it('keeps texts within their memory', async () => {
    const texts = [{ vp: 0x1000, words: 16, unicode: true }];
    const hardware = await panel({ ...PROJECT, texts });
    const only = {
      title: null,
      amount: null,
      content: 0x1000,
      holder: null,
      account: null,
      timeLeft: null,
      hint: null,
    };
    const { show } = await openOn(driver, hardware, { texts: { ...only, offline: null }, textWords: 16 });
    await show({ ...PAYMENT, content: 'Thanh toán đơn hàng số 1234' });
    expect(hardware.shownTexts()).toEqual(['Thanh toán đơn…']);
  });

  it('sends ASCII only to a project without Vietnamese letters', async () => {
    const hardware = await panel({ ...PROJECT, texts: ASCII_TEXTS });
    const { show } = await openOn(driver, hardware, { encoding: 'ascii' });
    await show({ ...PAYMENT, content: 'Cà phê' });
    expect(hardware.shownTexts().slice(0, 3)).toEqual(['Quet ma de thanh toan', '50.000 d', 'Ca phe']);
    await expect(show({ ...PAYMENT, qrCode: `${PAYMENT.qrCode}é` })).rejects.toThrow('cannot take');
  });

  it('draws everything anew when the panel has restarted, which it does not tell', async () => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware, { pages: { payment: 1 } });
    await show(PAYMENT);
    hardware.emulator.restart();
    expect(hardware.shownQr()).toBeUndefined();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
    expect(hardware.shownTexts()[1]).toBe('50.000 ₫');
    expect(hardware.emulator.page).toBe(1);
  });

  it('names a panel that never answers', async () => {
    const hardware = await panel({ ...PROJECT, crc: true });
    await expect(openOn(driver, hardware, { crc: false, baudRate: 9_600 })).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message: expect.stringContaining('does not answer at 9600 baud without CRC'),
      fix: expect.stringContaining('CFG'),
    });
  });

  it('names a panel that stops to answer, is spent, and works when opened again', async () => {
    const hardware = await panel();
    const { show, display } = await openOn(driver, hardware);
    await show(idle);
    hardware.emulator.silent = true;
    const named = { code: 'DISPLAY_FAULT', message: expect.stringContaining('did not answer') };
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    hardware.emulator.silent = false;
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await display.close();
    const again = await openOn(driver, hardware);
    await again.show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });

  it('lets keys of touch controls pass, told once', async () => {
    const hardware = await panel();
    const lines: string[] = [];
    const out = new PassThrough().on('data', (line) => lines.push(String(line)));
    const { show } = await openOn(driver, hardware, {}, { log: createLogger(out, systemClock, 'json') });
    hardware.emulator.touch(0x5000, 1);
    hardware.emulator.touch(0x5000, 2);
    await show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
    await eventually('it is told', () => lines.length > 0);
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['panel-event-ignored']);
  });

  it('notices an unplug while idle, and works once plugged in again', async () => {
    const hardware = await panel();
    const { show, asked } = await openOn(driver, hardware);
    await show(idle);
    await hardware.unplug();
    await eventually('the driver asks for a drawing', () => asked() > 0);
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('is lost') });
    await hardware.plug();
    const again = await openOn(driver, hardware);
    await again.show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });
});

describe('frames of DGUS II', () => {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

  it('are those of the guide', () => {
    expect(hex(switchPage(0x0102))).toBe('5aa5078200845a010102');
    expect(hex(readFrame(0x1000, 1))).toBe('5aa50483100001');
    expect(hex(writeFrame(0x1000, Uint8Array.of(0x31, 0x32, 0xff, 0xff)))).toBe('5aa5078210003132ffff');
  });

  it('carry the CRC of Modbus, its low byte first, and count it', () => {
    expect(modbusCrc(Buffer.from('123456789'))).toBe(0x4b37);
    expect(hex(crcOf(Uint8Array.of(0x5a, 0xa5, 3, 0x82, 0x4f, 0x4b)))).toMatch(/^5aa505824f4b/);
    const body = Buffer.from('83100001', 'hex');
    expect(Buffer.from(crcOf(readFrame(0x1000, 1))).readUInt16LE(7)).toBe(modbusCrc(body));
  });

  it('write at most 249 bytes, in whole words', () => {
    expect(() => writeFrame(0x1000, new Uint8Array(250))).toThrow(RangeError);
    expect(() => writeFrame(0x1000, new Uint8Array(3))).toThrow(RangeError);
  });
});

describe('the options of a DWIN panel', () => {
  it('are all in device-config/dwin.yaml', async () => {
    const { displays } = await loadAgentConfig(`${import.meta.dirname}/../../../device-config/dwin.yaml`);
    const [{ driver: name, ...given } = { driver: '' }] = displays;
    expect(name).toBe('dwin');
    const known = z.toJSONSchema(driver?.options ?? z.never(), { io: 'input' }).properties ?? {};
    expect(Object.keys(given).toSorted()).toEqual(Object.keys(known).toSorted());
    expect(new Set(Object.keys(Object(given.pages)))).toEqual(new Set(Object.values(SCENES).map((it) => it.kind)));
  });

  it.each([
    [{ qr: { charsMax: 459 } }, ['qr.charsMax']],
    [{ texts: { amount: 0x0f00 } }, ['texts.amount']],
    [{ textWords: 129 }, ['texts.title']],
    [{ markerVp: 0x2001 }, ['qr.vp']],
    [{ qr: { vp: 0xfff0 } }, ['qr.vp']],
    [{ crc: 1 }, ['crc']],
  ])('refuse %j by the path', (options, paths) => {
    const parsed = driver?.options.safeParse({ path: '/dev/ttyUSB0', ...options });
    expect(parsed?.error?.issues.map((issue) => issue.path.join('.'))).toEqual(paths);
  });
});
