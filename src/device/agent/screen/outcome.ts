import type { BoxEvent, QrCheck } from '../../box/state.ts';
import type { Screen, ScreenOutcome } from './screen.ts';

/** Returns whether a display can show a QR. A display that is not open can show none. */
export function qrCheckOf(screen: Screen, qrCode: string): QrCheck {
  const qrCheck = screen.checkQr(qrCode);
  if (qrCheck === undefined) return { ok: false, code: 'DISPLAY_FAULT', reason: screen.status().reason ?? 'not open' };
  return qrCheck.ok ? { ok: true } : { ok: false, code: 'QR_TOO_DENSE', reason: qrCheck.reason };
}

/** Returns the box event for a result of the first display. */
export function screenEvent(outcome: ScreenOutcome): BoxEvent {
  const { scene } = outcome;
  const pushId = scene?.kind === 'payment' ? scene.pushId : undefined;
  const transactionId = scene?.kind === 'paid' ? scene.transactionId : undefined;
  if (outcome.ok && outcome.unreadable !== undefined && pushId !== undefined) {
    return { type: 'unreadable', pushId, reason: outcome.unreadable };
  }
  const account = scene?.kind === 'account' ? { account: scene.holder } : {};
  return outcome.ok
    ? { type: 'drawn', pushId, transactionId, ...account }
    : { type: 'draw-failed', pushId, reason: outcome.reason };
}
