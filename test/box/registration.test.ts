import { describe, expect, it } from 'vitest';
import { replay } from '../../src/device/box/memory.ts';
import { reduce } from '../../src/device/box/reduce.ts';
import { type BoxEvent, type BoxState, isSameAccount, type Step } from '../../src/device/box/state.ts';
import { statusView, view } from '../../src/device/box/view.ts';
import type { LinkedAccount } from '../../src/protocol/messages.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';
import { fc } from '../support/properties.ts';
import {
  accountDrawn,
  connecting,
  dismiss,
  drawn,
  idleDrawn,
  paidDrawn,
  payment,
  push,
  registered,
  registeredAt,
  tick,
} from './events.ts';
import { at, CONFIG, LINK, OTHER, uuid, WALL_START_MS } from './samples.ts';
import { fresh, play, revived, showing } from './support.ts';

const THIRD: LinkedAccount = { ...OTHER, bankAccount: '5544332211' };
const welcome = (link: LinkedAccount | null) => registeredAt(0, link);
const kinds = ({ writes }: Pick<Step, 'writes'>) => writes.map(({ kind }) => kind);
/** The event comes after everything that time alone brings. */
const later = (state: BoxState, event = tick) => play(state, [[state.nowMs + CONFIG.endedHoldMs, event]]);
const known = () => play(fresh(), [connecting, registered]);
const changed = () => play(known().state, [connecting, welcome(OTHER)]);
const told = () => play(changed().state, [accountDrawn(OTHER)]);

describe('the account of a box', () => {
  it('AGT-13 the first account that a box knows is written down, and not shown as changed', () => {
    const first = known();
    expect(first.writes).toEqual([{ kind: 'account', account: LINK, announcedAtMs: WALL_START_MS + 2 }]);
    expect(view(first.state).kind).toBe('idle');
    const again = play(first.state, [connecting, registered]);
    expect(again.writes).toEqual([]);
    expect(view(again.state).kind).toBe('idle');
    const afterRestart = play(revived(first.writes, at(50)), [[50, connecting], registered]);
    expect(afterRestart.writes).toEqual([]);
    expect(view(afterRestart.state).kind).toBe('idle');
  });

  it('AGT-13 a changed account is shown with the one before, for a while from when people can see it', () => {
    const before = changed();
    expect(view(before.state)).toEqual({ kind: 'account', holder: OTHER, previous: LINK, online: true });
    expect(statusView(before.state).state).toBe('idle');
    expect(before.writes).toEqual([]);
    const seenAtMs = before.state.nowMs + 4_000;
    const seen = play(before.state, [[seenAtMs, accountDrawn(OTHER)]]);
    expect(seen.wakeAtMs).toBe(seenAtMs + CONFIG.endedHoldMs);
    const after = play(seen.state, [[seenAtMs + CONFIG.endedHoldMs, tick]]);
    expect(after.writes).toMatchObject([{ kind: 'account', account: OTHER }]);
    expect(view(after.state)).toMatchObject({ kind: 'idle', holder: OTHER });
    expect(view(play(after.state, [connecting, welcome(OTHER)]).state).kind).toBe('idle');
  });

  it('AGT-13 a changed account is shown for 5 s at least, where nothing else stays on the screen', () => {
    const config = { ...CONFIG, endedHoldMs: 0 };
    const start = { ...changed().state, config };
    const first = play({ ...start, stage: { kind: 'idle' } }, [connecting, welcome(OTHER)]);
    expect(view(first.state).kind).toBe('account');
    const seen = play(first.state, [accountDrawn(OTHER)]);
    expect(seen.wakeAtMs).toBe(seen.state.nowMs + 5_000);
  });

  it('AGT-13 the screen of a changed account may be dismissed once it was seen', () => {
    const dismissed = play(told().state, [dismiss]);
    expect(kinds(dismissed)).toEqual(['account']);
    expect(view(dismissed.state).kind).toBe('idle');
    const unseen = play(changed().state, [dismiss]);
    expect(kinds(unseen)).toEqual([]);
    expect(view(unseen.state).kind).toBe('account');
  });

  it('AGT-13 an account is shown after a restart when it changed while the box was off, or lost power before the end', () => {
    const off = play(revived(known().writes, at(50)), [[50, connecting], welcome(OTHER)]);
    expect(view(off.state)).toMatchObject({ kind: 'account', holder: OTHER, previous: LINK });
    const cut = play(revived([...known().writes, ...told().writes], at(60)), [[60, connecting], welcome(OTHER)]);
    expect(view(cut.state).kind).toBe('account');
    const whole = [...known().writes, ...told().writes, ...later(told().state).writes];
    expect(view(play(revived(whole, at(70)), [[70, connecting], welcome(OTHER)]).state).kind).toBe('idle');
    expect(view(play(revived(whole, at(70)), [[70, connecting], welcome(LINK)]).state)).toMatchObject({
      kind: 'account',
      holder: LINK,
      previous: OTHER,
    });
  });

  it('AGT-13 a changed account is shown until a display has confirmed it', () => {
    const unconfirmed = later(changed().state);
    expect(view(unconfirmed.state).kind).toBe('account');
    const dark = later(play(changed().state, [{ type: 'draw-failed', pushId: undefined, reason: 'unplugged' }]).state);
    expect(view(dark.state).kind).toBe('idle');
    expect(dark.writes).toEqual([]);
    const back = play(dark.state, [idleDrawn]);
    expect(view(back.state).kind).toBe('account');
  });

  it('AGT-13 a changed account is compared with the one that people know, whatever came between', () => {
    const unlinked = play(known().state, [welcome(null)]);
    expect(view(unlinked.state).kind).toBe('unlinked');
    expect(view(play(unlinked.state, [welcome(LINK)]).state).kind).toBe('idle');
    expect(view(play(unlinked.state, [welcome(OTHER)]).state)).toMatchObject({ kind: 'account', previous: LINK });
    expect(view(play(changed().state, [welcome(THIRD)]).state)).toMatchObject({ holder: THIRD, previous: LINK });
    expect(view(play(changed().state, [welcome(LINK)]).state).kind).toBe('idle');
    expect(view(play(told().state, [welcome(null)]).state).kind).toBe('unlinked');
    const renamed = play(known().state, [welcome({ ...LINK, userBankName: 'NGUYEN VAN AN' })]);
    expect(view(renamed.state)).toMatchObject({ kind: 'idle', holder: { userBankName: 'NGUYEN VAN AN' } });
  });

  it('AGT-13 a changed account is not confirmed by the picture of another', () => {
    const late = play(changed().state, [welcome(THIRD), accountDrawn(OTHER)]);
    expect(kinds(later(late.state))).toEqual([]);
    const reconnected = play(told().state, [connecting, welcome(OTHER)]);
    expect(reconnected.state.stage).toEqual(told().state.stage);
  });

  it('AGT-3 AGT-13 a changed account covers no QR and no payment, and is shown after them', () => {
    const ended = play(showing(), [welcome(OTHER)]);
    expect(view(ended.state).kind).toBe('cancelled');
    expect(view(later(ended.state).state).kind).toBe('account');
    const pushed = play(told().state, [push(2, pushTo(OTHER)), drawn(2)]);
    expect(view(pushed.state)).toMatchObject({ kind: 'payment', pushId: uuid(2) });
    const over = play(pushed.state, [{ type: 'withdraw', pushId: uuid(2), why: 'timeout' }]);
    expect(view(over.state).kind).toBe('account');
    const paid = play(told().state, [payment(3), paidDrawn(3)]);
    expect(view(paid.state)).toMatchObject({ kind: 'paid', transactionId: uuid(0xc003) });
    expect(view(play(paid.state, [[paid.wakeAtMs ?? 0, tick]]).state).kind).toBe('account');
    const unseen = play(known().state, [payment(4), welcome(OTHER)]);
    expect(view(unseen.state).kind).toBe('paid');
  });

  it('AGT-5 AGT-13 a changed account is shown when a journal that comes late has another one', () => {
    const living = play(fresh(), [connecting, welcome(OTHER)]);
    const after = play(living.state, [{ type: 'journal-read', entries: known().writes, intact: true }]);
    expect(view(after.state)).toMatchObject({ kind: 'account', holder: OTHER, previous: LINK });
    // The power fails before anybody could read it.
    const disk = [...known().writes, ...living.writes, ...after.writes];
    expect(replay(disk).announcedAccount).toEqual(LINK);
  });

  it('AGT-13 a changed account is shown, again and again, whatever the order of events, and never over a QR or a payment', () => {
    const events: readonly BoxEvent[] = [
      ...[connecting, tick, push(1), drawn(1), payment(2), paidDrawn(2), payment(5), paidDrawn(5)],
      ...[LINK, OTHER, null].map(welcome),
      ...[LINK, OTHER].map(accountDrawn),
      dismiss,
      { type: 'key', key: 'history' },
      { type: 'draw-failed', pushId: undefined, reason: 'unplugged' },
      { type: 'enrolling', code: 'C', url: 'U', expiresInMs: 90_000 },
    ];
    const steps = fc.array(fc.tuple(fc.constantFrom(...events), fc.integer({ min: 0, max: 6_000 })), { maxLength: 40 });
    fc.assert(
      fc.property(steps, (history) => {
        let state = fresh();
        let now = 0;
        for (const [event, passed] of history) {
          now += passed;
          const { stage: was } = state;
          const step = reduce(state, event, at(now));
          state = step.state;
          const { stage, announcedAccount: toldLink, account: link } = state;
          if (stage.kind === 'account') {
            expect(stage).toMatchObject({ holder: link, previous: toldLink });
            const isPaid = was.kind === 'paid' && was.untilMs > now;
            expect(isPaid && event.type !== 'key').toBe(false);
          }
          for (const entry of step.writes) if (entry.kind === 'account') expect(toldLink).toEqual(entry.account);
        }
        // A display that is through with all that came before has shown nothing of it, or people were told.
        const last = view(play(state, [[now + 1, idleDrawn]]).state);
        if (last.kind === 'idle') expect(isSameAccount(last.holder, state.announcedAccount)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a box without a secret', () => {
  const enrolling = (code = '7KQF-2M8C-4TZN', expiresInMs = 600_000): BoxEvent => ({
    type: 'enrolling',
    code,
    url: `https://gateway.example.vn/#${code}`,
    expiresInMs,
  });

  it('ENR-1 a box without a secret shows its code, and what is left of it in minutes', () => {
    const step = play(fresh(), [[1_000, enrolling()]]);
    expect(view(step.state)).toEqual({
      kind: 'enrol',
      code: '7KQF-2M8C-4TZN',
      url: 'https://gateway.example.vn/#7KQF-2M8C-4TZN',
      terminalCode: CONFIG.terminalCode,
      serialNumber: CONFIG.serialNumber,
      minutesLeft: 10,
    });
    expect(statusView(step.state)).toMatchObject({
      state: 'registering',
      online: false,
      enrolment: { code: '7KQF-2M8C-4TZN', expiresAt: new Date(WALL_START_MS + 601_000).toISOString() },
    });
    expect(step.wakeAtMs).toBe(61_000);
    const next = play(step.state, [[61_000, tick]]);
    expect(view(next.state)).toMatchObject({ kind: 'enrol', minutesLeft: 9 });
    expect(next.wakeAtMs).toBe(121_000);
    expect(step.writes).toEqual([]);
  });

  it('ENR-1 a box shows no code that has expired, and the newest of several', () => {
    const step = play(fresh(), [[1_000, enrolling()]]);
    const last = play(step.state, [[600_999, tick]]);
    expect(view(last.state)).toMatchObject({ kind: 'enrol', minutesLeft: 1 });
    expect(last.wakeAtMs).toBe(601_000);
    const spent = play(step.state, [[601_000, tick]]);
    expect(view(spent.state).kind).toBe('connecting');
    expect(statusView(spent.state).enrolment).toBeNull();
    expect(spent.wakeAtMs).toBeUndefined();
    expect(view(play(step.state, [enrolling('AAAA-BBBB-CCCC')]).state)).toMatchObject({ code: 'AAAA-BBBB-CCCC' });
  });

  it.each<[string, BoxEvent, string]>([
    ['looks for its gateway', connecting, 'connecting'],
    ['is registered', registered, 'idle'],
    ['is refused', { type: 'refused', code: 'NOT_REGISTERED', reason: 'unknown' }, 'fault'],
  ])('ENR-1 shows it no more once it %s', (_what, event, kind) => {
    const after = play(fresh(), [enrolling(), event]);
    expect(view(after.state).kind).toBe(kind);
    expect(after.state.enrolment).toBeUndefined();
  });

  it('ENR-1 a box asks for a new code, whatever the gateway refused before', () => {
    const refused = play(fresh(), [connecting, { type: 'refused', code: 'NOT_REGISTERED', reason: 'unknown' }]);
    expect(view(refused.state).kind).toBe('fault');
    expect(view(play(refused.state, [enrolling()]).state).kind).toBe('enrol');
  });

  it('ENR-1 a box removes no QR and no payment from the screen for its code', () => {
    const before = showing();
    expect(view(play(before, [enrolling()]).state)).toMatchObject({ kind: 'payment', pushId: uuid(1) });
    const paid = play(before, [payment(1), enrolling()]);
    expect(view(paid.state).kind).toBe('paid');
    const seen = play(paid.state, [paidDrawn(1)]);
    expect(view(play(seen.state, [[paid.wakeAtMs ?? 0, tick]]).state).kind).toBe('enrol');
  });
});

describe('a link that is not encrypted', () => {
  it('TLS-1 every screen that waits says that the link is not encrypted', () => {
    for (const plainLink of [false, true]) {
      const start = { ...fresh(), config: { ...CONFIG, plainLink } };
      for (const events of [[connecting], [connecting, registered], [connecting, welcome(null)]]) {
        expect(view(play(start, events).state)).toMatchObject({ plainLink });
      }
    }
  });
});

/** A push to another account, with a QR that names it. */
function pushTo(link: LinkedAccount) {
  const qr = { bin: '970436', account: link.bankAccount, service: 'account', initiation: 'dynamic' } as const;
  return { ...link, qrCode: encodeVietQr({ ...qr, amount: 50_000, purpose: 'DH2' }) };
}
