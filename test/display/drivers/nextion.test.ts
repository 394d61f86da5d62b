import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { loadAgentConfig } from '../../../src/agent/config.ts';
import { type HmiPage, NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { DISPLAY_DRIVERS } from '../../../src/display/registry.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { onPty } from '../emulators/hardware.ts';
import { openOn, scene, wireOf } from '../opened.ts';
import { expectGolden, glyphCache } from '../pictures.ts';
import { PAYMENT, payloadOf, SCENES } from '../scenes.ts';
import { onSwitch } from '../switched.ts';

const { missing, note } = without(PROGRAMS.socat);
const driver = DISPLAY_DRIVERS.get('nextion');
const idle = scene('idle');
const paid = scene('paid');
const starting = scene('starting');

async function panel(hmi?: readonly HmiPage[]) {
  const hardware = await onPty((send) => new NextionEmulator(send, hmi));
  onTestFinished(async () => {
    await hardware.close();
    expect(hardware.violations()).toEqual([]);
  });
  return hardware;
}

const texts = (...names: string[]) => Object.fromEntries(names.map((name) => [name, 100]));

describe.skipIf(missing)(`a Nextion panel${note}`, () => {
  it('gets exactly these bytes', async () => {
    const hardware = await panel();
    const opened = await openOn(driver, hardware);
    const { show } = opened;
    const wire = await wireOf(hardware, {
      starting: () => show(starting),
      idle: () => show(idle),
      payment: () => show(PAYMENT),
      'a second later': () => show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 }),
      'another payment': () => show({ ...PAYMENT, qrCode: payloadOf(220), amount: 1_180_000, secondsLeft: 300 }),
      paid: () => show(paid),
      'idle again': () => show(idle),
    });
    await expectGolden('nextion-wire', wire);
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

  it('shows a payment: its texts, and a QR that reads as the payload', async () => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware, { dim: 40 });
    expect(hardware.emulator.dim).toBe(40);
    await show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
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
  });

  it('takes at most 200 bytes more than the payload from idle to payment, and a handful for a second', async () => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware);
    await show(idle);
    hardware.forget();
    await show(PAYMENT);
    expect(hardware.received().length).toBeLessThanOrEqual(PAYMENT.qrCode.length + 200);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(hardware.received().length).toBeLessThan(60);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(hardware.received().length).toBe(0);
  });

  it('escapes quotes and backslashes, and keeps texts within txt_maxl', async () => {
    const hardware = await panel([
      { name: 'main', texts: { t0: 30, t2: 30, t5: 30 }, qr: { name: 'qr0', charsMax: 300 } },
    ]);
    const all = { amount: null, holder: null, account: null, hint: null, offline: null };
    const { show } = await openOn(driver, hardware, { texts: all, textBytesMax: 30 });
    await show({ ...PAYMENT, content: '"Phở" \\ 1/2" \\"' });
    expect(hardware.emulator.text('t2')).toBe('"Phở" \\ 1/2" \\"');
    await show({ ...PAYMENT, content: 'ế'.repeat(40) });
    expect(hardware.emulator.text('t2')).toBe(`${'ế'.repeat(9)}…`);
    const odd = payloadOf(100).replace('0002', '"\\"\\');
    await show({ ...PAYMENT, qrCode: odd });
    expect(hardware.shownQr()).toBe(odd);
  });

  it('sends ASCII only to an HMI file without Vietnamese letters', async () => {
    const hardware = await panel();
    const { show, display } = await openOn(driver, hardware, { encoding: 'ascii' });
    await show({ ...PAYMENT, content: 'Cà phê sữa đá' });
    expect(hardware.shownTexts().slice(0, 3)).toEqual(['Quet ma de thanh toan', '50.000 d', 'Ca phe sua da']);
    expect(hardware.received().every((byte) => byte < 0x80 || byte === 0xff)).toBe(true);
    expect(display.surface).toMatchObject({ kind: 'panel', accents: false });
    await expect(show({ ...PAYMENT, qrCode: `${PAYMENT.qrCode}é` })).rejects.toMatchObject({
      fix: 'set encoding: utf-8',
    });
  });

  it('loads the page of each screen, and needs the QR component only on that of the payment', async () => {
    const hardware = await panel([
      { name: 'home', texts: texts('t0', 't3', 't4'), qr: null },
      {
        name: 'pay',
        texts: texts('t0', 't1', 't2', 't3', 't4', 't5', 't6', 't7'),
        qr: { name: 'code', charsMax: 300 },
      },
    ]);
    const { show } = await openOn(driver, hardware, { pages: { payment: 'pay', paid: 1 }, qr: { component: 'code' } });
    await show(idle);
    expect(hardware.emulator.pageName).toBe('home');
    await show(PAYMENT);
    expect(hardware.emulator.pageName).toBe('pay');
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
    await show(idle);
    await show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });

  it.each([
    ['a QR component', { qr: { component: 'qr7' } }, 'the HMI file has no component qr7 on page 0 (0x02)', 'editor'],
    ['a text component', { texts: { amount: 'n0' } }, 'the HMI file has no component n0 on page 0 (0x1a)', 'editor'],
    ['a page', { pages: { payment: 4 } }, 'the HMI file has no page 4 (0x03)', 'pages'],
  ])('names %s that the HMI file lacks, and is spent', async (_, options, message, fix) => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware, options);
    const named = { code: 'DISPLAY_FAULT', severity: 'retryable', message, fix: expect.stringContaining(fix) };
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await expect(show(idle)).rejects.toMatchObject(named);
  });

  it.each([
    [0x00, 'does not know the command'],
    [0x1e, 'wrong number of parameters'],
    [0x24, 'buffer overflowed'],
  ])('names the error answer %d', async (code, words) => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware);
    hardware.emulator.refusal = { to: 'qr0.txt', code };
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining(words) });
  });

  it('names a panel that does not answer a command, within the time of a draw, and works when opened again', async () => {
    const hardware = await panel();
    const { show, display } = await openOn(driver, hardware);
    await show(idle);
    hardware.emulator.silent = true;
    await expect(show(PAYMENT)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('did not answer'),
    });
    await display.close();
    hardware.emulator.silent = false;
    const again = await openOn(driver, hardware);
    await again.show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });

  it('names a panel that never answers, with the rate it was asked at', async () => {
    const hardware = await panel();
    hardware.emulator.silent = true;
    await expect(openOn(driver, hardware, { baudRate: 57_600 })).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('does not answer at 57600 baud'),
      fix: expect.stringContaining('TX and RX'),
    });
  });

  it('finds a panel that gets its power while it is looked for', async () => {
    const hardware = await panel();
    hardware.emulator.silent = true;
    const opening = openOn(driver, hardware);
    await eventually('it is asked', () => hardware.received().length > 0);
    hardware.emulator.silent = false;
    hardware.emulator.restart();
    const { show } = await opening;
    await show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });

  it('asks to be opened again after the panel has restarted, since its screen is empty', async () => {
    const hardware = await panel();
    const { show, asked, display } = await openOn(driver, hardware);
    await show(PAYMENT);
    hardware.emulator.restart();
    await eventually('the driver asks for a drawing', () => asked() > 0);
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('has restarted') });
    await display.close();
    const again = await openOn(driver, hardware);
    await again.show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });

  it('lets touches and sleep pass, told once each', async () => {
    const hardware = await panel();
    const lines: string[] = [];
    const out = new PassThrough().on('data', (line) => lines.push(String(line)));
    const { show } = await openOn(driver, hardware, {}, { log: createLogger(out, systemClock, 'json') });
    for (const event of [0x01, 0x00, 0x01]) hardware.emulator.say(0x65, 0x00, 0x01, event);
    hardware.emulator.say(0x86);
    await show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
    await eventually('both are told', () => lines.length >= 2);
    expect(lines.map((line) => JSON.parse(line).code)).toEqual(['0x65', '0x86']);
  });

  it('notices an unplug while idle, and amid a draw, and works once plugged in again', async () => {
    const hardware = await panel();
    const idling = await openOn(driver, hardware);
    await idling.show(idle);
    await hardware.unplug();
    await eventually('the driver asks for a drawing', () => idling.asked() > 0);
    await expect(idling.show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('is lost') });
    await hardware.plug();
    const drawing = await openOn(driver, hardware);
    hardware.emulator.silent = true;
    hardware.forget();
    const draw = expect(drawing.show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('is lost') });
    await eventually('the draw has begun', () => hardware.received().length > 0);
    await hardware.unplug();
    await draw;
    hardware.emulator.silent = false;
    await hardware.plug();
    const again = await openOn(driver, hardware);
    await again.show(PAYMENT);
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });

  it('hides the old code before the texts of another payment come', async () => {
    const hardware = await panel();
    const { show } = await openOn(driver, hardware);
    await show(PAYMENT);
    hardware.emulator.refusal = { to: 't1.txt', code: 0x1b };
    await expect(show({ ...PAYMENT, qrCode: payloadOf(120), amount: 70_000 })).rejects.toThrow('t1.txt');
    expect(hardware.shownQr()).toBeUndefined();
  });
});

describe('a Nextion panel at rest', () => {
  const source = glyphCache();
  const home: HmiPage = { name: 'home', texts: texts('t0', 't3', 't4'), qr: null };
  const pay: HmiPage = {
    name: 'pay',
    texts: texts('t0', 't1', 't2', 't3', 't4', 't5', 't6', 't7'),
    qr: { name: 'qr0', charsMax: 300 },
  };

  it('gets its page back, and the QR, after a touch has led to another one', async () => {
    const options = { pages: { payment: 'pay' } };
    const on = await onSwitch('nextion', (send) => new NextionEmulator(send, [home, pay]), PAYMENT, {
      ...source,
      options,
    });
    on.panel.emulator.turnTo('home');
    expect(await on.qr()).toBeUndefined();
    await on.within(20_000, 'the QR', async () => (await on.qr()) === PAYMENT.qrCode);
    expect(on.panel.violations).toEqual([]);
  });

  it('is well where its components are shorter than their configuration says', async () => {
    const short: HmiPage = { name: 'short', texts: { t0: 6, t3: 6, t4: 6 }, qr: null };
    const options = { encoding: 'ascii', qr: null };
    const on = await onSwitch('nextion', (send) => new NextionEmulator(send, [short]), idle, { ...source, options });
    expect(on.panel.emulator.text('t3')).toBe('NGUYEN');
    await on.pass(60_000);
    expect(on.outcomes).toHaveLength(1);
  });
});

describe('the options of a Nextion panel', () => {
  it('are all in device-config/nextion.yaml', async () => {
    const { displays } = await loadAgentConfig(`${import.meta.dirname}/../../../device-config/nextion.yaml`);
    const [{ driver: name, ...given } = { driver: '' }] = displays;
    expect(name).toBe('nextion');
    const known = z.toJSONSchema(driver?.options ?? z.never(), { io: 'input' }).properties ?? {};
    expect(Object.keys(given).toSorted()).toEqual(Object.keys(known).toSorted());
    expect(new Set(Object.keys(Object(given.pages)))).toEqual(new Set(Object.values(SCENES).map((it) => it.kind)));
  });

  it.each([
    [{ baudRate: 9_601 }, 'baudRate'],
    [{ dim: 101 }, 'dim'],
    [{ texts: { title: 't0.txt' } }, 'texts.title'],
    [{ pages: { paying: 1 } }, 'pages'],
    [{ qr: { charsMax: 5_000 } }, 'qr.charsMax'],
    [{ encoding: 'gbk' }, 'encoding'],
  ])('refuse %j by the path', (options, path) => {
    const parsed = driver?.options.safeParse({ path: '/dev/ttyUSB0', ...options });
    expect(parsed?.error?.issues.map((issue) => issue.path.join('.'))).toEqual([path]);
  });
});
