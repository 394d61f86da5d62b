import type { Code } from '../../protocol/codes.ts';
import type { LinkedAccount } from '../../protocol/messages.ts';
import { isPayable } from '../../protocol/vietqr.ts';
import { learnTime } from './calendar.ts';
import type { Draft } from './draft.ts';
import { resetInFlight } from './outbox.ts';
import { leftMs, staticQrProblem } from './push.ts';
import { activeOrder, type BoxEvent, isSameAccount, type LinkPictures } from './state.ts';

/* Handles events of the connection to the gateway (PROTOCOL.md, clauses AGT-3, AGT-8, AGT-13 and MSG-4). */

/** Shows the code of an enrolment. An earlier refusal no longer counts. */
export function onEnrolling(draft: Draft, { code, url, expiresInMs }: BoxEvent & { type: 'enrolling' }): void {
  const { monotonicMs, wallMs } = draft.at;
  const enrolment = { code, url, deadlineMs: monotonicMs + expiresInMs, expiresAtMs: wallMs + expiresInMs };
  draft.set({ ...resetInFlight(draft.state), connection: 'connecting', refusal: undefined, enrolment });
}

export function onRegistered(draft: Draft, event: BoxEvent & { type: 'registered' }): void {
  const { account, gatewayMs, isOwnTime = false, openPushIds, sandboxMark, sandbox = false, pictures = {} } = event;
  const firstWelcomeMs = draft.state.firstWelcomeMs ?? gatewayMs;
  const welcomed = { connection: 'registered', enrolment: undefined, refusal: undefined } as const;
  draft.set({ ...resetInFlight(draft.state), ...welcomed, sandbox, firstWelcomeMs, ...linkOf({ account, pictures }) });
  if (sandboxMark !== draft.state.sandboxMark) draft.mark(sandboxMark);
  learnTime(draft, gatewayMs, isOwnTime);
  endUnlessOpen(draft, openPushIds);
  dateOrder(draft, gatewayMs, isOwnTime);
  takeAccount(draft);
  draft.flush();
}

export function onLinked(draft: Draft, link: Link): void {
  draft.set(linkOf(link));
  takeAccount(draft);
}

interface Link {
  account: LinkedAccount | null;
  pictures: LinkPictures;
}

/** Keeps a static QR of another account, and a certificate that takes money, off the screen (clauses DIA-2, DIA-4). */
function linkOf({ account, pictures: { certificate, staticQr } }: Link): Link {
  const isOwn = account !== null && staticQr !== undefined && staticQrProblem(staticQr, account) === undefined;
  const isMoney = certificate !== undefined && isPayable(certificate);
  return {
    account,
    pictures: { certificate: isMoney ? undefined : certificate, staticQr: isOwn ? staticQr : undefined },
  };
}

/**
 * Adopts the account of this state. It may differ from that of the order on the screen, and from the one that people
 * know.
 */
function takeAccount(draft: Draft): void {
  const { account } = draft.state;
  const active = activeOrder(draft.state.stage);
  if (active !== undefined && !isSameAccount(active.order.holder, account)) {
    draft.endActive('withdrawn', 'cancelled');
  }
  // The first account that a box learns is not a change (clause AGT-13).
  if (account && draft.state.announcedAccount === undefined) draft.announceAccount(account);
  draft.move({ type: 'welcome' });
  draft.dropForeign();
}

/**
 * Ends an order that the gateway does not list as open. It ended while the box was offline, or the box's disk has lost
 * its end.
 */
function endUnlessOpen(draft: Draft, openPushIds: readonly string[]): void {
  const { stage, undatedOrder } = draft.state;
  const active = activeOrder(stage);
  if (undatedOrder !== undefined && !openPushIds.includes(undatedOrder.pushId)) {
    draft.endPush(undatedOrder, 'withdrawn');
    draft.set({ undatedOrder: undefined });
  }
  if (active !== undefined && !openPushIds.includes(active.order.pushId)) draft.endActive('withdrawn');
}

/** Removes the QR. Without a gateway the box would not learn that it was paid or cancelled (clause MSG-8). */
export function onRefused(draft: Draft, code: Code, reason: string): void {
  const { undatedOrder } = draft.state;
  const refused = { connection: 'connecting', enrolment: undefined, undatedOrder: undefined } as const;
  draft.set({ ...resetInFlight(draft.state), ...refused, refusal: { code, reason } });
  if (undatedOrder !== undefined) draft.endPush(undatedOrder, 'withdrawn');
  draft.endActive('withdrawn');
}

/**
 * Dates an order from before a restart by the gateway's calendar clock, which also set its end (clause AGT-8). A peer
 * that sends no time cannot date it, so the order ends.
 */
function dateOrder(draft: Draft, gatewayMs: number, isOwnTime: boolean): void {
  const { undatedOrder, stage, nowMs } = draft.state;
  const active = activeOrder(stage);
  const order = undatedOrder ?? (active?.restored === true ? active.order : undefined);
  if (order === undefined) return;
  const left = isOwnTime && undatedOrder !== undefined ? undefined : leftMs(order, gatewayMs);
  if (left === undefined) {
    draft.endPush(order, 'expired');
    draft.set({ undatedOrder: undefined });
    if (active?.order.pushId === order.pushId) draft.move({ type: 'order-over', as: 'expired' });
    return;
  }
  const deadlineMs = Math.min(active?.deadlineMs ?? Number.POSITIVE_INFINITY, nowMs + left);
  draft.set({ undatedOrder: undefined });
  draft.move({ type: 'date', active: { order, deadlineMs, displayed: true, restored: false } });
}
