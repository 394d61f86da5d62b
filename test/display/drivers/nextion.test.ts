import { describe, expect, it } from 'vitest';
import { type HmiPage, NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { eventually } from '../../support/net.ts';
import { cabled, scene } from '../opened.ts';
import { glyphCache } from '../pictures.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';
import { onSwitch } from '../switched.ts';

const idle = scene('idle');

const device = (hmi?: readonly HmiPage[]) => cabled('nextion', (send) => new NextionEmulator(send, hmi));
const texts = (...names: string[]) => Object.fromEntries(names.map((name) => [name, 100]));

describe('a Nextion panel', () => {
  it('a Nextion panel gets quotes and backslashes escaped, and texts within txt_maxl', async () => {
    const { panel, open, shownQr } = device([
      { name: 'main', texts: { t0: 30, t2: 30, t5: 30 }, qr: { name: 'qr0', charsMax: 300 } },
    ]);
    const all = { amount: null, holder: null, account: null, hint: null, offline: null };
    const { show } = await open({ texts: all, textBytesMax: 30 });
    await show({ ...PAYMENT, content: '"Phở" \\ 1/2" \\"' });
    expect(panel.text('t2')).toBe('"Phở" \\ 1/2" \\"');
    await show({ ...PAYMENT, content: 'ế'.repeat(40) });
    expect(panel.text('t2')).toBe(`${'ế'.repeat(9)}…`);
    const odd = payloadOf(100).replace('0002', '"\\"\\');
    await show({ ...PAYMENT, qrCode: odd });
    expect(shownQr()).toBe(odd);
  });

  it('a Nextion panel loads the page of each screen, and needs the QR component only on that of the payment', async () => {
    const { panel, open, shownQr } = device([
      { name: 'home', texts: texts('t0', 't3', 't4'), qr: null },
      {
        name: 'pay',
        texts: texts('t0', 't1', 't2', 't3', 't4', 't5', 't6', 't7'),
        qr: { name: 'code', charsMax: 300 },
      },
    ]);
    const { show } = await open({
      pages: { payment: 'pay', paid: 1 },
      qr: { component: 'code' },
    });
    await show(idle);
    expect(panel.pageName).toBe('home');
    await show(PAYMENT);
    expect(panel.pageName).toBe('pay');
    expect(shownQr()).toBe(PAYMENT.qrCode);
    await show(idle);
    await show(PAYMENT);
    expect(shownQr()).toBe(PAYMENT.qrCode);
  });

  it.each([
    ['a QR component', { qr: { component: 'qr7' } }, 'the HMI file has no component qr7 on page 0 (0x02)', 'editor'],
    ['a text component', { texts: { amount: 'n0' } }, 'the HMI file has no component n0 on page 0 (0x1a)', 'editor'],
    ['a page', { pages: { payment: 4 } }, 'the HMI file has no page 4 (0x03)', 'pages'],
  ])('names %s that the HMI file lacks, and is spent', async (_, options, message, fix) => {
    const { open } = device();
    const { show } = await open(options);
    const named = { code: 'DISPLAY_FAULT', severity: 'retryable', message, fix: expect.stringContaining(fix) };
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await expect(show(idle)).rejects.toMatchObject(named);
  });

  it.each([
    [0x00, 'does not know the command'],
    [0x1e, 'wrong number of parameters'],
    [0x24, 'buffer overflowed'],
  ])('names the error answer %d', async (code, words) => {
    const { panel, open } = device();
    const { show } = await open();
    panel.refusal = { to: 'qr0.txt', code };
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining(words) });
  });

  it('a Nextion panel is found that gets its power while it is looked for', async () => {
    const { panel, cable, open, shownQr } = device();
    panel.silent = true;
    const opening = open();
    await eventually('it is asked', () => cable.written().length > 0);
    panel.silent = false;
    panel.restart();
    const { show } = await opening;
    await show(PAYMENT);
    expect(shownQr()).toBe(PAYMENT.qrCode);
  });

  it('a Nextion panel asks to be opened again after a restart, since its screen is empty', async () => {
    const { panel, open, shownQr } = device();
    const { show, asked, display } = await open();
    await show(PAYMENT);
    panel.restart();
    await eventually('the driver asks for a drawing', () => asked() > 0);
    await expect(show(PAYMENT)).rejects.toMatchObject({ message: expect.stringContaining('has restarted') });
    await display.close();
    const again = await open();
    await again.show(PAYMENT);
    expect(shownQr()).toBe(PAYMENT.qrCode);
  });

  it('a Nextion panel hides the old code before the texts of another payment come', async () => {
    const { panel, open, shownQr } = device();
    const { show } = await open();
    await show(PAYMENT);
    panel.refusal = { to: 't1.txt', code: 0x1b };
    await expect(show({ ...PAYMENT, qrCode: payloadOf(120), amount: 70_000 })).rejects.toThrow('t1.txt');
    expect(shownQr()).toBeUndefined();
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

  it('a Nextion panel gets its page back, and the QR, after a touch has led to another one', async () => {
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

  it('a Nextion panel is healthy where its components are shorter than their configuration says', async () => {
    const short: HmiPage = { name: 'short', texts: { t0: 6, t3: 6, t4: 6 }, qr: null };
    const options = { encoding: 'ascii', qr: null };
    const on = await onSwitch('nextion', (send) => new NextionEmulator(send, [short]), idle, { ...source, options });
    expect(on.panel.emulator.text('t3')).toBe('NGUYEN');
    await on.pass(60_000);
    expect(on.outcomes).toHaveLength(1);
  });
});
