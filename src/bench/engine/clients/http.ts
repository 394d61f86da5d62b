import { z } from 'zod';
import { MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { askHttp, type HttpAnswer } from '../../../lib/http-client.ts';
import { type ActiveFaultView, activeFaultView } from '../../../protocol/faults.ts';

const LIMITS = { timeoutMs: 15_000, bytesMax: 16_000_000 };

/** Sends one request; resolves for any status. Throws MissingPeerError when there is no answer. */
export async function request(
  url: string,
  { method, headers, json }: { method?: string; headers?: Record<string, string>; json?: object } = {},
): Promise<HttpAnswer> {
  try {
    return await askHttp(url, { method, headers, body: json && JSON.stringify(json) }, LIMITS);
  } catch (error) {
    const why = systemCodeOf(error) ?? reasonOf(error);
    const fix = 'start it, or name another address';
    throw new MissingPeerError(`nothing answers at ${new URL(url).origin} (${why})`, fix, error);
  }
}

/** Returns the JSON body of a 200 answer. Throws PayboxError for any other status or invalid JSON. */
export function jsonOf(url: string, answer: HttpAnswer): unknown {
  if (answer.status !== 200) throw refusedBy(url, answer);
  try {
    return JSON.parse(answer.body.toString('utf8')) as unknown;
  } catch (error) {
    throw refused(`${url} did not answer with JSON: ${reasonOf(error)}`);
  }
}

function refused(message: string): PayboxError {
  return new PayboxError('REFUSED', message, { severity: 'fatal' });
}

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
  if (answer.status !== 201) throw refusedBy(url, answer);
  return activeFaultView.parse(jsonOf(url, { ...answer, status: 200 }));
}

/** Throws PayboxError unless the fault is over. A fault that was over before (404) is no error. */
export function endedFault(url: string, answer: HttpAnswer): void {
  if (answer.status !== 204 && answer.status !== 404) throw refusedBy(url, answer);
}

function refusedBy(url: string, { status, body }: HttpAnswer): PayboxError {
  const text = body.toString('utf8').slice(0, SHOWN_CHARS_MAX);
  return refused(`${url} answered ${status}: ${text}`);
}
