import type { Code } from '../../protocol/codes.ts';
import { PUSHED_MEANWHILE } from '../common/place.ts';
import { accept, type Refusal, type Result, refuse } from '../common/result.ts';
import type { PushProblem } from '../store/repositories/order-changes.ts';
import type { Confirmation } from '../store/repositories/orders.ts';
import type { PushState } from '../store/repositories/pushes.ts';

/** Returns the result of a push by its row, or undefined while nothing is decided. */
export function outcomeOf(state: PushState | undefined, confirm: Confirmation): Result<undefined> | undefined {
  if (state === undefined) return refuse('BOX_OFFLINE', 'the push is not stored any more');
  const { status, code, wasAccepted, wasShown } = state;
  switch (status) {
    case 'failed':
      return refuse((code ?? 'BOX_OFFLINE') as Code, 'the push has failed');
    case 'sent':
    case 'accepted':
    case 'shown':
    case 'cancelled':
    case 'ended':
      if (wasShown || (confirm === 'accepted' && wasAccepted)) return accept(undefined);
      if (status === 'sent' || status === 'accepted') return undefined;
      return refuse('WITHDRAWN', 'the push ended before the box confirmed it');
  }
}

/** Returns the refusal of a push to a box whose rows have changed. The code is the one of the call before that. */
export function refusalFor(problem: PushProblem): Refusal {
  switch (problem) {
    case 'pushed meanwhile':
      return PUSHED_MEANWHILE;
    case 'no box':
      return refuse('E35', 'the box was deleted in this moment');
    case 'box disabled':
      return refuse('BOX_OFFLINE', 'the box is disabled');
    case 'no account':
      return refuse('E36', 'the account was disabled or deleted in this moment');
    case 'linked':
      return refuse('QR_MISMATCH', 'the box was linked to another account in this moment');
  }
}
