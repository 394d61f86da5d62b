import { z } from 'zod';
import { PayboxError } from '../../../lib/errors.ts';
import type { HttpAnswer } from '../../../lib/http-client.ts';
import { type ActiveFaultView, activeFaultView } from '../../../protocol/faults.ts';
import { jsonOf } from './http.ts';

/** The path below `/_mock/` where gateways and boxes take fault orders (PROTOCOL.md, clause FLT). */
export const FAULTS = 'faults';

const SHOWN_CHARS_MAX = 300;
const list = z.looseObject({ standing: z.array(activeFaultView) });

/**
 * Returns the active faults; undefined where the endpoint does not exist. Throws PayboxError for an answer of another
 * shape.
 */
export function activeFaultsIn(url: string, answer: HttpAnswer): ActiveFaultView[] | undefined {
  return answer.status === 404 ? undefined : list.parse(jsonOf(url, answer)).standing;
}

/** Returns the fault from the answer to an order. Throws PayboxError for a refusal. */
export function orderedFault(url: string, answer: HttpAnswer): ActiveFaultView {
  if (answer.status !== 201) throw refused(url, answer);
  return activeFaultView.parse(jsonOf(url, { ...answer, status: 200 }));
}

/** Throws PayboxError unless the fault is over. A fault that was over before (404) is no error. */
export function endedFault(url: string, answer: HttpAnswer): void {
  if (answer.status !== 204 && answer.status !== 404) throw refused(url, answer);
}

function refused(url: string, { status, body }: HttpAnswer): PayboxError {
  const text = body.toString('utf8').slice(0, SHOWN_CHARS_MAX);
  return new PayboxError('REFUSED', `${url} answered ${status}: ${text}`, { severity: 'fatal' });
}
