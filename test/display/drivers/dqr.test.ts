import { describe, expect, it } from 'vitest';
import { DqrEmulator } from '../../../src/bench/panels/dqr.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { cabled, scene } from '../opened.ts';
import { DUE, MARKED, PAYMENT, payloadOf } from '../scenes.ts';

const idle = scene('idle');
const NOON_MS = Date.UTC(2026, 0, 2, 5);

async function box(options: object = {}, clock = systemClock) {
  const { panel, cable, open, shownQr } = cabled('dqr', () => new DqrEmulator());
  const { show } = await open(options, { clock });
  return { panel, cable, show, shownQr };
}

describe('a DQR box', () => {
  it.each([9_600, 115_200])('a DQR box shows a payment at %d baud', async (baudRate) => {
    const { panel, show, shownQr } = await box({ baudRate, id: 'Quay 1' }, { ...systemClock, wallMs: () => NOON_MS });
    await show(PAYMENT);
    expect([panel.screen, panel.shownTexts()]).toEqual(['DisplayQRCodeScreen', ['50000', 'Quay 1']]);
    expect(shownQr()).toBe(PAYMENT.qrCode);
    await show(scene('paid'));
    const paid = ['t1', `50.000 d ${PAYMENT.content}`, '12:00 02/01'];
    expect([panel.screen, panel.shownTexts()]).toEqual(['DisplaySuccessQRCodeScreen', paid]);
    await show(idle);
    expect([panel.screen, panel.shownTexts()]).toEqual(['WelcomeScreen', ['Quay 1']]);
  });

  it('AGT-17 a DQR box shows a repeated payment by words, never by its screen of success', async () => {
    const { panel, show } = await box({ id: 'Quay 1' });
    await show(scene('repeat'));
    expect([panel.screen, panel.shownTexts()]).toEqual(['WelcomeScreen', ['Nhac lai luc 09:05 02/01 50.000 d']]);
  });

  it('a DQR box needs at most 200 bytes more than the payload, and nothing for a second', async () => {
    const { cable, show } = await box();
    await show(idle);
    cable.written();
    await show(PAYMENT);
    expect(cable.written().length).toBeLessThanOrEqual(PAYMENT.qrCode.length + 200);
    await show({ ...PAYMENT, secondsLeft: 9 });
    expect(cable.written().length).toBe(0);
    await show(idle);
    expect(cable.written().length).toBe('WelcomeScreen**MB - 0123456789\n'.length);
  });

  it('a DQR box reads no text as the end of a field or of the line', async () => {
    const { panel, show } = await box();
    const paid: Scene = { kind: 'paid', transactionId: 't1', online: true, amount: 1, holder: null, content: '' };
    await show({ ...paid, content: '**Bàn** 1***2\nWelcomeScreen**x*' });
    expect(panel.screen).toBe('DisplaySuccessQRCodeScreen');
    expect(panel.shownTexts()[1]).toBe('1 d *Ban* 1*2 WelcomeScreen*x');
    await show({ kind: 'cancelled', online: true, amount: 1, content: '**' });
    expect(panel.screen).toBe('DisplayCancelQRCodeScreen');
    expect(panel.shownTexts().slice(0, 2)).toEqual(['-', '1 d']);
  });

  it('AGT-15 AGT-5 a DQR box names a sandbox on every screen, and what an amount lacks', async () => {
    const { cable, show } = await box();
    for (const scene of Object.values(MARKED)) {
      await show(scene);
      expect(new TextDecoder().decode(cable.written()), scene.kind).toMatch(/^$|SANDBOX/);
    }
    await show(DUE['paid, something missing'] ?? idle);
    expect(new TextDecoder().decode(cable.written())).toContain('30.000 d Con thieu 20.000 d Thanh toan');
  });

  it.each(['12**34', '*1234', '1234*', '12\n34', '12é34'])('refuses the payload %j by name', async (part) => {
    const { cable, show } = await box();
    const whole = part.startsWith('*') ? `${part}${payloadOf(60)}` : `${payloadOf(60)}${part}`;
    await expect(show({ ...PAYMENT, qrCode: whole })).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining('cannot be sent to a DQR box'),
    });
    expect(cable.written().length).toBe(0);
  });

  it.each([
    ['has no room', { qrSidePixels: 30 }, PAYMENT],
    ['is too dense', {}, scene('too dense')],
  ])('shows amount and content where the QR %s', async (_, options, shown) => {
    const { panel, show } = await box(options);
    await show(shown);
    expect([panel.screen, panel.shownTexts()]).toEqual(['WelcomeScreen', [`50.000 d ${PAYMENT.content}`]]);
  });

  it('a DQR box keeps the time of a result, whatever is drawn again', async () => {
    let wallMs = NOON_MS;
    const { cable, panel, show } = await box({}, { ...systemClock, wallMs: () => wallMs });
    await show(scene('paid'));
    cable.written();
    wallMs += 60_000;
    await show(scene('paid'));
    expect(panel.shownTexts()[2]).toBe('12:00 02/01');
    expect(cable.written().length).toBe(0);
  });
});
