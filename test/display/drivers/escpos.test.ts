import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EscposEmulator, pictureOf } from '../../../src/bench/panels/escpos.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { temporaryFolder } from '../../support/net.ts';
import { fc } from '../../support/properties.ts';
import { cabled, scene } from '../opened.ts';
import { expectDecodes } from '../pictures.ts';
import { anyScene, PAYMENT, payloadOf, SCENES } from '../scenes.ts';

const idle = scene('idle');
const paid = scene('paid');
const expired = scene('expired');
const history = scene('history');
const tooDense = scene('too dense');
const named = { code: 'DISPLAY_FAULT', severity: 'retryable', fix: expect.not.stringMatching(/^$/) };

/** A plugged device, and how to open it with a memory of its own. */
async function device(dots = 576) {
  const { panel, cable, open, shownQr } = cabled('escpos', (send) => new EscposEmulator(send, dots));
  const cacheDir = await temporaryFolder();
  const openThere = (options: object = {}) => open(options, { cacheDir });
  return { panel, cable, shownQr, cacheDir, open: openThere, slips: panel.slips };
}

describe('an ESC/POS printer', () => {
  it.each([
    ['58mm', 384, 94],
    ['58mm', 384, 142],
    ['58mm', 384, 220],
    ['58mm', 384, 280],
    ['80mm', 576, 142],
    ['80mm', 576, 280],
  ])('prints on %s of %i dots a code of %i characters that two decoders read', async (paper, dots, length) => {
    const { shownQr, open, slips } = await device(dots);
    const { show, display } = await open({ paper, qr: 'native' });
    const qrCode = payloadOf(length);
    await show({ ...PAYMENT, qrCode });
    const [slip] = slips;
    if (slip?.qr === undefined) throw new Error('no code');
    const printed = pictureOf(slip.qr, 4);
    if (printed === undefined) throw new Error('a code of too much text');
    expectDecodes(printed, qrCode);
    const renderer = await openRenderer(display.surface, { cacheDir: '/nowhere' });
    const qrCheck = renderer.checkQr(qrCode);
    if (!qrCheck.ok) throw new Error(qrCheck.reason);
    expect(slip.qr.moduleDots).toBe(qrCheck.modulePixels);
    expect(slip.qr.moduleDots).toBeGreaterThanOrEqual(4);
    expect(shownQr()).toBe(qrCode);
  });

  it.each([
    ['GS v 0 at 9600', { paper: '58mm', baudRate: 9_600 }, 384, 142],
    ['GS v 0 at 9600, a long one', { paper: '58mm', baudRate: 9_600 }, 384, 280],
    ['GS v 0 at 115200', { paper: '58mm', baudRate: 115_200 }, 384, 142],
    ['GS v 0 on wide paper', { paper: '80mm', qr: 'raster', baudRate: 115_200 }, 576, 220],
    ['GS v 0 on other paper', { paper: '58mm', dots: 360, baudRate: 19_200 }, 360, 142],
    ['ESC * at 9600', { paper: '58mm', raster: 'esc-star', baudRate: 9_600 }, 384, 142],
    ['ESC * at 115200', { paper: '80mm', qr: 'raster', raster: 'esc-star', baudRate: 115_200 }, 576, 220],
  ])('prints a picture of the code where a printer makes none: %s', async (_what, options, dots, length) => {
    const { panel, cable, shownQr, open, slips } = await device(dots);
    panel.makesQr = false;
    const { show } = await open(options);
    const qrCode = payloadOf(length);
    cable.written();
    await show({ ...PAYMENT, qrCode });
    expect(cable.written().length * 10).toBeLessThan(options.baudRate * 3.5);
    const picture = panel.code();
    if (picture === undefined) throw new Error('no picture');
    expectDecodes(picture, qrCode);
    expect(shownQr()).toBe(qrCode);
    expect(slips.map(({ qr }) => qr)).toEqual([undefined]);
    expect(slips[0]?.lines.map(({ text }) => text)).toContain('NGUYEN VAN A');
  });

  it.each([
    ['auto', '58mm', 'print', false],
    ['auto', '80mm', 'print', true],
    ['auto', '58mm', 'show', true],
    ['native', '58mm', 'print', true],
    ['raster', '80mm', 'print', false],
  ])('with qr: %s on %s to %s lets the device make the code: %s', async (qr, paper, mode, isNative) => {
    const { panel, open } = await device();
    const { show } = await open({ qr, paper, mode });
    await show(PAYMENT);
    expect(panel.last()?.qr !== undefined).toBe(isNative);
    expect(panel.last()?.dots === undefined).toBe(isNative);
  });

  it('an ESC/POS printer is right after a picture that was cut off in the middle', async () => {
    const { panel, open, slips } = await device(384);
    for (const half of ['1d7630032000400001', '1b2a2180010102', '1d7630']) {
      panel.receive(Buffer.from(half, 'hex'));
      const { show, display } = await open({ paper: '58mm' });
      await show({ ...PAYMENT, pushId: half });
      expect(slips.at(-1)?.dots, half).toBeDefined();
      await display.close();
    }
    panel.violations.length = 0;
  });

  it('an ESC/POS printer prints the amount large and whole, the content, and who is paid', async () => {
    const { open, slips } = await device(384);
    const { show } = await open({ paper: '58mm' });
    await show({ ...PAYMENT, content: 'Thanh toán đơn hàng số 1234 tại cửa hàng Phở Gia Truyền' });
    expect(slips.map(({ lines }) => lines.map(({ text }) => text))).toEqual([
      [
        'Quet ma de thanh toan',
        '50.000 d',
        'Thanh toan don hang so 1234 tai',
        'cua hang Pho Gia Truyen',
        '',
        'NGUYEN VAN A',
        'MB - 0123456789',
      ],
    ]);
    expect(slips[0]?.lines[1]).toEqual({ text: '50.000 d', double: true, centred: true });
    await show({ ...PAYMENT, pushId: 'another', amount: 9_999_999_999_999 });
    expect(slips[1]?.lines[1]).toEqual({ text: '9.999.999.999.999 d', double: false, centred: true });
  });

  it('an ESC/POS printer prints one slip a push and one receipt a payment, however often it draws or is opened', async () => {
    const { open, slips } = await device();
    const first = await open();
    await first.show(idle);
    await first.show(PAYMENT);
    for (const secondsLeft of [200, 100, 0]) await first.show({ ...PAYMENT, secondsLeft, online: false });
    expect(slips.length).toBe(1);
    await first.display.close();
    const second = await open();
    await second.show(PAYMENT);
    expect(slips.length).toBe(1);
    await second.show(paid);
    await second.show({ ...paid, online: false } as typeof paid);
    await second.display.close();
    const third = await open();
    await third.show(paid);
    await third.show(history);
    await third.show(tooDense);
    await third.show(paid);
    await third.show(idle);
    expect(slips.map(({ lines }) => lines[0]?.text)).toEqual(['Quet ma de thanh toan', 'Da nhan']);
    await third.show({ ...paid, transactionId: 'the same again from another payer' } as typeof paid);
    await third.show({ ...PAYMENT, pushId: 'another' });
    await third.show(expired);
    await third.show(PAYMENT);
    expect(slips.length).toBe(5);
  });

  it('AGT-17 an ESC/POS printer prints a repeated payment as a copy, with its time, once for each time it is asked', async () => {
    const { open, slips } = await device();
    const { show } = await open();
    const again = scene('repeat');
    await show(paid);
    await show(again);
    await show({ ...again, online: false } as typeof again);
    expect(slips.map(({ lines }) => lines[0]?.text)).toEqual(['Da nhan', 'BAN SAO - Nhac lai luc 09:05 02/01']);
    const texts = slips[1]?.lines.map(({ text }) => text);
    expect(texts).toEqual(expect.arrayContaining(['50.000 d', 'Da nhan truoc do, khong phai giao dich moi']));
    await show(idle);
    await show(again);
    await show(paid);
    expect(slips.map(({ lines }) => lines[0]?.text.slice(0, 7))).toEqual(['Da nhan', 'BAN SAO', 'BAN SAO']);
  });

  it('an ESC/POS printer prints without its record, and when the record is no record', async () => {
    const { open, slips, cacheDir } = await device();
    const { show, display } = await open();
    await show(PAYMENT);
    await display.close();
    const [file = ''] = await readdir(cacheDir);
    await writeFile(join(cacheDir, file), '{"pushId":7');
    const again = await open();
    await again.show(PAYMENT);
    expect(slips.length).toBe(2);
    await rm(cacheDir, { recursive: true });
    await writeFile(cacheDir, '');
    await again.show({ ...PAYMENT, pushId: 'another' });
    expect(slips.length).toBe(3);
  });

  it('an ESC/POS printer feeds where there is no knife', async () => {
    const { cable, open, slips } = await device();
    const { show } = await open({ cut: false });
    await show(PAYMENT);
    expect(slips.length).toBe(1);
    expect(cable.written().includes(Buffer.from([0x1d, 0x56]))).toBe(false);
  });

  it('an ESC/POS printer accepts any scene without a violation', async () => {
    const { panel, open } = await device(384);
    const { show } = await open({ paper: '58mm', charsMax: 300 });
    await fc.assert(
      fc.asyncProperty(anyScene, async (scene) => {
        await show(scene);
        expect(panel.violations).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('an ESC/POS printer names missing paper, when it is opened and before a slip, and prints once there is some', async () => {
    const { panel, open, slips } = await device();
    panel.paper = false;
    await expect(open()).rejects.toMatchObject({ ...named, message: expect.stringContaining('has no paper') });
    panel.paper = true;
    const { show, display } = await open();
    panel.paper = false;
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('has no paper') });
    await display.close();
    expect(slips.length).toBe(0);
    panel.paper = true;
    const again = await open();
    await again.show(PAYMENT);
    expect(slips.length).toBe(1);
  });

  it('an ESC/POS printer that does not answer is named; one that cannot is used with checkPaper: false', async () => {
    const { panel, open, slips } = await device();
    panel.silent = true;
    await expect(open()).rejects.toMatchObject({
      ...named,
      message: expect.stringContaining('does not answer'),
      fix: expect.stringContaining('checkPaper: false'),
    });
    const { show } = await open({ checkPaper: false });
    await show(PAYMENT);
    expect(slips.length).toBe(1);
  });

  it('an ESC/POS printer is right after another program that stopped in the middle of a code', async () => {
    const { panel, open, slips } = await device();
    for (const half of ['1d', '1d286b', '1d286bff00315030414243', '1b', '1b61', '10']) {
      panel.receive(Buffer.from(half, 'hex'));
      const { show, display } = await open();
      await show({ ...PAYMENT, pushId: half });
      expect(slips.at(-1)?.qr?.payload, half).toBe(PAYMENT.qrCode);
      await display.close();
    }
    // The halves themselves, completed by zeros.
    panel.violations.length = 0;
  });

  it('an ESC/POS printer prints again what an unplug cut off, once it is back', async () => {
    const { cable, open, slips } = await device();
    const { show, display } = await open({ checkPaper: false });
    cable.unplug();
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await expect(show(idle), 'a lost printer is named even where nothing is printed').rejects.toMatchObject(named);
    await display.close();
    cable.plug();
    const again = await open();
    await again.show(PAYMENT);
    expect(slips.length).toBe(1);
  });
});

describe('an ESC/POS customer display that draws a QR', () => {
  const screen = { mode: 'show', dots: 320 };

  it('an ESC/POS customer display shows every scene, draws the code again only when it is another, and leaves nothing behind', async () => {
    const { panel, cable, open } = await device(320);
    const { show, display } = await open(screen);
    for (const scene of Object.values(SCENES)) await show(scene);
    await show(PAYMENT);
    expect(panel.current.lines.map(({ text }) => text)).toContain('50.000 d');
    expect(panel.current.qr?.payload).toBe(PAYMENT.qrCode);
    cable.written();
    await show({ ...PAYMENT, secondsLeft: 3 });
    expect(cable.written()).toHaveLength(0);
    await show({ ...PAYMENT, online: false });
    expect(panel.shownTexts()).toContain('Mat ket noi');
    await display.close();
    expect(panel.current.lines).toEqual([]);
  });
});
