import { FAULT_NAMES, type FaultName, faultKind, faultOfContent } from '../../protocol/faults.ts';
import { durationMs } from './durations.ts';
import type { Expectation } from './expect.ts';
import { faultOf } from './fault.ts';
import type { Step } from './steps.ts';

/** The refusals of a push that need a box of the gateway's own messages. */
const CONFIRMATIONS = ['BOX_TIMEOUT', 'QR_TOO_DENSE', 'DISPLAY_FAULT', 'STORAGE_FAULT', 'REPLACED', 'WITHDRAWN'];
/** The states of an order that a box reports. The gateway finds out the other states without the box. */
const REPORTED = ['shown', 'expired', 'rejected', 'interrupted', 'dismissed'];
const IDS = ['transactionId', 'orderId', 'pushId'];
/** The gateway learns of these faults of pushes only by the box's answer. */
const REFUSED_FAULTS: readonly FaultName[] = ['qr-amount', 'qr-account'];

const LIMITS = {
  enrol: 'boxes of a dialect enrol by their MAC addresses, without a code',
  confirms: 'such a box confirms and refuses nothing, and the gateway says what it has sent',
  ids: 'such a box knows no ids of orders and payments',
  expired: 'such a box is told the end of a QR without its reason, so it never shows `expired`',
  link: "this fault breaks the link of the gateway's own messages, and in a dialect loses what is said meanwhile",
} as const;

/** One part of a scenario that is impossible with a dialect, with the reason. */
interface Limit {
  asked: string;
  why: string;
}

/**
 * Returns why boxes of a dialect cannot run these steps; undefined if they can. Each reason names the part of the
 * scenario.
 */
export function dialectLimits(steps: Iterable<Step>): string | undefined {
  const limits = [...steps].flatMap((step) => [...limitsIn(step)]);
  const byReason = Map.groupBy(limits, ({ why }) => why);
  const reasons = [...byReason].map(
    ([why, all]) => `${[...new Set(all.map(({ asked }) => asked))].join(', ')}: ${why}`,
  );
  return reasons.length === 0 ? undefined : reasons.join('; ');
}

function* limitsIn({ enrol, expect, push, generate, pay, fault }: Step): Iterable<Limit> {
  if (enrol !== undefined) yield { asked: 'enrol', why: LIMITS.enrol };
  if (expect !== undefined) yield* limitsOf(expect);
  for (const code of [push?.answer ?? []].flat()) {
    if (CONFIRMATIONS.includes(String(code))) yield { asked: `answer ${code}`, why: LIMITS.confirms };
  }
  const ordered = fault === undefined ? undefined : faultOf(fault).inject;
  const contents = [push?.content, generate?.content, pay?.content].map((it) => faultOfContent(String(it ?? '')));
  for (const name of FAULT_NAMES.filter((it) => it === ordered || contents.includes(it))) {
    if (REFUSED_FAULTS.includes(name)) yield { asked: `fault ${name}`, why: LIMITS.confirms };
    if (faultKind(name).place === 'link' && name !== 'clock-skew') yield { asked: `fault ${name}`, why: LIMITS.link };
  }
}

function* limitsOf({ report, status, screen, within, ...seen }: Expectation): Iterable<Limit> {
  if (report !== undefined && 'payment' in report) yield { asked: 'report of a payment', why: LIMITS.confirms };
  if (report !== undefined && 'status' in report && REPORTED.includes(report.status)) {
    yield { asked: `report of status ${report.status}`, why: LIMITS.confirms };
  }
  const isSeen = [screen, seen.state, seen.text, seen.qr].some((it) => it !== undefined);
  // With `within: 0` right after a push, the scenario expects the QR at the moment of SUCCESS.
  if (within !== undefined && durationMs(within) === 0 && isSeen)
    yield { asked: `within ${within}`, why: LIMITS.confirms };
  const id = IDS.find((name) => hasKey(status, name));
  if (id !== undefined) yield { asked: `status with ${id}`, why: LIMITS.ids };
  if (screen === 'expired') yield { asked: 'screen expired', why: LIMITS.expired };
}

function hasKey(value: unknown, name: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inside]) => key === name || hasKey(inside, name));
}
