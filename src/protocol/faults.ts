import { z } from 'zod';
import { boxCode, freeText, LIMITS } from './fields.ts';

/**
 * Says where a fault happens: at the service, to a push, a payment, its callback or the link to the box, or in the box.
 */
export type FaultPlace = 'service' | 'push' | 'payment' | 'callback' | 'link' | 'box';

interface FaultKind {
  place: FaultPlace;
  /** The effect, in one line. */
  about: string;
  /** Default seconds of its duration, or of its delay. */
  seconds?: number;
  /**
   * `late`: its seconds are a delay, and it happens once, for any number of seconds. `state`: it lasts for its seconds,
   * and `times` does not apply. Without a timing it happens at each opportunity.
   */
  timing?: 'late' | 'state';
  /** True if it happens to all boxes and partners of a gateway at once. */
  isOfAll?: true;
}

/**
 * All faults that can be ordered by name (PROTOCOL.md, clause FLT). A name has at most 13 characters, so that its magic
 * content, `FAULT ` and the name in capitals, fits a test callback.
 */
export const FAULTS = {
  'service-500': { place: 'service', about: 'the service answers 500 E05, and does nothing' },
  'service-slow': { place: 'service', about: 'the service answers late', seconds: 3, timing: 'late' },
  'token-expired': { place: 'service', about: 'the token expires between generate and send-qr' },
  'box-offline': { place: 'push', about: 'the push is answered BOX_OFFLINE, as if the box were not connected' },
  'box-slow': {
    place: 'push',
    about: 'the push reaches the box late, still within its deadline',
    seconds: 2,
    timing: 'late',
  },
  'push-late': {
    place: 'push',
    about: 'the push reaches the box after its deadline, and must not appear',
    seconds: 1,
    timing: 'late',
  },
  'push-lost': { place: 'push', about: 'the push never reaches the box' },
  'push-twice': { place: 'push', about: 'the push is said to the box twice' },
  'push-swapped': { place: 'push', about: 'the push reaches the box after the message that follows it' },
  'qr-amount': { place: 'push', about: 'the QR that the box is sent says another amount; the box refuses it' },
  'qr-content': { place: 'push', about: 'the QR that the box is sent says another content' },
  'qr-account': { place: 'push', about: 'the QR that the box is sent pays another account; the box refuses it' },
  'wrong-amount': { place: 'payment', about: 'another amount is paid than was asked for' },
  'wrong-content': { place: 'payment', about: 'it is paid with another content' },
  'wrong-account': {
    place: 'payment',
    about: 'it is paid to another account of the partner, or else to none of its orders',
  },
  'paid-before': { place: 'payment', about: 'the order is paid before its QR is on the box' },
  'paid-twice': { place: 'payment', about: 'the order is paid twice' },
  'paid-late': { place: 'payment', about: 'box and partner hear of the payment late', seconds: 5, timing: 'late' },
  'partner-500': { place: 'callback', about: "the partner's answer is taken for a 500" },
  'partner-201': { place: 'callback', about: "the partner's answer is taken for a 201" },
  'partner-shape': { place: 'callback', about: "the partner's answer is taken for a 200 of another shape" },
  'partner-never': { place: 'callback', about: "the partner's answer is not heard" },
  'sync-twice': { place: 'callback', about: 'the callback comes twice, although it was taken' },
  'sync-late': { place: 'callback', about: 'the callback comes late', seconds: 5, timing: 'late' },
  'sync-swapped': { place: 'callback', about: 'the callback comes after the next one' },
  'link-cut': { place: 'link', about: "the box's connection is cut" },
  'half-open': {
    place: 'link',
    about: "nothing comes through the box's connection, which stays open",
    seconds: 30,
    timing: 'state',
  },
  'link-slow': { place: 'link', about: 'each message to and from the box takes up to a second', seconds: 30 },
  'link-twice': { place: 'link', about: 'the next message to the box comes twice, as its bytes are' },
  'broker-killed': {
    place: 'link',
    about: 'the broker ends, and starts anew',
    seconds: 3,
    timing: 'state',
    isOfAll: true,
  },
  'clock-skew': {
    place: 'link',
    about: "the gateway's calendar clock is two hours ahead",
    seconds: 60,
    timing: 'state',
    isOfAll: true,
  },
  'display-gone': { place: 'box', about: 'the display is unplugged', seconds: 10 },
  'display-slow': { place: 'box', about: 'the display takes a second for each picture', seconds: 30 },
  'serial-noise': {
    place: 'box',
    about: 'one byte in a hundred on the serial wire is another, both ways; a push may be refused all the same',
    seconds: 10,
  },
  'disk-full': { place: 'box', about: 'the disk takes nothing more', seconds: 10 },
  'box-clock': { place: 'box', about: "the box's calendar clock is two hours ahead", seconds: 60, timing: 'state' },
} as const satisfies Record<string, FaultKind>;

/** Active faults at a time, at a gateway or at a box (PROTOCOL.md, clauses FLT-1 and FLT-10). */
export const ACTIVE_FAULTS_MAX = 100;

export type FaultName = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS) as [FaultName, ...FaultName[]];

/** Returns the description of a fault; wider than its literal type. */
export function faultKind(fault: FaultName): FaultKind {
  return FAULTS[fault];
}

/** The word alone, without a name, orders nothing, and is refused like a wrong name (clause FLT-12). */
export const MAGIC_WORD = 'FAULT';
/** The prefix of every content that orders a fault. */
export const MAGIC_PREFIX = `${MAGIC_WORD} `;

/** Returns the content with which a partner orders this fault for its own order, as `FAULT PUSH TWICE`. */
export function magicContent(fault: FaultName): string {
  return `${MAGIC_PREFIX}${fault.toUpperCase().replaceAll('-', ' ')}`;
}

/**
 * Returns the fault that a content orders; undefined for any other content. Faults in a box cannot be ordered by a
 * content.
 */
export function faultOfContent(content: string): FaultName | undefined {
  if (!content.startsWith(MAGIC_PREFIX)) return undefined;
  return FAULT_NAMES.find((name) => faultKind(name).place !== 'box' && magicContent(name) === content);
}

const TIMES_MAX = 10_000;
const SECONDS_MAX = 86_400;

/** An order for a fault, as for `POST /_mock/faults` at a gateway, or at a box that allows it. */
export const faultOrder = z.strictObject({
  fault: z.enum(FAULT_NAMES, `expected one of ${FAULT_NAMES.join(', ')}`),
  box: boxCode.optional().describe('for this box only; for each if left out'),
  content: freeText(LIMITS.pushContentMax).optional().describe('for orders of this content only'),
  times: z.int().min(1).max(TIMES_MAX).optional().describe('how often; once if left out, or for its time if it lasts'),
  seconds: z.number().min(0.001).max(SECONDS_MAX).optional().describe('how long it lasts, or how late something is'),
  chance: z.number().min(0).max(1).optional().describe('how probable it is each time; 1 if left out'),
  seed: z.int().min(0).max(999_999_999).optional().describe('makes the same choices again; 0 if left out'),
});

export type FaultOrder = z.output<typeof faultOrder>;

/** An active fault, as in the answer of `GET /_mock/faults`. */
export const activeFaultView = faultOrder.extend({
  id: z.string(),
  /** Counts how often the fault has happened. */
  happened: z.int().min(0),
});

export type ActiveFaultView = z.output<typeof activeFaultView>;
