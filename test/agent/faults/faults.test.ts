import { describe, expect, it } from 'vitest';
import { decodePicture, readQr } from '../../../src/bench/engine/pictures.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { ActiveFaultView, FaultName } from '../../../src/protocol/faults.ts';
import { paymentOf, pushOf, uuid } from '../../box/samples.ts';
import { eventually } from '../../support/net.ts';
import { boxWith, display } from '../box-with.ts';

const VOICE = {
  driver: 'page',
  options: { speech: { kind: 'none' } },
  volumePercent: 50,
  chime: true,
  zero: 'linh',
} as const;
/** Longer than any test: such a fault is ended by the test. */
const LONG = 'seconds=600';
const HOUR_MS = 3_600_000;

/** A box that shows and says on its page, of which faults can be ordered. */
async function box() {
  const { agent, gateway } = await boxWith({
    displays: [display('browser', {})],
    parts: { voice: VOICE },
    faults: true,
  });
  const at = `${agent.origin}/_mock/faults`;
  return {
    gateway,
    status: () => agent.box.status(),
    said: () => agent.box.sound(),
    order: async (fault: FaultName, how = LONG): Promise<ActiveFaultView> => {
      const response = await fetch(`${at}/${fault}?${how}`, { method: 'POST' });
      return (await response.json()) as ActiveFaultView;
    },
    end: () => fetch(at, { method: 'DELETE' }),
    standing: async () => ((await (await fetch(at)).json()) as { standing: ActiveFaultView[] }).standing,
    /** Waits until the gateway was told so. */
    told: (type: string, pushId?: string) =>
      eventually(`${type} ${pushId}`, () =>
        gateway.said.find((it) => {
          const is = it.type === 'rejected' ? it.code : it.type;
          return is === type && (pushId === undefined || ('pushId' in it && it.pushId === pushId));
        }),
      ),
    /** The QR on the screen, read from its picture. */
    qr: async () => {
      const picture = new Uint8Array(await (await fetch(`${agent.origin}/screen.png`)).arrayBuffer());
      return readQr(await decodePicture(picture));
    },
  };
}

describe('a box whose display is unplugged', () => {
  it('AGT-5 a box whose display is unplugged refuses pushes by name, announces payments, and recovers by itself', async () => {
    const { gateway, status, said, order, end, standing, told, qr } = await box();
    gateway.tell(pushOf(1));
    await told('shown', uuid(1));
    await order('display-gone');
    await eventually('noticed although nothing was to be drawn', () => !status().display.ok);
    expect(status().display.reason).toContain('display-gone');
    await eventually('the fault', () => status().fault?.code === 'DISPLAY_FAULT');
    gateway.tell(pushOf(2));
    await told('DISPLAY_FAULT', uuid(2));
    gateway.tell(paymentOf(1));
    await told('paid');
    expect(said()).toMatchObject({ number: 1, text: 'Đã nhận năm mươi nghìn đồng' });
    expect((await standing())[0]?.happened).toBeGreaterThan(0);
    await end();
    await eventually('well', () => status().display.ok && status().fault === null);
    expect(status().state).toBe('paid');
    gateway.tell(pushOf(3));
    await told('shown', uuid(3));
    expect(await qr()).toBe(pushOf(3).qrCode);
    expect(gateway.types().filter((type) => type === 'paid')).toHaveLength(1);
    expect(said()?.number).toBe(1);
  });

  it('a box shows an order again after its display was unplugged and plugged in', async () => {
    const { gateway, status, order, standing, told, qr } = await box();
    const loosen = async () => {
      await order('display-gone', `times=1&${LONG}`);
      await eventually('noticed', async () => (await standing()).length === 0);
    };
    // On a screen that rests nothing is drawn by itself.
    await loosen();
    await eventually('well', () => status().display.ok && status().state === 'idle');
    gateway.tell(pushOf(1));
    await told('shown', uuid(1));
    await loosen();
    await eventually('well', () => status().display.ok && status().state === 'showing');
    expect(await qr()).toBe(pushOf(1).qrCode);
  });
});

describe('a box whose disk is full', () => {
  it('AGT-5 a box whose disk is full refuses pushes by name, announces payments as not recorded, and recovers by itself', async () => {
    const { gateway, status, said, order, told, qr } = await box();
    gateway.tell(pushOf(1));
    await told('shown', uuid(1));
    await order('disk-full', 'seconds=1');
    gateway.tell(pushOf(2));
    await told('STORAGE_FAULT', uuid(2));
    expect(status().journal).toMatchObject({ ok: false, reason: expect.stringContaining('disk-full') });
    gateway.tell(paymentOf(1));
    expect(await told('paid')).toMatchObject({ recorded: false });
    expect(status().state).toBe('paid');
    expect(said()).toMatchObject({ number: 1 });
    expect(status().journal.unwritten).toBeGreaterThan(0);
    await eventually('well', () => status().journal.ok && status().fault === null);
    expect(status().journal).toMatchObject({ reason: null, unwritten: 0 });
    gateway.tell(pushOf(3));
    await told('shown', uuid(3));
    expect(await qr()).toBe(pushOf(3).qrCode);
    gateway.tell(paymentOf(1, { repeated: true }));
    await eventually('asked again', () => gateway.types().filter((type) => type === 'paid').length === 2);
    expect(said()?.number).toBe(1);
  });
});

describe('a box whose calendar clock is ahead', () => {
  it('SIG-4 a box whose calendar clock is ahead shows orders for their whole time', async () => {
    const { gateway, status, order, end, told, qr } = await box();
    const sentAheadMs = async (type: string, pushId: string) =>
      (await told(type, pushId)).sentAtMs - systemClock.wallMs();
    gateway.tell(pushOf(1));
    expect(Math.abs(await sentAheadMs('shown', uuid(1)))).toBeLessThan(HOUR_MS);
    await order('box-clock');
    gateway.tell(pushOf(2));
    expect(await sentAheadMs('shown', uuid(2))).toBeGreaterThan(HOUR_MS);
    expect(status().state).toBe('showing');
    expect(await qr()).toBe(pushOf(2).qrCode);
    gateway.tell(pushOf(3, { expiresInMs: 2_000 }));
    await told('ended', uuid(3));
    gateway.tell(pushOf(4));
    await told('shown', uuid(4));
    await end();
    gateway.tell(paymentOf(4));
    const paid = await told('paid');
    expect(Math.abs(paid.sentAtMs - systemClock.wallMs())).toBeLessThan(HOUR_MS);
    expect(gateway.said.filter((it) => it.type === 'ended' && it.how === 'expired')).toHaveLength(1);
  });
});
