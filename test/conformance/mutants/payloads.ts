import { qrOf } from '../../../src/bench/judges/box/orders.ts';
import type { DownOf } from '../../../src/protocol/messages.ts';
import { decodeVietQr, encodeVietQr } from '../../../src/protocol/vietqr.ts';
import type { Mutant, Wire } from '../box-fixture.ts';

/** What a shop writes is shorter. */
const CONTENT_CHARS_USUAL = 50;

/** Boxes that take a QR that is wrong, or refuse one that is right. */
export const PAYLOAD_MUTANTS: Record<string, Mutant> = {
  'reads past a length that is no number': { breaks: ['QRP-1'], wire: mending((qr) => qr.includes('80XXab')) },
  'does not look at the currency': { breaks: ['QRP-2'], wire: mending((qr) => qr.includes('5303840')) },
  'wants the tags of a QR in one order': {
    breaks: ['QRP-2'],
    wire: refusing(({ qrCode }) => qrCode.includes('5802VN5303704')),
  },
  'takes a CRC in small letters': { breaks: ['QRP-3'], wire: mending((qr) => /[a-f]/.test(qr.slice(-4))) },
  'takes what follows the CRC': { breaks: ['QRP-4'], wire: mending((qr) => qr.endsWith(' ')) },
  'does not look at the first character': { breaks: ['QRP-5'], wire: mending((qr) => qr.startsWith('1')) },
  'shows a QR that asks for a tip': { breaks: ['QRP-7'], wire: mending((qr) => qr.includes('550201')) },
  'refuses tags that it does not know': {
    breaks: ['QRP-7'],
    wire: refusing(({ qrCode }) => qrCode.includes('8005bench')),
  },
  'wants an account of digits': { breaks: ['LIM-2'], wire: refusing(({ bankAccount }) => /\D/.test(bankAccount)) },
  'has no room for a long content': {
    breaks: ['LIM-3'],
    wire: refusing(({ content }) => content.length > CONTENT_CHARS_USUAL),
  },
};

/** Takes such a payload for the right one of its order. */
function mending(isWrong: (qr: string) => boolean): () => Wire {
  return onShow((show) => (isWrong(show.qrCode) ? { ...show, qrCode: qrOf(show) } : show));
}

/** Refuses such a push, although it is right. */
function refusing(isOdd: (show: DownOf<'show'>) => boolean): () => Wire {
  return () => ({
    down: async (message, say) => {
      if (message.type !== 'show' || !isOdd(message)) return [message];
      const { v, id, sentAtMs, sessionId, pushId } = message;
      await say({ v, id, sentAtMs, sessionId, type: 'rejected', pushId, code: 'QR_INVALID', reason: 'a mutant' });
      return [];
    },
  });
}

export function onShow(change: (show: DownOf<'show'>) => DownOf<'show'>): () => Wire {
  return () => ({ down: (message) => [message.type === 'show' ? change(message) : message] });
}

export function onPayment(change: (payment: DownOf<'payment'>) => DownOf<'payment'>): () => Wire {
  return () => ({ down: (message) => [message.type === 'payment' ? change(message) : message] });
}

export function qrIn({ qrCode }: DownOf<'show'>) {
  const decoded = decodeVietQr(qrCode);
  return decoded.ok ? decoded.value : undefined;
}

/** The QR with other words in it; as it is where it is none, or longer than any that a shop makes. */
export function changedQr(show: DownOf<'show'>, change: object): string {
  const qr = qrIn(show);
  return qr === undefined || show.qrCode.length > 200 ? show.qrCode : encodeVietQr({ ...qr, ...change });
}
