import { describe, expect, it } from 'vitest';
import { Measurements, progressLine, showProgress } from '../../src/bench/fleet/measurements.ts';
import { type FleetOrder, OrderTracker } from '../../src/bench/fleet/order-tracker.ts';
import type { Scene } from '../../src/device/scene.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';

const HOLDER = { userBankName: 'A', bankAccount: '1', bankCode: 'MB' };

/** A tracker with orders A and B for one box and C for another, and what screens do. */
function shop() {
  const tracker = new OrderTracker(new VirtualClock());
  const orders = new Map<string, FleetOrder>();
  for (const [name, terminalCode] of [
    ['A', 'VVB000001'],
    ['B', 'VVB000001'],
    ['C', 'VVB000002'],
  ] as const) {
    const order = { terminalCode, orderId: name, content: name, amount: 1_000, qrCode: `qr-${name}`, wasShown: false };
    orders.set(name, order);
    tracker.add(order);
  }
  const shows = (terminalCode: string, scene: Scene, qrCode: string | null = null) =>
    tracker.drawn(terminalCode, qrCode, scene);
  return {
    tracker,
    order: (name: string) => orders.get(name) ?? expect.fail(name),
    qr: (terminalCode: string, name: string) =>
      shows(
        terminalCode,
        {
          kind: 'payment',
          pushId: name,
          qrCode: `qr-${name}`,
          amount: 1_000,
          content: name,
          holder: HOLDER,
          secondsLeft: 9,
          online: true,
        },
        `qr-${name}`,
      ),
    paid: (terminalCode: string, transactionId: string, content: string) =>
      shows(terminalCode, { kind: 'paid', transactionId, amount: 1_000, content, holder: HOLDER, online: true }),
    expired: (terminalCode: string, content: string) =>
      shows(terminalCode, { kind: 'expired', amount: 1_000, content, online: true }),
  };
}

describe('the tracker of a fleet', () => {
  it('the tracker of a fleet finds nothing wrong with orders that are shown, replaced, paid and expire', () => {
    const { tracker, qr, paid, expired, order } = shop();
    qr('VVB000001', 'A');
    qr('VVB000002', 'C');
    qr('VVB000001', 'B');
    paid('VVB000001', 't1', 'A');
    paid('VVB000001', 't1', 'A');
    qr('VVB000001', 'B');
    expired('VVB000002', 'C');
    expect(tracker.problems).toEqual({ listed: [], omitted: 0 });
    expect(['A', 'B', 'C'].map((name) => order(name).over)).toEqual(['paid', undefined, 'expired']);
    expect(tracker.paidShown('t1')).toMatchObject({ terminalCode: 'VVB000001', times: 1 });
    expect(tracker.shownOn('VVB000001')).toBe(order('B'));
    expect(tracker.shownOn('VVB000002')).toBeUndefined();
  });

  it('the tracker of a fleet counts how often a payment comes to the screen', () => {
    const { tracker, qr, paid } = shop();
    paid('VVB000001', 't1', 'A');
    qr('VVB000001', 'B');
    paid('VVB000001', 't1', 'A');
    expect(tracker.paidShown('t1')?.times).toBe(2);
  });

  it.each<[string, (shops: ReturnType<typeof shop>) => void, string]>([
    [
      'the QR of another box',
      ({ qr }) => qr('VVB000001', 'C'),
      'VVB000001 shows the QR of order C, which is for VVB000002',
    ],
    ['a QR that nobody asked for', ({ qr }) => qr('VVB000001', 'X'), 'VVB000001 shows a QR that no order has: qr-X'],
    [
      'the QR of an order that is paid',
      ({ qr, paid }) => {
        paid('VVB000001', 't1', 'A');
        qr('VVB000001', 'A');
      },
      'VVB000001 shows the QR of order A, which was paid',
    ],
    [
      'the QR of an order that was replaced',
      ({ qr }) => {
        qr('VVB000001', 'A');
        qr('VVB000001', 'B');
        qr('VVB000001', 'A');
      },
      'VVB000001 shows the QR of order A, which was replaced',
    ],
    [
      'the payment of another box',
      ({ paid }) => {
        paid('VVB000001', 't1', 'A');
        paid('VVB000002', 't1', 'A');
      },
      'VVB000002 shows the payment t1 of VVB000001',
    ],
  ])('sees %s', (_what, happens, problem) => {
    const shops = shop();
    happens(shops);
    expect(shops.tracker.problems.listed).toEqual([problem]);
  });

  it('the tracker of a fleet keeps a limited number of problems in words, and counts the rest', () => {
    const { tracker } = shop();
    for (let i = 0; i < 150; i += 1) tracker.problem(`problem ${i}`);
    expect(tracker.problems.listed).toHaveLength(100);
    expect(tracker.problems.omitted).toBe(50);
  });
});

describe('the progress of a fleet', () => {
  it('the progress of a fleet names boxes, pushes, answers, payments and percentiles', () => {
    const measured = new Measurements();
    expect(progressLine(3, 5, measured)).toBe('3/5 online · 0 pushes · 0 payments');
    for (const code of ['SUCCESS', 'BOX_OFFLINE', 'SUCCESS']) measured.answered(code);
    measured.confirmedMs.push(10, 20);
    measured.payments = 1;
    const said = '5/5 online · 3 pushes · 1 BOX_OFFLINE, 2 SUCCESS · 1 payments · p50 10.0 ms, p99 20.0 ms';
    expect(progressLine(5, 5, measured)).toBe(said);
  });

  it.each([
    ['one line that is written over, no wider than the terminal', true, '\r\u001b[2K0123\r\u001b[2K'],
    ['plain lines elsewhere', false, '0123456789\n'],
  ])('is %s', async (_what, isTTY, expected) => {
    const written: string[] = [];
    const done = new AbortController();
    const out = { write: (text: string) => written.push(text), isTTY, columns: 5 };
    const telling = showProgress(out, { line: () => '0123456789', clock: new VirtualClock(), signal: done.signal });
    done.abort();
    await telling;
    expect(written.join('')).toBe(expected);
  });
});
