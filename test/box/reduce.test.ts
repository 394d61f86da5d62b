import { describe, expect, it } from 'vitest';
import { INVARIANTS } from '../../src/device/box/machine.ts';
import { reduce } from '../../src/device/box/reduce.ts';
import {
  activeOrder,
  type BoxEvent,
  type BoxState,
  IN_FLIGHT_MAX,
  RESEND_MS,
  UNSENT_MAX,
} from '../../src/device/box/state.ts';
import { statusView, view } from '../../src/device/box/view.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';
import { field, payloadOf } from '../protocol/payloads.ts';
import { fc } from '../support/properties.ts';
import {
  connecting,
  dismiss,
  drawn,
  free,
  idleDrawn,
  paidDrawn,
  payment,
  push,
  registered,
  registeredAt,
  tick,
} from './events.ts';
import { at, LINK, pushOf, uuid, WALL_START_MS } from './samples.ts';
import { fresh, play, ready, showing } from './support.ts';

const types = (step: { sends: readonly { type: string }[] }) => step.sends.map((send) => send.type);
const rejection = (step: { sends: readonly object[] }) =>
  step.sends.map((send) => ('code' in send ? send.code : 'sent'));

describe('a push', () => {
  it('AGT-2 a push is not reported as accepted where the gateway waits for the screen', () => {
    const pushed = play(ready(), [push(1, { confirm: 'displayed' })]);
    expect(pushed.writes).toMatchObject([{ kind: 'push' }]);
    expect(types(pushed)).toEqual([]);
    expect(types(play(pushed.state, [drawn(1)]))).toEqual(['shown']);
  });

  it('AGT-2 a push is journaled and accepted at once, but confirmed only when the display has drawn it', () => {
    const pushed = play(ready(), [push(1)]);
    expect(pushed.writes).toMatchObject([{ kind: 'push', order: { pushId: uuid(1), amount: 50_000 } }]);
    expect(types(pushed)).toEqual(['accepted']);
    expect(view(pushed.state)).toMatchObject({ kind: 'payment', pushId: uuid(1), secondsLeft: 300 });
    const confirmed = play(pushed.state, [drawn(1)]);
    expect(confirmed.writes).toEqual([{ kind: 'shown', pushId: uuid(1) }]);
    expect(types(confirmed)).toEqual(['shown']);
    expect(play(confirmed.state, [drawn(1)]).sends).toEqual([]);
  });

  it.each([
    ['QR_INVALID', { qrCode: `${pushOf(1).qrCode.slice(0, -4)}0000` }],
    ['QR_MISMATCH', { bankAccount: '9999999999' }],
    ['QR_MISMATCH', { bankCode: 'VCB' }],
    ['QR_MISMATCH', { amount: 60_000, qrCode: pushOf(1).qrCode }],
    ['QR_MISMATCH', { qrCode: qr({ account: '9999999999' }) }],
    ['QR_MISMATCH', { qrCode: qr({ bin: '970436' }) }],
    ['QR_MISMATCH', { qrCode: qr({ service: 'card' }) }],
    ['QR_MISMATCH', { qrCode: qr({ amount: undefined, initiation: 'static' }) }],
    ['QR_INVALID', { qrCode: payloadOf({ labels: field('62', field('05', 'MOMOW2W34875080')) }) }],
    ['WITHDRAWN', { expiresInMs: 0 }],
  ])('AGT-1 a push is refused with %s and changes nothing', (code, change) => {
    const before = ready();
    const step = play(before, [push(1, change)]);
    expect(rejection(step)).toEqual([code]);
    expect(step.writes).toEqual([]);
    expect({ ...step.state, nowMs: 0, closedPushIds: [] }).toEqual({ ...before, nowMs: 0 });
    // A message may be doubled: what was refused once must not come to the screen by its second copy.
    expect(rejection(play(step.state, [push(1)]))).toEqual(['WITHDRAWN']);
  });

  it('AGT-1 QRP-7 a push names the holder of the linked account, whatever push and QR call him', () => {
    const pushed = play(ready(), [push(1, { userBankName: 'ANOTHER', qrCode: qr({ merchantName: 'ANOTHER' }) })]);
    expect(view(pushed.state)).toMatchObject({ kind: 'payment', holder: LINK });
  });

  it('QRP-8 THR-23 a push may have the QR of a wallet whose id the welcome has named', () => {
    const account = { bankAccount: 'PSP0000000000000000', bankCode: 'momo', userBankName: 'NGUYEN VAN A' };
    const id = 'MOMOW2W00000000';
    const linked = (link: object) => play(fresh(), [connecting, registeredAt(0, { ...account, ...link })]).state;
    const labels = field('62', field('05', id));
    const payee = { bin: field('00', '971025'), account: field('01', account.bankAccount) };
    const shown = push(1, { ...account, qrCode: payloadOf({ ...payee, labels }) });
    expect(rejection(play(linked({ walletIds: [id] }), [shown]))).toEqual(['sent']);
    expect(rejection(play(linked({ walletIds: ['MOMOW2W00000001'] }), [shown]))).toEqual(['QR_INVALID']);
    expect(rejection(play(linked({}), [shown]))).toEqual(['QR_INVALID']);
    const before = play(linked({ walletIds: [id] }), [shown]).state;
    expect(view(before)).toMatchObject({ kind: 'payment', holder: account });
  });

  it('PQR-3 a push may have a QR to a virtual account of the box, which is shown beside its holder', () => {
    const virtualAccounts = [{ bin: '970436', begins: 'VQRQ' }];
    const linked = play(fresh(), [connecting, registeredAt(0, { ...LINK, virtualAccounts })]).state;
    const to = (change: Parameters<typeof qr>[0]) => play(linked, [push(1, { qrCode: qr(change) })]);
    const shown = to({ bin: '970436', account: 'VQRQ0001' });
    expect(rejection(shown)).toEqual(['sent']);
    const holder = { ...LINK, bankCode: 'VCB', bankAccount: 'VQRQ0001' };
    expect(view(shown.state)).toMatchObject({ kind: 'payment', holder });
    expect(rejection(to({}))).toEqual(['sent']);
    const others: Parameters<typeof qr>[0][] = [
      { bin: '970422', account: 'VQRQ0001' },
      { bin: '970436', account: 'VQR' },
      { bin: '970436', account: '1VQRQ' },
      { bin: '970436', account: 'VQRQ0001', service: 'card' },
      { bin: '970436', account: 'VQRQ0001', amount: 50_001 },
      { bin: '970436', account: LINK.bankAccount },
    ];
    for (const change of others) expect([change, rejection(to(change))]).toEqual([change, ['QR_MISMATCH']]);
    const unknown = play(ready(), [push(1, { qrCode: qr({ bin: '970436', account: 'VQRQ0001' }) })]);
    expect(rejection(unknown)).toEqual(['QR_MISMATCH']);
  });

  it('AGT-1 a push is refused when the display cannot show it, or no account is linked', () => {
    const dense: BoxEvent = {
      type: 'push',
      push: pushOf(1),
      bornAtMs: Number.POSITIVE_INFINITY,
      qrCheck: { ok: false, code: 'QR_TOO_DENSE', reason: '41 modules, 38 pixels' },
    };
    expect(play(ready(), [dense]).sends).toMatchObject([{ code: 'QR_TOO_DENSE', reason: '41 modules, 38 pixels' }]);
    const unlinked = play(fresh(), [registeredAt(0, null), push(1)]);
    expect(rejection(unlinked)).toEqual(['E36']);
    expect(view(unlinked.state).kind).toBe('unlinked');
  });

  it('AGT-9 a push whose QR is too dense is shown in words, but removes no other QR for that', () => {
    const dense: BoxEvent = {
      type: 'push',
      push: pushOf(2),
      bornAtMs: Number.POSITIVE_INFINITY,
      qrCheck: { ok: false, code: 'QR_TOO_DENSE', reason: '41 modules' },
    };
    const told = play(ready(), [dense]);
    expect(told.writes).toEqual([]);
    expect(view(told.state)).toEqual({ kind: 'too-dense', amount: 50_000, content: 'DH2', holder: LINK, online: true });
    expect(statusView(told.state)).toMatchObject({ state: 'idle', order: null });
    expect(view(play(told.state, [[told.wakeAtMs ?? 0, tick]]).state).kind).toBe('idle');
    expect((told.wakeAtMs ?? 0) - told.state.nowMs).toBe(300_000);
    const withdrawn = play(told.state, [{ type: 'withdraw', pushId: uuid(2), why: 'cancelled' }]);
    expect(view(withdrawn.state).kind).toBe('idle');
    expect(view(play(ready(), [payment(1), dense]).state).kind).toBe('paid');
    const kept = play(showing(), [dense]);
    expect(view(kept.state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
    expect(rejection(kept)).toEqual(['QR_TOO_DENSE']);
  });

  it('AGT-9 a push is not confirmed when the display had no room for it after all', () => {
    const late: BoxEvent = { type: 'unreadable', pushId: uuid(1), reason: '41 modules' };
    const step = play(ready(), [push(1), late]);
    expect(rejection(step)).toEqual(['sent', 'QR_TOO_DENSE']);
    expect(step.writes.at(-1)).toEqual({ kind: 'refused', pushId: uuid(1) });
    expect(view(step.state).kind).toBe('too-dense');
    expect(play(showing(), [late]).sends).toEqual([]);
    const closed: BoxEvent = {
      type: 'push',
      push: pushOf(1),
      bornAtMs: Number.POSITIVE_INFINITY,
      qrCheck: { ok: false, code: 'DISPLAY_FAULT', reason: 'not open' },
    };
    expect(rejection(play(ready(), [closed]))).toEqual(['DISPLAY_FAULT']);
  });

  it('AGT-2 a push is refused by name while the display or the disk fails', () => {
    const dark = play(ready(), [{ type: 'draw-failed', pushId: undefined, reason: 'unplugged' }, push(1)]);
    expect(dark.sends).toMatchObject([{ code: 'DISPLAY_FAULT', reason: 'unplugged' }]);
    expect(statusView(dark.state).state).toBe('fault');
    const failedDraw = play(ready(), [push(1), { type: 'draw-failed', pushId: uuid(1), reason: 'stuck' }]);
    expect(rejection(failedDraw)).toEqual(['sent', 'DISPLAY_FAULT']);
    expect(activeOrder(failedDraw.state.stage)).toBeUndefined();
    const back = play(failedDraw.state, [{ type: 'drawn', pushId: undefined, transactionId: undefined }, push(2)]);
    expect(types(back)).toEqual(['accepted']);
    const full = play(ready(), [{ type: 'unrecorded', cause: push(1), reason: 'no space' }]);
    expect(full.sends).toMatchObject([{ type: 'rejected', pushId: uuid(1), code: 'STORAGE_FAULT' }]);
    expect(full.writes).toEqual([]);
    expect(view(full.state)).toMatchObject({
      kind: 'fault',
      code: 'STORAGE_FAULT',
      action: expect.stringContaining('thẻ nhớ'),
    });
    const reason = "the journal cannot be written: EACCES: permission denied, mkdir '/etc/paybox/data'";
    const misnamed = play(ready(), [{ type: 'unrecorded', cause: push(1), reason }]);
    expect(view(misnamed.state)).toMatchObject({
      code: 'STORAGE_FAULT',
      action: expect.stringContaining('Sửa dataDir'),
    });
    expect(view(play(full.state, [{ type: 'recorded' }]).state).kind).toBe('idle');
    expect(view(play(full.state, [{ type: 'recorded' }, push(1), drawn(1)]).state).kind).toBe('idle');
  });

  it('AGT-2 a push that the disk cannot store leaves the order on the screen', () => {
    const full = play(showing(), [{ type: 'unrecorded', cause: push(2), reason: 'no space' }]);
    expect(full.sends).toMatchObject([{ type: 'rejected', pushId: uuid(2), code: 'STORAGE_FAULT' }]);
    expect(full.writes).toEqual([]);
    expect(activeOrder(full.state.stage)?.order.pushId).toBe(uuid(1));
  });

  it('AGT-3 SND-8 a push replaces an older one on the screen, which is reported as replaced', () => {
    const replaced = play(showing(), [push(2)]);
    expect(replaced.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'replaced' }, { type: 'accepted' }]);
    const neverShown = play(ready(), [push(1), push(2)]);
    expect(rejection(neverShown)).toEqual(['sent', 'REPLACED', 'sent']);
    expect(statusView(neverShown.state).order?.orderId).toBe('DH2');
  });

  it('AGT-3 MSG-5 a push ends when its lifetime is over, by the monotonic clock', () => {
    const before = showing();
    const deadline = activeOrder(before.stage)?.deadlineMs ?? 0;
    const clockSetBack = reduce(before, tick, { monotonicMs: deadline - 1, wallMs: 0 });
    expect(view(clockSetBack.state)).toMatchObject({ kind: 'payment', secondsLeft: 1 });
    const step = play(before, [[deadline, tick]]);
    expect(step.sends).toMatchObject([{ type: 'ended', how: 'expired' }]);
    expect(view(step.state)).toMatchObject({ kind: 'expired', amount: 50_000 });
    expect(statusView(step.state)).toMatchObject({ state: 'expired', order: null });
    expect(view(play(step.state, [[deadline + 5_000, tick]]).state).kind).toBe('idle');
  });

  it('AGT-3 a push ends when it is withdrawn, dismissed, or when the linked account changes', () => {
    const cancelled = play(showing(), [{ type: 'withdraw', pushId: uuid(1), why: 'cancelled' }]);
    expect(cancelled.sends).toMatchObject([{ type: 'ended', how: 'withdrawn' }]);
    expect(view(cancelled.state).kind).toBe('cancelled');
    const timedOut = play(showing(), [{ type: 'withdraw', pushId: uuid(1), why: 'timeout' }]);
    expect(view(timedOut.state).kind).toBe('idle');
    const dismissed = play(showing(), [dismiss]);
    expect(dismissed.sends).toMatchObject([{ type: 'ended', how: 'dismissed' }]);
    const relinked = play(showing(), [registeredAt(0, { ...LINK, bankAccount: '77' })]);
    expect(relinked.sends).toMatchObject([{ type: 'ended', how: 'withdrawn' }]);
    expect(statusView(relinked.state).order).toBeNull();
    expect(play(showing(), [registered]).sends).toEqual([]);
  });

  it('AGT-3 MSG-5 a push lives no longer for its time on the way, and is not shown when it comes too late', () => {
    const start = play(ready(), [[10_000, tick]]).state;
    const slow = play(start, [[250_000, push(1, {}, 10_000)]]);
    expect(view(slow.state)).toMatchObject({ kind: 'payment', secondsLeft: 60 });
    const late = play(start, [[310_000, push(1, {}, 10_000)]]);
    expect(rejection(late)).toEqual(['WITHDRAWN']);
    expect(view(late.state).kind).toBe('idle');
    const clockSetForward = reduce(start, push(1, {}, 10_000), { monotonicMs: 10_001, wallMs: WALL_START_MS * 2 });
    expect(view(clockSetForward.state)).toMatchObject({ kind: 'payment', secondsLeft: 300 });
  });

  it('MSG-9 a withdrawal is answered, whether the push is on the screen or not', () => {
    const withdraw = (n: number): BoxEvent => ({ type: 'withdraw', pushId: uuid(n), why: 'paid' });
    const shown = play(showing(), [withdraw(1)]);
    expect(shown.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'withdrawn' }]);
    expect(view(shown.state).kind).toBe('idle');
    expect(play(showing(), [withdraw(2)]).sends).toMatchObject([{ pushId: uuid(2), code: 'WITHDRAWN' }]);
    expect(rejection(play(shown.state, [withdraw(1)]))).toEqual(['WITHDRAWN']);
  });

  it('AGT-4 a push is never shown when its withdrawal came first, nor a second time after its end', () => {
    const early = play(ready(), [{ type: 'withdraw', pushId: uuid(1), why: 'timeout' }, push(1)]);
    expect(rejection(early)).toEqual(['WITHDRAWN', 'WITHDRAWN']);
    const again = play(showing(), [dismiss, push(1)]);
    expect(rejection(again).at(-1)).toBe('WITHDRAWN');
    expect(play(showing(), [push(1)]).sends).toEqual([{ type: 'shown', pushId: uuid(1) }]);
  });

  it('SND-8 a push is refused when a newer one came before it was processed, and not shown later', () => {
    const overtaken = play(showing(), [{ type: 'overtaken', pushId: uuid(2) }, push(2)]);
    expect(rejection(overtaken)).toEqual(['REPLACED', 'WITHDRAWN']);
    expect(overtaken.state.stage).toEqual(showing().stage);
    expect(play(showing(), [{ type: 'overtaken', pushId: uuid(1) }]).sends).toEqual([]);
  });
});

describe('a payment', () => {
  it('a payment turns the order to paid, is reported, and goes back to idle after the hold or a key', () => {
    const paid = play(showing(), [payment(1)]);
    expect(paid.writes).toMatchObject([{ kind: 'payment', payment: { transactionId: uuid(0xc001) } }]);
    expect(paid.sends).toMatchObject([{ type: 'paid', transactionId: uuid(0xc001), orderId: 'DH1', recorded: true }]);
    expect(view(paid.state)).toMatchObject({ kind: 'paid', amount: 50_000, content: 'DH1', holder: LINK });
    expect(statusView(paid.state)).toMatchObject({ state: 'paid', order: null, lastPayment: { orderId: 'DH1' } });
    const held = paid.wakeAtMs ?? 0;
    expect(held - paid.state.nowMs).toBe(10_000);
    expect(view(play(paid.state, [[held, tick]]).state).kind).toBe('idle');
    expect(view(play(paid.state, [dismiss]).state).kind).toBe('idle');
  });

  it('AGT-5 MSG-7 a payment is announced once and answered every time', () => {
    const paid = play(showing(), [payment(1), dismiss]);
    const again = play(paid.state, [payment(1)]);
    expect(types(again)).toEqual(['paid']);
    expect(again.writes).toEqual([]);
    expect(view(again.state).kind).toBe('idle');
  });

  it('AGT-5 a payment is announced once, and can be looked back on', () => {
    const paid = play(showing(), [payment(1), payment(1), payment(2, { pushId: null, amount: 7_000 })]);
    expect(paid.announcements.map((said) => said.transactionId)).toEqual([uuid(0xc001), uuid(0xc002)]);
    const history: BoxEvent = { type: 'key', key: 'history' };
    expect(view(play(paid.state, [history]).state).kind).toBe('paid');
    const looking = play(paid.state, [paidDrawn(1), dismiss, paidDrawn(2), dismiss, history]);
    expect(view(looking.state)).toMatchObject({ kind: 'history', payments: [{ amount: 7_000 }, { amount: 50_000 }] });
    expect(statusView(looking.state)).toMatchObject({ state: 'idle', order: null });
    expect(view(play(looking.state, [push(3)]).state).kind).toBe('payment');
    expect(view(play(showing(), [history]).state).kind).toBe('payment');
    expect(view(play(ready(), [history]).state).kind).toBe('idle');
  });

  it('AGT-5 a payment is shown and reported when the disk fails, flagged as not recorded', () => {
    const step = play(showing(), [{ type: 'unrecorded', cause: payment(1), reason: 'read-only' }]);
    expect(step.writes).toMatchObject([{ kind: 'payment', payment: { transactionId: uuid(0xc001) } }]);
    expect(step.sends).toMatchObject([{ type: 'paid', recorded: false }]);
    expect(view(step.state).kind).toBe('paid');
    expect(play(step.state, [payment(1)]).sends).toMatchObject([{ type: 'paid', recorded: false }]);
  });

  it('an order ends on time although the disk cannot store its end', () => {
    const deadline = activeOrder(showing().stage)?.deadlineMs ?? 0;
    const step = play(showing(), [[deadline, { type: 'unrecorded', cause: tick, reason: 'read-only' }]]);
    expect(step.writes).toMatchObject([{ kind: 'ended', how: 'expired' }]);
    expect(step.sends).toMatchObject([{ type: 'ended', how: 'expired' }]);
  });

  it('AGT-11 a payment that an earlier run may have announced is shown and reported, but not announced, while its journal cannot be read', () => {
    const repeated = payment(1, { repeated: true, paidAtMs: WALL_START_MS - 1 });
    const afresh = play(ready(), [repeated]);
    expect(afresh.announcements).toEqual([]);
    expect(view(afresh.state).kind).toBe('paid');
    expect(afresh.sends).toMatchObject([{ type: 'paid', recorded: true }]);
    expect(play({ ...ready(), journalIntact: true }, [repeated]).announcements).toHaveLength(1);
    expect(play(ready(), [payment(1, { paidAtMs: WALL_START_MS - 1 })]).announcements).toHaveLength(1);
    expect(play(ready(), [payment(1, { repeated: true, paidAtMs: WALL_START_MS + 1 })]).announcements).toHaveLength(1);
  });

  it('AGT-12 a payment has the screen for 3 s at least, and the next ones after it as long while others wait', () => {
    const burst = play(ready(), [payment(1), payment(2), payment(3)]);
    const began = burst.state.nowMs - 2;
    const shows = (n: number) => ({ kind: 'paid', transactionId: uuid(0xc000 + n) });
    expect(view(burst.state)).toMatchObject(shows(1));
    expect(burst.announcements).toHaveLength(3);
    expect(burst.wakeAtMs).toBe(began + 3_000);
    const second = play(burst.state, [paidDrawn(1), [began + 3_000, tick]]);
    expect(view(second.state)).toMatchObject(shows(2));
    const third = play(second.state, [paidDrawn(2), [began + 6_000, tick]]);
    expect(view(third.state)).toMatchObject(shows(3));
    expect(third.state.stage).toMatchObject({ untilMs: began + 16_000 });
    const pushed = play(burst.state, [paidDrawn(1), push(4)]);
    expect(view(pushed.state).kind).toBe('payment');
    const over = play(pushed.state, [drawn(4)]);
    expect(types(over)).toEqual(['shown']);
    expect(view(over.state)).toMatchObject({ kind: 'payment', pushId: uuid(4) });
    const gone = play(over.state, [dismiss]);
    expect(view(gone.state)).toMatchObject(shows(2));
    const others = [free(6), free(7)];
    const besideQr = play(showing(), [...others, paidDrawn(6)]);
    const next = play(besideQr.state, [[besideQr.wakeAtMs ?? 0, tick], paidDrawn(7)]);
    expect(view(next.state)).toMatchObject(shows(7));
    const back = play(next.state, [[20_000, tick]]);
    expect(view(back.state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
    const late = play(third.state, [paidDrawn(3), [began + 10_000, payment(5)]]);
    expect(view(late.state)).toMatchObject(shows(5));
  });

  it('AGT-12 a payment of no waiting order does not cover a QR again, and is shown after it', () => {
    const strays = [1, 2, 3].map((n) => payment(n, { pushId: null, orderId: '' }));
    const burst = play(ready(), [...strays, paidDrawn(1), push(4)]);
    const shown = play(burst.state, [drawn(4)]);
    expect(types(shown)).toEqual(['shown']);
    expect(view(shown.state)).toMatchObject({ kind: 'payment', pushId: uuid(4) });
    const over = play(shown.state, [dismiss]);
    expect(view(over.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc002) });
    // Those that come before the QR is drawn hide it once, not each in its turn: the push has a deadline.
    const covered = play(ready(), [push(4), ...strays, paidDrawn(1)]);
    expect(view(covered.state).kind).toBe('paid');
    const back = play(covered.state, [[covered.wakeAtMs ?? 0, tick], drawn(4)]);
    expect(types(back)).toEqual(['shown']);
    expect(view(back.state)).toMatchObject({ kind: 'payment', pushId: uuid(4) });
    expect(back.state.nowMs - covered.state.nowMs).toBeLessThanOrEqual(3_000);
  });

  it('AGT-12 a payment that hides a QR before its picture is reported lets the QR be reported when it is back, before others', () => {
    const covered = play(ready(), [push(4), payment(1), drawn(4), payment(2), paidDrawn(1)]);
    expect(types(covered)).not.toContain('shown');
    expect(view(covered.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc001) });
    const back = play(covered.state, [[covered.wakeAtMs ?? 0, tick]]);
    expect(view(back.state)).toMatchObject({ kind: 'payment', pushId: uuid(4) });
    expect(types(back)).toEqual([]);
    const shown = play(back.state, [drawn(4)]);
    expect(types(shown)).toEqual(['shown']);
    expect(view(shown.state)).toMatchObject({ kind: 'payment', pushId: uuid(4) });
    const over = play(shown.state, [{ type: 'withdraw', pushId: uuid(4), why: 'cancelled' }]);
    const last = play(over.state, [[over.wakeAtMs ?? 0, tick]]);
    expect(view(last.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc002) });
  });

  it('AGT-5 AGT-6 a payment for another order is shown, then the QR comes back until its own deadline', () => {
    const other = play(showing(), [payment(2, { pushId: null, amount: 7_000 })]);
    expect(view(other.state)).toMatchObject({ kind: 'paid', amount: 7_000 });
    const untilMs = other.state.nowMs + 3_000;
    expect(other.state.stage).toMatchObject({ kind: 'paid', untilMs });
    const back = play(other.state, [[untilMs, tick]]);
    expect(view(back.state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
    const late = play(showing(), [[299_000, free(2)]]);
    const deadline = activeOrder(late.state.stage)?.deadlineMs ?? 0;
    const expired = play(late.state, [[deadline, tick]]);
    expect(expired.sends).toMatchObject([{ type: 'ended', how: 'expired' }]);
    expect(view(expired.state).kind).toBe('paid');
  });

  it('AGT-6 a payment that names no push takes no QR away, whatever its orderId', () => {
    const paid = play(showing(), [free(1), dismiss]);
    expect(activeOrder(paid.state.stage)?.order.pushId).toBe(uuid(1));
  });

  it('AGT-4 a payment before its own push has that push refused when it comes', () => {
    expect(rejection(play(ready(), [payment(1), push(1)]))).toEqual(['sent', 'WITHDRAWN']);
    expect(rejection(play(ready(), [push(1), payment(1)]))).toEqual(['sent', 'REPLACED', 'sent']);
  });
});

describe('the connection', () => {
  it('MSG-6 a box sends unacknowledged reports on every welcome', () => {
    const offline = play(showing(), [connecting, payment(1)]);
    expect(offline.sends).toEqual([]);
    expect(view(offline.state)).toMatchObject({ kind: 'paid', online: false });
    const back = play(offline.state, [registered]);
    expect(types(back)).toEqual(['paid']);
    expect(types(play(back.state, [connecting, registered]))).toEqual(['paid']);
    const acked = play(back.state, [{ type: 'acked', ids: [uuid(0xc001), uuid(99)] }]);
    expect(acked.writes).toEqual([{ kind: 'acked', ids: [uuid(0xc001)] }]);
    expect(play(acked.state, [connecting, registered]).sends).toEqual([]);
  });

  it('MSG-6 a box resends what is not acknowledged in time, for as long as the session lasts', () => {
    const paid = play(showing(), [payment(1), dismiss]);
    expect(paid.wakeAtMs).toBe(paid.state.nowMs - 1 + RESEND_MS);
    const again = play(paid.state, [[paid.wakeAtMs ?? 0, tick]]);
    expect(types(again)).toEqual(['paid']);
    expect(again.wakeAtMs).toBe(again.state.nowMs + RESEND_MS);
    const cut = play(again.state, [connecting]);
    expect(cut.wakeAtMs).toBeUndefined();
    expect(play(cut.state, [[90_000, tick]]).sends).toEqual([]);
    expect(play(again.state, [{ type: 'acked', ids: [uuid(0xc001)] }]).wakeAtMs).toBeUndefined();
  });

  it('MSG-6 a box has a limited number of reports in flight, oldest first, and sends the others as those are acknowledged', () => {
    const events = Array.from({ length: IN_FLIGHT_MAX + 30 }, (_, n) => free(n));
    const offline = play(ready(), [connecting, ...events]).state;
    const ids = (step: { sends: readonly { id?: string }[] }) => step.sends.map((send) => send.id);
    const owed = offline.unsent.map(({ id }) => id);
    const back = play(offline, [registered]);
    expect(ids(back)).toEqual(owed.slice(0, IN_FLIGHT_MAX));
    const rest = play(back.state, [{ type: 'acked', ids: owed.slice(0, 20) }]);
    expect(ids(rest)).toEqual(owed.slice(IN_FLIGHT_MAX, IN_FLIGHT_MAX + 20));
    const silent = play(rest.state, [[rest.state.nowMs + RESEND_MS, tick]]);
    expect(ids(silent)).toEqual(owed.slice(20, 20 + IN_FLIGHT_MAX));
    const settled = play(silent.state, [{ type: 'acked', ids: owed }]);
    expect(settled.state).toMatchObject({ unsent: [], inFlight: [], resendAtMs: undefined });
  });

  it('AGT-10 shows a payment that the display failed to show, once it works again', () => {
    const dark = play(showing(), [{ type: 'draw-failed', pushId: undefined, reason: 'cable out' }, payment(1)]);
    const over = play(dark.state, [[dark.state.nowMs + 10_000, tick]]);
    expect(view(over.state).kind).toBe('idle');
    const back = play(over.state, [idleDrawn]);
    expect(view(back.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc001) });
    expect(back.announcements).toEqual([]);
    const seen = play(back.state, [paidDrawn(1), [60_000, tick]]);
    expect(view(seen.state).kind).toBe('idle');
    expect(seen.state.unconfirmedPayments).toEqual([]);
  });

  it('AGT-10 a display that never confirms does not hold the box on one payment', () => {
    const paid = play(ready(), [payment(1), payment(2)]);
    const ticks: [number, BoxEvent][] = [10_000, 13_000].map((ms) => [paid.state.nowMs + ms, tick]);
    const over = play(paid.state, ticks);
    expect(view(over.state).kind).toBe('idle');
    expect(over.state.unconfirmedPayments).toHaveLength(2);
    const through = play(over.state, [idleDrawn]);
    expect(view(through.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc001) });
    const next = play(through.state, [paidDrawn(1), [through.wakeAtMs ?? 0, tick]]);
    expect((through.wakeAtMs ?? 0) - through.state.nowMs).toBe(3_000);
    expect(view(next.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc002) });
  });

  it('a box keeps unsent reports within its limit and drops ended orders before payments', () => {
    const events = Array.from({ length: UNSENT_MAX + 20 }, (_, n) => payment(n + 10, { pushId: null }));
    const state = play(showing(), [connecting, dismiss, ...events]).state;
    expect(state.unsent).toHaveLength(UNSENT_MAX);
    expect(state.unsent.every((report) => report.type === 'paid')).toBe(true);
  });

  it('a box says why the gateway refuses it, until it no longer does', () => {
    const refused = play(fresh(), [{ type: 'refused', code: 'NOT_REGISTERED', reason: 'unknown serialNumber' }]);
    expect(view(refused.state)).toMatchObject({ kind: 'fault', code: 'NOT_REGISTERED', online: false });
    expect(statusView(refused.state).fault).toMatchObject({ reason: 'unknown serialNumber' });
    expect(view(play(refused.state, [registered]).state).kind).toBe('idle');
  });

  it('MSG-10 a box ends an order that the gateway does not know as open, and keeps one that it does', () => {
    const forgotten = play(showing(), [connecting, registeredAt(0, LINK, [uuid(2)])]);
    expect(forgotten.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'withdrawn' }]);
    expect(view(forgotten.state).kind).toBe('idle');
    const paid = play(showing(), [free(2), registeredAt(0, LINK, [])]);
    expect(view(paid.state).kind).toBe('paid');
    expect(activeOrder(paid.state.stage)).toBeUndefined();
    expect(view(play(showing(), [registeredAt(0, LINK, [uuid(1)])]).state).kind).toBe('payment');
  });

  it('MSG-10 a box refuses an order that has not been on the screen yet and is not open any more', () => {
    const waiting = play(ready(), [push(1), connecting]).state;
    const gone = play(waiting, [registeredAt(0, LINK, [])]);
    expect(gone.sends).toMatchObject([{ type: 'rejected', pushId: uuid(1), code: 'WITHDRAWN' }]);
    expect(view(gone.state).kind).toBe('idle');
    expect(view(play(waiting, [registeredAt(0, LINK, [uuid(1)])]).state).kind).toBe('payment');
  });

  it('AGT-3 a box ends an order when an account with the same number at another bank is linked', () => {
    const other = play(showing(), [registeredAt(0, { ...LINK, bankCode: 'VCB' })]);
    expect(other.sends).toMatchObject([{ type: 'ended', pushId: uuid(1), how: 'withdrawn' }]);
    expect(activeOrder(other.state.stage)).toBeUndefined();
  });

  it.each(['SUPERSEDED', 'NOT_REGISTERED'] as const)('MSG-8 takes its QR away when it is refused as %s', (code) => {
    const refused = play(showing(), [{ type: 'refused', code, reason: 'another agent' }]);
    expect(view(refused.state)).toMatchObject({ kind: 'fault', code });
    expect(refused.writes).toMatchObject([{ kind: 'ended', pushId: uuid(1), how: 'withdrawn' }]);
    const paid = play(showing(), [free(2), { type: 'refused', code, reason: 'another agent' }]);
    expect(view(paid.state).kind).toBe('paid');
    expect(activeOrder(paid.state.stage)).toBeUndefined();
  });

  it('a box goes from starting over connecting to idle', () => {
    expect(statusView(fresh()).state).toBe('starting');
    const dialling = play(fresh(), [connecting]);
    expect(statusView(dialling.state)).toMatchObject({ state: 'registering', online: false });
    expect(statusView(play(dialling.state, [registered]).state)).toMatchObject({ state: 'idle', online: true });
  });
});

const anyEvent: fc.Arbitrary<BoxEvent> = fc.oneof(
  fc.constant<BoxEvent>({ type: 'connecting' }),
  fc.constant(registered),
  fc.constant(registeredAt(0, null)),
  fc.constant<BoxEvent>({ type: 'refused', code: 'NOT_REGISTERED', reason: 'no' }),
  fc.integer({ min: 1, max: 5 }).map((n) => push(n)),
  fc.integer({ min: 1, max: 5 }).map((n) => push(n, { expiresInMs: n * 3_000 })),
  fc.integer({ min: 1, max: 5 }).map(drawn),
  fc.integer({ min: 1, max: 5 }).map(paidDrawn),
  fc.integer({ min: 1, max: 5 }).map((n) => payment(n)),
  fc.integer({ min: 1, max: 5 }).map((n) => free(n)),
  fc.integer({ min: 1, max: 5 }).map<BoxEvent>((n) => ({ type: 'withdraw', pushId: uuid(n), why: 'cancelled' })),
  fc.integer({ min: 1, max: 5 }).map<BoxEvent>((n) => ({ type: 'draw-failed', pushId: uuid(n), reason: 'x' })),
  fc.integer({ min: 1, max: 5 }).map<BoxEvent>((n) => ({ type: 'unreadable', pushId: uuid(n), reason: 'x' })),
  fc.integer({ min: 1, max: 5 }).map<BoxEvent>((n) => ({ type: 'acked', ids: [uuid(n), uuid(0xc000 + n)] })),
  fc.integer({ min: 1, max: 5 }).map<BoxEvent>((n) => ({ type: 'unrecorded', cause: payment(n), reason: 'disk' })),
  fc.constantFrom('dismiss' as const, 'repeat' as const).map((key): BoxEvent => ({ type: 'key', key })),
  fc.constant<BoxEvent>(tick),
);

describe('whatever happens', () => {
  it('AGT-7 an event that does not fit the state changes nothing', () => {
    const accountDrawn: BoxEvent = { type: 'drawn', pushId: undefined, transactionId: undefined, account: LINK };
    const misfits: BoxEvent[] = [drawn(7), accountDrawn, { type: 'acked', ids: [uuid(7)] }, tick];
    for (const before of [fresh(), ready(), showing()]) {
      for (const event of misfits) {
        const step = reduce(before, event, at(before.nowMs));
        expect(step).toMatchObject({ writes: [], sends: [] });
        expect(step.state).toEqual(before);
      }
    }
    expect(reduce(ready(), dismiss, at(2)).state).toEqual(ready());
  });

  it('a box announces no transaction twice, confirms no push twice, and shows no QR past its deadline', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(anyEvent, fc.integer({ min: 0, max: 4_000 })), { maxLength: 60 }), (events) => {
        let state: BoxState = fresh();
        let now = 0;
        const announced: string[] = [];
        const confirmed: string[] = [];
        for (const [event, passed] of events) {
          now += passed;
          const step = reduce(state, event, at(now));
          for (const entry of step.writes) {
            if (entry.kind === 'payment') announced.push(entry.payment.transactionId);
            if (entry.kind === 'shown') confirmed.push(entry.pushId);
          }
          state = step.state;
          for (const [invariant, holds] of Object.entries(INVARIANTS)) expect(holds(state), invariant).toBe(true);
          const wakeAtMs = step.wakeAtMs ?? Number.POSITIVE_INFINITY;
          expect(wakeAtMs).toBeGreaterThan(now);
          expect(state.stage.kind === 'idle' || wakeAtMs < Number.POSITIVE_INFINITY).toBe(true);
        }
        expect(new Set(announced).size).toBe(announced.length);
        expect(new Set(confirmed).size).toBe(confirmed.length);
      }),
      { numRuns: 2_000 },
    );
  });

  it('a box shows the expiry by the calendar of the gateway', () => {
    expect(statusView(showing()).order?.expiresAt).toBe(new Date(WALL_START_MS + 300_000).toISOString());
  });
});

function qr(change: Partial<Parameters<typeof encodeVietQr>[0]>): string {
  const base = { bin: '970422', account: LINK.bankAccount, service: 'account', initiation: 'dynamic' } as const;
  return encodeVietQr({ ...base, amount: 50_000, purpose: 'DH1', ...change });
}
