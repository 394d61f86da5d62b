import type { Code } from '../protocol/codes.ts';
import type { Link } from '../protocol/messages.ts';
import type { Draft } from './draft.ts';
import { unmail } from './outbox.ts';
import { leftMs } from './push.ts';
import { activeOrder, type BoxEvent, isSameAccount } from './state.ts';

/* What follows from how the gateway takes this box (PROTOCOL.md, clauses AGT-3, AGT-8, AGT-13 and MSG-4). */

/** The box asks to be enrolled: what a gateway had against it before does not count for that. */
export function onEnrolling(draft: Draft, { code, url, expiresInMs }: BoxEvent & { type: 'enrolling' }): void {
  const { monotonicMs, wallMs } = draft.at;
  const enrolment = { code, url, deadlineMs: monotonicMs + expiresInMs, expiresAtMs: wallMs + expiresInMs };
  draft.set({ ...unmail(draft.state), connection: 'connecting', refusal: undefined, enrolment });
}

export function onRegistered(draft: Draft, { link, gatewayMs, openPushIds }: BoxEvent & { type: 'registered' }): void {
  const firstWelcomeMs = draft.state.firstWelcomeMs ?? gatewayMs;
  const welcomed = { connection: 'registered', enrolment: undefined, refusal: undefined } as const;
  draft.set({ ...unmail(draft.state), ...welcomed, link, firstWelcomeMs });
  endUnlessOpen(draft, openPushIds);
  redate(draft, gatewayMs);
  const active = activeOrder(draft.state.stage);
  if (active !== undefined && !isSameAccount(active.order.holder, link)) {
    draft.endActive('withdrawn', 'cancelled');
  }
  tellAccount(draft, link);
  draft.mail();
}

/** The first account that the box knows is no change; any other that people have not been told of is (clause AGT-13). */
function tellAccount(draft: Draft, link: Link | null): void {
  if (link !== null && draft.state.toldLink === undefined) draft.accountTold(link);
  draft.move({ type: 'welcome' });
}

/** An order that the gateway knows as over has ended while it could not be told, or on a disk that has forgotten it. */
function endUnlessOpen(draft: Draft, openPushIds: readonly string[]): void {
  const { stage, held } = draft.state;
  const active = activeOrder(stage);
  if (held !== undefined && !openPushIds.includes(held.pushId)) {
    draft.close(held, 'withdrawn');
    draft.set({ held: undefined });
  }
  if (active !== undefined && !openPushIds.includes(active.order.pushId)) {
    draft.endActive('withdrawn');
  }
}

/** The gateway does not take this box for what it is: nobody would hear that the QR on its screen was paid or cancelled. */
export function onRefused(draft: Draft, code: Code, reason: string): void {
  const { held } = draft.state;
  const refused = { connection: 'connecting', enrolment: undefined, held: undefined } as const;
  draft.set({ ...unmail(draft.state), ...refused, refusal: { code, reason } });
  if (held !== undefined) draft.close(held, 'withdrawn');
  draft.endActive('withdrawn');
}

/** Dates an order from before a restart by the gateway's calendar clock, which also set its end (clause AGT-8). */
function redate(draft: Draft, gatewayMs: number): void {
  const { held, stage, nowMs } = draft.state;
  const active = activeOrder(stage);
  const order = held ?? (active?.restored === true ? active.order : undefined);
  if (order === undefined) return;
  const left = leftMs(order, gatewayMs);
  if (left === undefined) {
    draft.close(order, 'expired');
    draft.set({ held: undefined });
    if (active?.order.pushId === order.pushId) draft.move({ type: 'order-over', as: 'expired' });
    return;
  }
  const deadlineMs = Math.min(active?.deadlineMs ?? Number.POSITIVE_INFINITY, nowMs + left);
  draft.set({ held: undefined });
  draft.move({ type: 'date', active: { order, deadlineMs, displayed: true, restored: false } });
}
