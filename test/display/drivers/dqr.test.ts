import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { loadAgentConfig } from '../../../src/agent/config.ts';
import { DqrEmulator } from '../../../src/bench/panels/dqr.ts';
import { DISPLAY_DRIVERS } from '../../../src/display/registry.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { onPty } from '../emulators/hardware.ts';
import { openOn, scene, wireOf } from '../opened.ts';
import { expectGolden } from '../pictures.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';

const { missing, note } = without(PROGRAMS.socat);
const driver = DISPLAY_DRIVERS.get('dqr');
const idle = scene('idle');
const AT_NOON: Clock = { ...systemClock, wallMs: () => Date.UTC(2026, 0, 2, 5) };

async function box() {
  const hardware = await onPty(() => new DqrEmulator());
  onTestFinished(async () => {
    await hardware.close();
    expect(hardware.violations()).toEqual([]);
  });
  /** The box answers nothing: what was sent has arrived once its screen says so. */
  const showing = (screen: string) => eventually(screen, () => hardware.emulator.screen === screen);
  return { ...hardware, showing };
}

describe.skipIf(missing)(`a DQR box${note}`, () => {
  it('gets exactly these bytes', async () => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware, {}, { clock: AT_NOON });
    const names = [
      'starting',
      'unlinked',
      'idle',
      'payment',
      'payment, everything long',
      'paid',
      'expired',
      'too dense',
      'cancelled',
      'fault',
    ];
    const all = names.map((name) => {
      const step = async () => {
        await show(scene(name));
        await eventually('its line', () => hardware.received().at(-1) === 0x0a);
      };
      return [name, step] as const;
    });
    await expectGolden('dqr-wire', await wireOf(hardware, Object.fromEntries(all)));
  });

  it.each([9_600, 115_200])('shows a payment at %d baud', async (baudRate) => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware, { baudRate, id: 'Quay 1' }, { clock: AT_NOON });
    await show(PAYMENT);
    await hardware.showing('DisplayQRCodeScreen');
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
    expect(hardware.shownTexts()).toEqual(['50000', 'Quay 1']);
    await show(scene('paid'));
    await hardware.showing('DisplaySuccessQRCodeScreen');
    expect(hardware.shownTexts()).toEqual(['t1', `50.000 d ${PAYMENT.content}`, '12:00 02/01']);
    await show(idle);
    await hardware.showing('WelcomeScreen');
    expect(hardware.shownTexts()).toEqual(['Quay 1']);
  });

  it('takes at most 200 bytes more than the payload, and nothing for a second', async () => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware);
    await show(idle);
    await hardware.showing('WelcomeScreen');
    hardware.forget();
    await show(PAYMENT);
    await hardware.showing('DisplayQRCodeScreen');
    const { length } = hardware.received();
    expect(length).toBeLessThanOrEqual(PAYMENT.qrCode.length + 200);
    await show({ ...PAYMENT, secondsLeft: 9 });
    await show(idle);
    await hardware.showing('WelcomeScreen');
    expect(hardware.received().length - length).toBe('WelcomeScreen**MB - 0123456789\n'.length);
  });

  it('lets no text pass for the end of a field or of the line', async () => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware);
    await show({
      kind: 'paid',
      transactionId: 't1',
      online: true,
      amount: 1,
      holder: null,
      content: '**Bàn** 1***2\nWelcomeScreen**x*',
    });
    await hardware.showing('DisplaySuccessQRCodeScreen');
    expect(hardware.shownTexts()[1]).toBe('1 d *Ban* 1*2 WelcomeScreen*x');
    await show({ kind: 'cancelled', online: true, amount: 1, content: '**' });
    await hardware.showing('DisplayCancelQRCodeScreen');
    expect(hardware.shownTexts().slice(0, 2)).toEqual(['-', '1 d']);
  });

  it.each(['12**34', '*1234', '1234*', '12\n34', '12é34'])('refuses the payload %j by name', async (part) => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware);
    const whole = part.startsWith('*') ? `${part}${payloadOf(60)}` : `${payloadOf(60)}${part}`;
    await expect(show({ ...PAYMENT, qrCode: whole })).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('cannot be sent to a DQR box'),
    });
    expect(hardware.received().length).toBe(0);
  });

  it('shows amount and content where the QR has no room', async () => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware, { qrSidePixels: 30 });
    await show(PAYMENT);
    await hardware.showing('WelcomeScreen');
    expect(hardware.shownTexts()).toEqual([`50.000 d ${PAYMENT.content}`]);
  });

  it('keeps the time of a result, whatever is drawn again', async () => {
    const hardware = await box();
    let wallMs = Date.UTC(2026, 0, 2, 5);
    const clock = { ...systemClock, wallMs: () => wallMs };
    const { show } = await openOn(driver, hardware, {}, { clock });
    await show(scene('paid'));
    wallMs += 60_000;
    await show(scene('paid'));
    await show(idle);
    await hardware.showing('WelcomeScreen');
    expect(
      Buffer.from(hardware.received())
        .toString('latin1')
        .match(/Success/g),
    ).toHaveLength(1);
  });

  it('takes its QR away when it is closed', async () => {
    const hardware = await box();
    const { show, display } = await openOn(driver, hardware);
    await show(PAYMENT);
    await hardware.showing('DisplayQRCodeScreen');
    await display.close();
    await hardware.showing('WelcomeScreen');
    expect(hardware.shownQr()).toBeUndefined();
  });

  it('gives the amount and the content of a payment whose QR is too dense', async () => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware);
    await show(scene('too dense'));
    await hardware.showing('WelcomeScreen');
    expect(hardware.shownTexts()).toEqual([`50.000 d ${PAYMENT.content}`]);
  });

  it('notices an unplug while idle, and works once plugged in again', async () => {
    const hardware = await box();
    const { show, asked, display } = await openOn(driver, hardware);
    await show(idle);
    await hardware.unplug();
    await eventually('the driver asks for a drawing', () => asked() > 0);
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('is lost') });
    await display.close();
    await hardware.plug();
    const again = await openOn(driver, hardware);
    await again.show(PAYMENT);
    await hardware.showing('DisplayQRCodeScreen');
    expect(hardware.shownQr()).toBe(PAYMENT.qrCode);
  });

  it('names a box that takes nothing, within the time of a draw', async () => {
    const hardware = await box();
    const { show } = await openOn(driver, hardware);
    hardware.pty.freeze();
    const flood = async () => {
      for (let round = 0; ; round += 1) await show({ ...PAYMENT, qrCode: payloadOf(390), amount: 1 + (round % 2) });
    };
    await expect(flood()).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('did not take'),
    });
  });
});

describe('the options of a DQR box', () => {
  it('are all in device-config/dqr.yaml', async () => {
    const { displays } = await loadAgentConfig(`${import.meta.dirname}/../../../device-config/dqr.yaml`);
    const [{ driver: name, ...given } = { driver: '' }] = displays;
    expect(name).toBe('dqr');
    const known = z.toJSONSchema(driver?.options ?? z.never(), { io: 'input' }).properties ?? {};
    expect(Object.keys(given).toSorted()).toEqual(Object.keys(known).toSorted());
  });

  it.each([
    [{ baudRate: 19_200 }, 'baudRate'],
    [{ id: 'Quầy 1' }, 'id'],
    [{ id: 'a**b' }, 'id'],
    [{ id: 'a\nb' }, 'id'],
    [{ path: '' }, 'path'],
  ])('refuse %j by the path', (options, path) => {
    const parsed = driver?.options.safeParse({ path: '/dev/ttyUSB0', ...options });
    expect(parsed?.error?.issues.map((issue) => issue.path.join('.'))).toEqual([path]);
  });
});
