import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EscposEmulator, pictureOf } from '../../../src/bench/panels/escpos.ts';
import { DISPLAY_DRIVERS } from '../../../src/display/registry.ts';
import { openRenderer } from '../../../src/display/render.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { fc } from '../../support/properties.ts';
import { onPty } from '../emulators/hardware.ts';
import { openOneWay } from '../one-way.ts';
import { openOn, scene, wireOf } from '../opened.ts';
import { expectDecodes, expectGolden } from '../pictures.ts';
import { anyScene, PAYMENT, payloadOf, SCENES } from '../scenes.ts';

const { missing, note } = without(PROGRAMS.socat);
const driver = DISPLAY_DRIVERS.get('escpos');
const { idle, paid, expired, history } = SCENES;
if (idle === undefined || paid === undefined || expired === undefined || history === undefined)
  throw new Error('scenes');
const tooDense = scene('too dense');
const named = { code: 'DISPLAY_FAULT', severity: 'retryable', fix: expect.not.stringMatching(/^$/) };

/** A plugged device, and how to open it with a memory of its own. */
async function device(dots = 576) {
  const hardware = await onPty((send) => new EscposEmulator(send, dots));
  const cacheDir = await temporaryFolder();
  onTestFinished(async () => {
    await hardware.close();
    expect(hardware.violations()).toEqual([]);
  });
  const open = (options: object = {}) => openOneWay(driver, hardware, options, { cacheDir });
  return { hardware, cacheDir, open, slips: hardware.emulator.slips };
}

describe.skipIf(missing)(`an ESC/POS printer${note}`, () => {
  it('gets exactly these bytes', async () => {
    const { hardware, open } = await device();
    const { show } = await open();
    const steps = {
      idle: () => show(idle),
      payment: () => show(PAYMENT),
      'a second later': () => show({ ...PAYMENT, secondsLeft: 1 }),
      paid: () => show(paid),
      'idle again': () => show(idle),
    };
    await expectGolden('escpos-print-wire', await wireOf(hardware, steps));
  });

  it.each([
    ['58mm', 384, 94],
    ['58mm', 384, 142],
    ['58mm', 384, 220],
    ['58mm', 384, 280],
    ['80mm', 576, 142],
    ['80mm', 576, 280],
  ])('prints on %s of %i dots a code of %i characters that two decoders read', async (paper, dots, length) => {
    const { hardware, open, slips } = await device(dots);
    const { show, display } = await open({ paper });
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
    expect(hardware.shownQr()).toBe(qrCode);
  });

  it('prints the amount large and whole, the content, and who is paid', async () => {
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

  it('prints one slip a push and one receipt a payment, however often it draws or is opened', async () => {
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

  it('prints without its record, and when the record is no record', async () => {
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

  it('feeds where there is no knife', async () => {
    const { hardware, open, slips } = await device();
    const { show } = await open({ cut: false });
    await show(PAYMENT);
    expect(slips.length).toBe(1);
    expect(Buffer.from(hardware.received()).includes(Buffer.from([0x1d, 0x56]))).toBe(false);
  });

  it('takes any scene without a violation', async () => {
    const { hardware, open } = await device(384);
    const { show } = await open({ paper: '58mm', charsMax: 300 });
    await fc.assert(
      fc.asyncProperty(anyScene, async (scene) => {
        await show(scene);
        expect(hardware.violations()).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('names missing paper, when it is opened and before a slip, and prints once there is some', async () => {
    const { hardware, open, slips } = await device();
    hardware.emulator.paper = false;
    await expect(open()).rejects.toMatchObject({ ...named, message: expect.stringContaining('has no paper') });
    hardware.emulator.paper = true;
    const { show, display } = await open();
    hardware.emulator.paper = false;
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('has no paper') });
    await display.close();
    expect(slips.length).toBe(0);
    hardware.emulator.paper = true;
    const again = await open();
    await again.show(PAYMENT);
    expect(slips.length).toBe(1);
  });

  it('names a printer that does not answer; one that cannot is used with checkPaper: false', async () => {
    const { hardware, open, slips } = await device();
    hardware.emulator.silent = true;
    await expect(open()).rejects.toMatchObject({
      ...named,
      message: expect.stringContaining('does not answer'),
      fix: expect.stringContaining('checkPaper: false'),
    });
    const { show } = await open({ checkPaper: false });
    await show(PAYMENT);
    expect(slips.length).toBe(1);
  });

  it('is right after another program that stopped in the middle of a code', async () => {
    const { hardware, open, slips } = await device();
    for (const half of ['1d', '1d286b', '1d286bff00315030414243', '1b', '1b61', '10']) {
      hardware.emulator.receive(Buffer.from(half, 'hex'));
      const { show, display } = await open();
      await show({ ...PAYMENT, pushId: half });
      expect(slips.at(-1)?.qr?.payload, half).toBe(PAYMENT.qrCode);
      await display.close();
    }
    // The halves themselves, completed by zeros.
    hardware.emulator.violations.length = 0;
  });

  it('prints again what an unplug cut off, once it is back', async () => {
    const { hardware, open, cacheDir, slips } = await device();
    const { show, display } = await openOn(driver, hardware, { checkPaper: false }, { cacheDir });
    hardware.pty.freeze();
    await hardware.unplug();
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await expect(show(idle), 'a lost printer is named even where nothing is printed').rejects.toMatchObject(named);
    await display.close();
    await hardware.plug();
    const again = await open();
    await again.show(PAYMENT);
    expect(slips.length).toBe(1);
  });

  it('asks for a drawing when it is unplugged while idle, and names a port that is not there', async () => {
    const { hardware, open } = await device();
    const { asked } = await open();
    await hardware.unplug();
    await eventually('the driver asks for a drawing', () => asked() === 1);
    await expect(open()).rejects.toMatchObject(named);
  });

  it.each([
    [{ mode: 'draw' }, 'mode'],
    [{ paper: '57mm' }, 'paper'],
    [{ dots: 64 }, 'dots'],
    [{ moduleDotsMax: 17 }, 'moduleDotsMax'],
    [{ charsMax: 3_000 }, 'charsMax'],
  ])('refuses %j by the path', (options, path) => {
    const parsed = driver?.options.safeParse({ path: '/dev/ttyUSB0', ...options });
    expect(parsed?.error?.issues[0]?.path).toEqual([path]);
  });
});

describe.skipIf(missing)(`an ESC/POS customer display that draws a QR${note}`, () => {
  const screen = { mode: 'show', dots: 320 };

  it('gets exactly these bytes', async () => {
    const { hardware, open } = await device(320);
    const { show, display } = await open(screen);
    const steps = {
      idle: () => show(idle),
      payment: () => show(PAYMENT),
      'a second later': () => show({ ...PAYMENT, secondsLeft: 1 }),
      paid: () => show(paid),
      closing: () => display.close(),
    };
    await expectGolden('escpos-show-wire', await wireOf(hardware, steps));
  });

  it('shows every scene, draws the code again only when it is another, and leaves nothing behind', async () => {
    const { hardware, open } = await device(320);
    const { show, display } = await open(screen);
    for (const scene of Object.values(SCENES)) await show(scene);
    await show(PAYMENT);
    expect(hardware.emulator.current.lines.map(({ text }) => text)).toContain('50.000 d');
    expect(hardware.emulator.current.qr?.payload).toBe(PAYMENT.qrCode);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: 3 });
    expect(hardware.received().length).toBe(0);
    await show({ ...PAYMENT, online: false });
    expect(hardware.shownTexts()).toContain('Mat ket noi');
    await display.close();
    expect(hardware.emulator.current.lines).toEqual([]);
  });
});
