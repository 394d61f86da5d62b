import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { DRAW_TIMEOUT_MS, PATIENCE_MS } from '../../../src/device/display/drivers/panel.ts';
import { ANSWER_TIMEOUT_MS } from '../../../src/device/display/io/answers.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { settled } from '../../fuzz/virtual.ts';
import { eventually } from '../../support/net.ts';
import { cabled, scene } from '../opened.ts';
import { PAYMENT } from '../scenes.ts';
import { idle, ROWS } from './asking-panels-fixture.ts';

const touches = (emulator: NextionEmulator | DwinEmulator) => {
  if (emulator instanceof DwinEmulator) {
    for (const key of [1, 2]) emulator.touch(0x5000, key);
  } else {
    for (const event of [0x01, 0x00, 0x01]) emulator.say(0x65, 0x00, 0x01, event);
    emulator.say(0x86);
  }
};

describe.each(ROWS)('the panel $title', ({ name, make, options, bytesMax, checkBytes, told }) => {
  it('a panel shows the texts of a payment and its QR, until another screen comes', async () => {
    const { panel, open, shownQr } = cabled(name, make);
    const { show } = await open(options);
    await show(PAYMENT);
    expect(shownQr()).toBe(PAYMENT.qrCode);
    const people = ['NGUYEN VAN A', 'MB • 0123456789'];
    const payment = ['Quét mã để thanh toán', '50.000 ₫', PAYMENT.content, ...people, 'Còn lại 4:32', '', ''];
    expect(panel.shownTexts()).toEqual(payment);
    await show(scene('paid'));
    expect(shownQr()).toBeUndefined();
    expect(panel.shownTexts()[0]).toBe('Đã nhận');
  });

  it('a panel needs few bytes more than the payload from idle to payment, and a handful for a second', async () => {
    const { cable, open } = cabled(name, make);
    const { show } = await open(options);
    await show(idle);
    cable.written();
    await show(PAYMENT);
    expect(cable.written().length).toBeLessThanOrEqual(PAYMENT.qrCode.length + bytesMax);
    cable.written();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(cable.written().length).toBeLessThan(62);
    cable.written();
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(cable.written().length).toBe(checkBytes);
  });

  it('a panel ignores touches, and logs each once', async () => {
    const { panel, open, shownQr } = cabled(name, make);
    const lines: string[] = [];
    const out = new PassThrough().on('data', (line) => lines.push(String(line)));
    const { show } = await open(options, { log: createLogger(out, systemClock, 'json') });
    touches(panel);
    await show(PAYMENT);
    expect(shownQr()).toBe(PAYMENT.qrCode);
    await eventually('all are told', () => lines.length >= told.length);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(told);
  });

  it('a panel that is cut off in the middle of a drawing is named', async () => {
    const { panel, cable, open } = cabled(name, make);
    const { show } = await open(options);
    panel.silent = true;
    cable.written();
    const draw = expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('is lost') });
    await eventually('the draw has begun', () => cable.written().length > 0);
    cable.unplug();
    await draw;
  });
});

describe('panels that are not as configured', () => {
  it.each([
    ['nextion', {}, 'set encoding: utf-8'],
    ['dwin', { texts: PROJECT.texts.map((text) => ({ ...text, unicode: false })) }, 'set encoding: unicode'],
  ])('%s without Vietnamese letters is sent ASCII only', async (name, project, fix) => {
    const { panel, open } = cabled(name, (send) =>
      name === 'dwin' ? new DwinEmulator(send, { ...PROJECT, ...project }) : new NextionEmulator(send),
    );
    const { show, display } = await open({ encoding: 'ascii' });
    expect(display.surface).toMatchObject({ kind: 'panel', accents: false });
    await show({ ...PAYMENT, content: 'Cà phê sữa đá' });
    expect(panel.shownTexts().slice(0, 3)).toEqual(['Quet ma de thanh toan', '50.000 d', 'Ca phe sua da']);
    const named = { message: expect.stringContaining('cannot take'), fix };
    await expect(show({ ...PAYMENT, qrCode: `${PAYMENT.qrCode}é` })).rejects.toMatchObject(named);
  });
});

const SLOW_BAUD_RATE = 4_800;
const BITS_A_BYTE = 10;
/** More than questions take on the wire. */
const SLACK_MS = 50;

/** A payment drawn, in a time of its own, on a panel that takes `answerMs` for an answer of so many bytes. */
async function drawnSlowly(name: 'nextion' | 'dwin', baudRate: number, answerMs: (bytes: number) => number) {
  const clock = new VirtualClock();
  const { cable, open, shownQr } = cabled(name, (send) => {
    const later = (bytes: Uint8Array) => clock.after(answerMs(bytes.length), () => send(bytes));
    return name === 'dwin' ? new DwinEmulator(later) : new NextionEmulator(later);
  });
  const opened = await settled(clock, open({ baudRate }, { clock }));
  if (opened.status === 'rejected') throw opened.reason;
  onTestFinished(async () => {
    await settled(clock, opened.value.display.close());
  });
  cable.written();
  const beganMs = clock.monotonicMs();
  const outcome = await settled(clock, opened.value.show(PAYMENT));
  return { outcome, tookMs: clock.monotonicMs() - beganMs, written: cable.written(), shownQr };
}

describe.each(['nextion', 'dwin'] as const)('the time of a %s panel', (name) => {
  it('the time of a drawing is limited as a whole, however soon each answer comes', async () => {
    const { outcome, tookMs } = await drawnSlowly(name, 115_200, () => ANSWER_TIMEOUT_MS - 100);
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'DISPLAY_FAULT' } });
    expect(tookMs).toBeLessThan(DRAW_TIMEOUT_MS + SLACK_MS);
  });

  it('the time of a drawing includes that of a long answer on a slow wire, so that nothing is asked twice', async () => {
    const wireMs = (bytes: number) => Math.floor((bytes * BITS_A_BYTE * 1_000) / SLOW_BAUD_RATE);
    const { outcome, written, shownQr } = await drawnSlowly(name, SLOW_BAUD_RATE, (bytes) =>
      bytes < PAYMENT.qrCode.length ? 0 : PATIENCE_MS / 2 + wireMs(bytes),
    );
    expect(outcome).toMatchObject({ status: 'fulfilled' });
    expect(shownQr()).toBe(PAYMENT.qrCode);
    const atOnce = await drawnSlowly(name, SLOW_BAUD_RATE, () => 0);
    expect(written.toString('hex')).toBe(atOnce.written.toString('hex'));
  });
});
