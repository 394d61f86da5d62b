import type { Mutant } from '../box-fixture.ts';
import { onPayment } from './payloads.ts';

/** Boxes that are wrong about late payments, or about the mark of a sandbox. */
export const REAL_MONEY_MUTANTS: Record<string, Mutant> = {
  'takes late payments for new ones': {
    breaks: ['AGT-14'],
    wire: onPayment((payment) => ({ ...payment, late: false })),
  },
  'keeps the QR of an order that is paid late': {
    breaks: ['AGT-14'],
    wire: onPayment((payment) => (payment.late ? { ...payment, pushId: null } : payment)),
  },
  'does not tell of late payments': {
    breaks: ['AGT-14'],
    wire: () => ({ down: (message) => (message.type === 'payment' && message.late ? [] : [message]) }),
  },
  'does not say that it is at a sandbox': {
    breaks: ['AGT-15'],
    wire: () => ({
      down: (message) => [message.type === 'welcome' ? { ...message, sandboxMark: false } : message],
    }),
  },
  'says for ever that it is at a sandbox': {
    breaks: ['AGT-15'],
    wire: () => ({
      down: (message) => [message.type === 'welcome' ? { ...message, mode: 'sandbox', sandboxMark: true } : message],
    }),
  },
};
