import type { TransportIo } from '../../../src/device/agent/contract.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { LIMITS } from '../../../src/protocol/fields.ts';
import { readJws } from '../../../src/protocol/jws.ts';
import type { UpMessage } from '../../../src/protocol/messages.ts';
import type { Mutant, Wire } from '../box-fixture.ts';
import { CARELESS_WIRE_MUTANTS } from './careless.ts';
import { GULLIBLE_MUTANTS } from './gullible.ts';
import { HTTP_MUTANTS } from './http.ts';
import { changedQr, onPayment, onShow, PAYLOAD_MUTANTS, qrIn } from './payloads.ts';
import { REAL_MONEY_MUTANTS } from './real-money.ts';
import { REPORT_MUTANTS } from './reports.ts';

/** What is slow to be seen on the panel is later by so much. */
const LAG_MS = 2_000;
/** A quick panel needs this to draw: less than between two looks of a judge that only polls. */
const DRAWING_MS = 15;
const FROZEN_MS = 8_000;
/** A longer payload is too dense for the panel of a mutant. */
const QR_CHARS_READABLE = 300;

/** Boxes that hear or say something wrong: what they get and what they send is changed on the way. */
export const WIRE_MUTANTS: Record<string, Mutant> = {
  'says shown before the QR is on the screen': {
    breaks: ['AGT-2'],
    panel: (drawn, nowMs) => drawn.findLast(({ atMs }) => atMs <= nowMs - LAG_MS) ?? { atMs: 0, qr: undefined },
  },
  'says shown when it begins to draw, on a panel that is quick': {
    breaks: ['AGT-2'],
    panel: (drawn, nowMs) => drawn.findLast(({ atMs }) => atMs <= nowMs - DRAWING_MS) ?? { atMs: 0, qr: undefined },
  },
  'says that a QR is shown which nobody can read': {
    breaks: ['AGT-9'],
    panel: (drawn) => {
      const last = drawn.at(-1);
      return (last?.qr ?? '').length < QR_CHARS_READABLE ? last : { atMs: 0, qr: undefined };
    },
  },
  'shows another QR than it was told to': {
    breaks: ['AGT-2'],
    wire: onShow((show) => ({ ...show, qrCode: changedQr(show, { purpose: 'SOMETHING ELSE' }) })),
  },
  'says accepted after shown': {
    breaks: ['AGT-2'],
    wire: () => {
      let held: UpMessage[] = [];
      return {
        up: (message) => {
          if (message.type === 'accepted') {
            held = [message];
            return [];
          }
          const all = [message, ...held];
          held = [];
          return all;
        },
      };
    },
  },
  'sends a message that is not as its schema says': {
    // The next message leaves out its number.
    breaks: ['MSG-1', 'SIG-1'],
    wire: () => ({
      up: (message) =>
        message.type === 'accepted'
          ? [message, { ...message, id: crypto.randomUUID(), v: 2 } as unknown as UpMessage]
          : [message],
    }),
  },
  'says what no box says': {
    // What is not taken does not count, and the next message leaves out its number.
    breaks: ['MSG-2', 'SIG-1'],
    wire: () => ({
      up: (message) =>
        message.type === 'accepted'
          ? [message, { ...message, id: crypto.randomUUID(), type: 'seen' } as unknown as UpMessage]
          : [message],
    }),
  },
  'does not look at the amount in the QR': {
    breaks: ['AGT-1'],
    wire: onShow((show) => ({ ...show, amount: qrIn(show)?.amount ?? show.amount })),
  },
  'does not look at the account in the QR': {
    breaks: ['AGT-1'],
    wire: onShow((show) => ({ ...show, qrCode: changedQr(show, { account: show.bankAccount }) })),
  },
  'shows a QR to a card': {
    breaks: ['AGT-1'],
    wire: onShow((show) => ({ ...show, qrCode: changedQr(show, { service: 'account' }) })),
  },
  'takes a push that is over when it comes': {
    breaks: ['AGT-1'],
    wire: ({ clock }) => {
      const bornMs = clock.monotonicMs();
      return onShow((show) => {
        const isOver = show.sessionMs + show.expiresInMs < clock.monotonicMs() - bornMs;
        return isOver ? { ...show, expiresInMs: 60_000 } : show;
      })();
    },
  },
  ...GULLIBLE_MUTANTS,
  ...CARELESS_WIRE_MUTANTS,
  ...PAYLOAD_MUTANTS,
  ...HTTP_MUTANTS,
  ...REPORT_MUTANTS,
  ...REAL_MONEY_MUTANTS,
  'does not follow the gateway to another key': {
    breaks: ['SIG-5'],
    wire: ({ seal }) => {
      let first: string | undefined;
      return {
        seal: {
          open: (bytes) => {
            const jws = readJws(bytes);
            const kid = typeof jws === 'string' ? undefined : jws.head.kid;
            const opened = first === undefined || kid === first ? seal.open(bytes) : unknownKey();
            if (opened.ok) first ??= kid;
            return opened;
          },
        },
      };
    },
  },
  'has another secret': {
    breaks: ['TOP-2'],
    setup: (setup) => ({ ...setup, identity: { ...setup.identity, secret: 'what nobody else knows' } }),
  },
  'has another secret, over HTTP': {
    breaks: ['TOP-2'],
    transport: 'http',
    setup: (setup) => ({ ...setup, identity: { ...setup.identity, secret: 'what nobody else knows' } }),
  },
  'gives no sign of life': {
    breaks: ['MSG-11'],
    needs: ['slow'],
    wire: takenForHeard(() => []),
  },
  'does not care whether it is heard': {
    breaks: ['MSG-11'],
    needs: ['slow'],
    wire: takenForHeard((message) => [message]),
  },
  'does not come back when it is told that its session is over': {
    breaks: ['MSG-12'],
    wire: () => ({
      down: (message) => (message.type === 'refused' && message.code === 'SESSION_ENDED' ? [] : [message]),
    }),
  },
  'has another serial number': {
    breaks: ['MSG-4'],
    setup: (setup) => ({ ...setup, identity: { ...setup.identity, serialNumber: 'VVB999999' } }),
  },
  'has a serial number that is none': {
    breaks: ['LIM-5'],
    setup: (setup) => ({ ...setup, identity: { ...setup.identity, serialNumber: 'VVB12' } }),
  },
  'sends a message of more than 16,384 bytes': {
    breaks: ['LIM-4', 'SIG-1'],
    wire: () => ({
      up: (message) =>
        message.type === 'accepted'
          ? [message, { ...message, id: crypto.randomUUID(), note: 'x'.repeat(LIMITS.messageBytesMax) } as UpMessage]
          : [message],
    }),
  },
  'says hello without a seal': {
    breaks: ['SIG-1'],
    wire: ({ seal }) => ({
      seal: {
        seal: (message, challenge) => (message.type === 'hello' ? encode(message) : seal.seal(message, challenge)),
      },
    }),
  },
  'answers another challenge': {
    breaks: ['SIG-2'],
    wire: ({ seal }) => ({
      seal: { seal: (message) => seal.seal(message, '00000000-0000-4000-8000-000000000000') },
    }),
  },
  'leaves out numbers': {
    breaks: ['SIG-1'],
    wire: ({ seal }) => ({
      seal: {
        seal: (message, challenge) => {
          if (message.type === 'paid') seal.seal(message, challenge);
          return seal.seal(message, challenge);
        },
      },
    }),
  },
  'shows a push whose withdrawal came before it': {
    breaks: ['AGT-4'],
    wire: () => {
      const known = new Set<string>();
      return {
        down: async (message, say) => {
          if (message.type === 'show') known.add(message.pushId);
          if (message.type !== 'withdraw' || known.has(message.pushId)) return [message];
          const { v, id, sentAtMs, sessionId, pushId } = message;
          await say({ v, id, sentAtMs, sessionId, type: 'rejected', pushId, code: 'WITHDRAWN', reason: 'unknown' });
          return [];
        },
      };
    },
  },
  'keeps an expired QR on the screen': {
    breaks: ['AGT-3', 'AGT-6'],
    wire: ({ clock }, panel) => ({
      up: (message) => {
        if (message.type === 'ended' && message.how === 'expired') {
          panel.isFrozen = true;
          void clock.sleep(FROZEN_MS).then(() => {
            panel.isFrozen = false;
          });
        }
        return [message];
      },
    }),
  },
  'does not say that a push has expired': {
    breaks: ['AGT-3', 'AGT-8', 'MSG-5'],
    needs: ['restart', 'slow'],
    wire: () => ({ up: (message) => (message.type === 'ended' && message.how === 'expired' ? [] : [message]) }),
  },
  'goes by the calendar for the end of a push': {
    breaks: ['MSG-5'],
    wire: ({ clock }) =>
      onShow((show) => ({ ...show, expiresInMs: Math.max(1_000, show.expiresAtMs - clock.wallMs()) }))(),
  },
  'keeps the QR of an order that is paid': {
    breaks: ['AGT-5'],
    wire: onPayment((payment) => (payment.late ? payment : { ...payment, pushId: null })),
  },
  'ends the order on the screen for the payment of another': {
    breaks: ['AGT-6'],
    wire: () => {
      let onScreen: string | null = null;
      return {
        down: (message) => {
          if (message.type === 'show') onScreen = message.pushId;
          if (message.type !== 'payment' || message.pushId !== null || onScreen === null) return [message];
          const { v, id, sentAtMs, sessionId } = message;
          return [message, { v, id, sentAtMs, sessionId, type: 'withdraw', pushId: onScreen, why: 'paid' }];
        },
      };
    },
  },
  'says another amount than was paid': {
    breaks: ['AGT-11', 'AGT-5', 'LIM-1', 'MSG-7'],
    wire: () => ({ up: (message) => [message.type === 'paid' ? { ...message, amount: message.amount - 1 } : message] }),
  },
  'does not say what it shows in its hello': {
    breaks: ['MSG-4'],
    wire: () => ({ up: (message) => [message.type === 'hello' ? { ...message, shownPushId: null } : message] }),
  },
  'comes back after it was superseded': {
    breaks: ['MSG-8'],
    needs: ['restart', 'slow'],
    wire: () => ({
      down: (message) => [
        message.type === 'refused' && message.code === 'SUPERSEDED' ? { ...message, code: 'NOT_REGISTERED' } : message,
      ],
    }),
  },
};

/** A box that takes every sign of life for answered. */
function takenForHeard(up: (alive: UpMessage) => UpMessage[]): (io: TransportIo) => Wire {
  return (io) => ({
    up: (message) => {
      if (message.type !== 'alive') return [message];
      io.heard(message.id);
      return up(message);
    },
  });
}

function unknownKey() {
  return { ok: false as const, code: 'KEY_UNKNOWN' as const, reason: 'not the first key' };
}
