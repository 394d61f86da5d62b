import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatTime } from '../../src/device/display/words.ts';
import { repetitionText } from '../../src/device/voice/words.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { paymentOf, pushOf, uuid } from '../box/samples.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { clipsIn, writeClips } from '../voice/support.ts';
import { boxWith, display } from './box-with.ts';

describe('an agent', () => {
  it('AGT-2 an agent confirms by its first display, and works although the second one fails', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'screen.png');
    const pole = display('cd5220', { path: join(folder, 'no-such-port') });
    const { agent, gateway } = await boxWith({ displays: [display('png', { path }), pole] });
    gateway.tell(pushOf(1));
    await eventually('shown', () => gateway.types().includes('shown'));
    expect(gateway.types()).toEqual(['hello', 'accepted', 'shown']);
    expect(decodeQrTwice(await readFile(path))).toEqual([pushOf(1).qrCode, pushOf(1).qrCode]);
    const { state, display: first, displays } = agent.box.status();
    expect(state).toBe('showing');
    expect(first).toMatchObject({ driver: 'png', ok: true });
    expect(displays[1]).toMatchObject({ driver: 'cd5220', ok: false, reason: expect.stringContaining('no-such-port') });
    gateway.tell(paymentOf(1));
    await eventually('paid', () => gateway.types().includes('paid'));
  });

  it('AGT-2 AGT-5 an agent without a display refuses pushes by name, accepts payments, and draws again once the display is back', async () => {
    const folder = join(await temporaryFolder(), 'pictures');
    const path = join(folder, 'screen.png');
    const { agent, gateway } = await boxWith({ displays: [display('png', { path })] });
    await rm(folder, { recursive: true, maxRetries: 10 });
    await writeFile(folder, 'a file where the folder was');
    gateway.tell(pushOf(1));
    await eventually('refused', () => gateway.types().includes('DISPLAY_FAULT'));
    expect(agent.box.status()).toMatchObject({
      state: 'fault',
      display: { ok: false },
      fault: { code: 'DISPLAY_FAULT' },
    });
    gateway.tell(pushOf(2));
    gateway.tell(paymentOf(3, { pushId: null }));
    await eventually('paid', () => gateway.types().includes('paid'));
    // Whether the first push was taken depends on what the box was drawing when its display went.
    const told = gateway.types().filter((type) => type !== 'accepted');
    expect(told).toEqual(['hello', 'DISPLAY_FAULT', 'DISPLAY_FAULT', 'paid']);
    expect(agent.box.status().lastPayment?.transactionId).toBe(uuid(0xc003));
    await rm(folder);
    await mkdir(folder);
    await eventually('well again', () => agent.box.status().display.ok && agent.box.status().fault === null);
    gateway.tell(pushOf(4));
    await eventually('shown', () => gateway.types().includes('shown'));
    expect(decodeQrTwice(await readFile(path))[0]).toBe(pushOf(4).qrCode);
  });

  const THROUGH_THE_PAGE = { driver: 'page', volumePercent: 100, chime: true, zero: 'linh' } as const;

  it('AGT-17 an agent announces a payment on its page once, and repeats it by the key as an earlier one, which the screen shows', async () => {
    const speech = { kind: 'clips', folder: await writeClips() };
    const { agent, gateway } = await boxWith({
      displays: [display('browser', {})],
      parts: { voice: { ...THROUGH_THE_PAGE, options: { speech } } },
    });
    expect(agent.box.sound()).toBeUndefined();
    const paidAtMs = systemClock.wallMs();
    for (let times = 0; times < 2; times += 1) gateway.tell(paymentOf(1, { pushId: null, paidAtMs }));
    const first = await eventually('the sound', () => agent.box.sound());
    expect(first).toMatchObject({ number: 1, text: 'Đã nhận năm mươi nghìn đồng' });
    await eventually('answered twice', () => gateway.types().filter((type) => type === 'paid').length === 2);
    await eventually('the paid screen', () => isPaidShown(agent.origin));
    await fetch(`${agent.origin}/keys/dismiss`, { method: 'POST' });
    await eventually('idle', () => agent.box.status().state === 'idle');
    await fetch(`${agent.origin}/keys/repeat`, { method: 'POST' });
    const again = await eventually('again', () => agent.box.sound()?.number === 2 && agent.box.sound());
    const text = repetitionText(50_000, paidAtMs);
    expect(again).toMatchObject({ text: expect.stringMatching(/^Nhắc lại, lúc .* giờ/) });
    expect(again).toMatchObject({ text });
    expect(clipsIn(again?.wav ?? Buffer.of())[0]).toBe('repeat');
    expect(agent.box.scene()).toMatchObject({ kind: 'repeat', amount: 50_000, paidAtMs });
    const screen = await (await fetch(`${agent.origin}/screen.txt`)).text();
    expect(screen).toContain(`Nhắc lại lúc ${formatTime(paidAtMs)}`);
    const { said, queued } = agent.box.status().voice ?? {};
    expect({ said, queued }).toEqual({ said: 1, queued: 0 });
    expect(await (await fetch(`${agent.origin}/metrics`)).text()).toContain('paybox_box_announcements_total 1\n');
    const served = await fetch(`${agent.origin}/sound.wav`);
    expect(served.headers.get('content-type')).toBe('audio/wav');
    expect(Buffer.from(await served.arrayBuffer()).toString('latin1', 0, 4)).toBe('RIFF');
  });

  it('AGT-17 an agent shows a payment of a week ago by the key, but does not announce it, and says why', async () => {
    const speech = { kind: 'clips', folder: await writeClips() };
    const { agent, gateway } = await boxWith({
      displays: [display('browser', {})],
      parts: { voice: { ...THROUGH_THE_PAGE, options: { speech } } },
    });
    const paidAtMs = systemClock.wallMs() - 7 * 86_400_000;
    gateway.tell(paymentOf(1, { pushId: null, paidAtMs }));
    await eventually('the sound', () => agent.box.sound());
    await eventually('the paid screen', () => isPaidShown(agent.origin));
    agent.box.press('dismiss');
    agent.box.press('repeat');
    await eventually('the screen', () => agent.box.scene().kind === 'repeat' && agent.box.frame());
    await eventually('its words', async () =>
      (await (await fetch(`${agent.origin}/screen.txt`)).text()).includes('Đã cũ, không đọc lại'),
    );
    expect([agent.box.sound()?.number, agent.box.status().voice?.queued]).toEqual([1, 0]);
  });

  it('AGT-6 an agent goes back to idle by one key, and shows the last payments by another', async () => {
    const { agent, gateway } = await boxWith({ displays: [display('browser', {})] });
    gateway.tell(paymentOf(1, { pushId: null }));
    await eventually('paid', () => agent.box.status().state === 'paid');
    await fetch(`${agent.origin}/keys/dismiss`, { method: 'POST' });
    await eventually('idle', () => agent.box.status().state === 'idle');
    await fetch(`${agent.origin}/keys/history`, { method: 'POST' });
    await eventually('the look back', () => agent.box.scene().kind === 'history');
    expect(await (await fetch(`${agent.origin}/screen.txt`)).text()).toContain('50.000 ₫');
  });
});

/** Whether the display has confirmed the paid screen. */
async function isPaidShown(origin: string): Promise<boolean> {
  return (await (await fetch(`${origin}/screen.txt`)).text()).startsWith('Đã nhận');
}
