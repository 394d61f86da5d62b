import { type EnrolmentState, enrolmentState } from '../../protocol/enrolment.ts';
import { REMEMBERED_MS, type RequestCounts } from '../store/repositories/enrolment-requests.ts';
import type { EnrolmentRequestRow } from '../store/schema/tables.ts';

/** At most this many requests are stored for one box: its own, and those of others who claim to be it. */
const REQUESTS_PER_BOX_MAX = 4_096;
/** At most this many requests are stored for all boxes. A box with few requests may add one even beyond this limit. */
const REQUESTS_MAX = 32_768;
const FEW_REQUESTS = 8;
/**
 * One address, or one /64 of IPv6, may use this share of the free room. The share shrinks as the room fills, so that a
 * few addresses cannot block a box at another address.
 */
const NETWORK_SHARE = 1 / 64;

/**
 * Returns the time until there is room for another request from this network; 0 if there is room now (PROTOCOL.md,
 * clause ENR-7). No request is deleted early to make room: without room, a new one is refused.
 */
export function waitMsOf(counts: RequestCounts, nowMs: number): number {
  const { ofBox, ofBoxFromNetwork, oldestMs } = counts;
  const isOne = ofBoxFromNetwork < shareOf(REQUESTS_PER_BOX_MAX - ofBox);
  if (isOne && (ofBox < FEW_REQUESTS || hasRoom(counts))) return 0;
  return oldestMs === undefined ? 0 : oldestMs + REMEMBERED_MS - nowMs;
}

/** Returns whether a request for this box would be refused even from a network that has none. */
export function isFull(counts: RequestCounts): boolean {
  return counts.ofBox >= REQUESTS_PER_BOX_MAX || (counts.ofBox >= FEW_REQUESTS && !hasRoom(counts));
}

function hasRoom({ ofNetwork, all }: RequestCounts): boolean {
  return ofNetwork < shareOf(REQUESTS_MAX - all);
}

/** Returns how many requests one network may have when `free` more fit. At least one while any fits. */
function shareOf(free: number): number {
  return Math.ceil(Math.max(0, free) * NETWORK_SHARE);
}

/** Returns the answer to the box that made this request. */
export function stateOf({ state }: EnrolmentRequestRow): EnrolmentState {
  return state === null ? { state: 'pending' } : enrolmentState.parse(JSON.parse(state));
}

export function isSameRequest(a: EnrolmentRequestRow, b: EnrolmentRequestRow): boolean {
  return a.public_key === b.public_key && a.proof === b.proof;
}
