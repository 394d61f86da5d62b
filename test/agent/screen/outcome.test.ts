import { describe, expect, it } from 'vitest';
import { qrCheckOf, screenEvent } from '../../../src/device/agent/screen/outcome.ts';
import type { Screen } from '../../../src/device/agent/screen/screen.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { PAYMENT } from '../../display/scenes.ts';
import { only } from '../../gateway/stage-records.ts';

const paid: Scene = { kind: 'paid', transactionId: 't1', amount: 1, content: '', holder: null, online: true };
const idle: Scene = { kind: 'starting', version: '1' };

describe('what the first display did', () => {
  it('AGT-2 AGT-10 the first display confirms what the scene shows: a push, a payment, or neither', () => {
    const drawn = { type: 'drawn', pushId: undefined, transactionId: undefined };
    expect(screenEvent({ ok: true, scene: PAYMENT })).toEqual({ ...drawn, pushId: PAYMENT.pushId });
    expect(screenEvent({ ok: true, scene: paid })).toEqual({ ...drawn, transactionId: 't1' });
    expect(screenEvent({ ok: true, scene: idle })).toEqual(drawn);
  });

  it('AGT-9 the first display never confirms a push whose QR could not be read', () => {
    expect(screenEvent({ ok: true, scene: PAYMENT, unreadable: 'no room' })).toEqual({
      type: 'unreadable',
      pushId: PAYMENT.pushId,
      reason: 'no room',
    });
  });

  it('AGT-2 a failure of the first display names the push that it was to show', () => {
    const failed = { type: 'draw-failed', pushId: PAYMENT.pushId, reason: 'cable out' };
    expect(screenEvent({ ok: false, scene: PAYMENT, reason: 'cable out' })).toEqual(failed);
    expect(screenEvent({ ok: false, scene: undefined, reason: 'cable out' })).toEqual({ ...failed, pushId: undefined });
  });
});

describe('what a display can do with a QR', () => {
  const status = () => ({ driver: 'strict', ok: false, reason: 'cable out', surface: '', qr: null });

  it('AGT-1 AGT-2 a display that is not open can show no QR, and an open one no more than it says', () => {
    const closed = only<Screen>({ status, checkQr: () => undefined });
    expect(qrCheckOf(closed, '0002')).toEqual({ ok: false, code: 'DISPLAY_FAULT', reason: 'cable out' });
    const small = only<Screen>({ status, checkQr: () => ({ ok: false as const, reason: 'too small' }) });
    expect(qrCheckOf(small, '0002')).toEqual({ ok: false, code: 'QR_TOO_DENSE', reason: 'too small' });
  });
});
