import type { InboundMessage } from '../../../src/device/agent/contract.ts';
import type { Mutant, Wire } from '../box-fixture.ts';

/** Boxes that report or speak otherwise. */
export const REPORT_MUTANTS: Record<string, Mutant> = {
  'announces a payment that is told again': {
    breaks: ['AGT-5'],
    wire: announcingAgain(),
  },
  'sends reports once in a session': {
    breaks: ['MSG-6'],
    needs: ['slow'],
    wire: () => reportingOnce(new Set()),
  },
  'forgets its reports when the link breaks': {
    breaks: ['MSG-6'],
    wire: forgetful(),
  },
  'says another amount aloud than was paid': {
    breaks: ['AGT-5'],
    voice: (voice) => ({ ...voice, words: voice.words?.replace('mươi', 'trăm') ?? null }),
  },
  'says each payment aloud twice': {
    breaks: ['AGT-5'],
    voice: (voice) => ({ ...voice, said: 2 * voice.said }),
  },
};

/** A repetition looks like another payment to the box, and its report like one of the first. */
function announcingAgain(): () => Wire {
  const originals = new Map<string, string>();
  let count = 0;
  return () => ({
    down: (message): InboundMessage[] => {
      if (message.type === 'ack') {
        const renamed = [...originals].filter(([, id]) => message.reportIds.includes(id)).map(([id]) => id);
        return [{ ...message, reportIds: [...message.reportIds, ...renamed] }];
      }
      if (message.type !== 'payment' || !message.repeated) return [message];
      count += 1;
      const transactionId = `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`;
      originals.set(transactionId, message.transactionId);
      return [{ ...message, transactionId }];
    },
    up: (message) => {
      const original = message.type === 'paid' ? originals.get(message.transactionId) : undefined;
      if (message.type !== 'paid' || original === undefined) return [message];
      return [{ ...message, id: original, transactionId: original }];
    },
  });
}

/** Says a report that was said before only where it is asked for. */
function reportingOnce(said: Set<string>): Wire {
  const asked = new Set<string>();
  return {
    down: (message) => {
      if (message.type === 'payment') asked.add(message.transactionId);
      return [message];
    },
    up: (message) => {
      if (message.type !== 'paid' && message.type !== 'ended') return [message];
      const isNew = !said.has(message.id) || asked.delete(message.id);
      said.add(message.id);
      return isNew ? [message] : [];
    },
  };
}

function forgetful(): () => Wire {
  const before = new Set<string>();
  return () => {
    const asked = new Set<string>();
    const mine = new Set<string>();
    return {
      down: (message) => {
        if (message.type === 'payment') asked.add(message.transactionId);
        return [message];
      },
      up: (message) => {
        if (message.type !== 'paid' && message.type !== 'ended') return [message];
        const isForgotten = before.has(message.id) && !mine.has(message.id) && !asked.has(message.id);
        if (isForgotten) return [];
        mine.add(message.id);
        before.add(message.id);
        return [message];
      },
    };
  };
}
