import { describe, expect, it } from 'vitest';
import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { cabled } from '../opened.ts';
import { PAYMENT } from '../scenes.ts';
import { idle, ROWS } from './asking-panels-fixture.ts';

describe.each(ROWS)('the panel $title', ({ name, make, options }) => {
  it('a panel that stops to answer is named, is spent, can be closed, and works when opened again', async () => {
    const { panel, open, shownQr } = cabled(name, make);
    const { show, display } = await open(options);
    await show(idle);
    panel.silent = true;
    const named = { code: 'DISPLAY_FAULT', message: expect.stringContaining('did not answer') };
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await display.close();
    await display.close();
    panel.silent = false;
    const again = await open(options);
    await again.show(PAYMENT);
    expect(shownQr()).toBe(PAYMENT.qrCode);
    panel.silent = true;
    await again.display.close();
  });
});

describe('panels that are not as configured', () => {
  it.each([
    ['nextion', { baudRate: 57_600 }, 'does not answer at 57600 baud', 'TX and RX'],
    ['dwin', { crc: false, baudRate: 9_600 }, 'does not answer at 9600 baud without CRC', 'CFG'],
  ])(
    '%s with %j is named when it never answers, and works once that is put right',
    async (name, options, message, fix) => {
      const { panel, open, shownQr } = cabled(name, (send) =>
        name === 'dwin' ? new DwinEmulator(send, { ...PROJECT, crc: true }) : new NextionEmulator(send),
      );
      if (panel instanceof NextionEmulator) panel.silent = true;
      await expect(open(options)).rejects.toMatchObject({
        code: 'DISPLAY_FAULT',
        severity: 'retryable',
        message: expect.stringContaining(message),
        fix: expect.stringContaining(fix),
      });
      panel.silent = false;
      const { show } = await open(name === 'dwin' ? { crc: true } : {});
      await show(PAYMENT);
      expect(shownQr()).toBe(PAYMENT.qrCode);
    },
  );
});
