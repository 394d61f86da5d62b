import { MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { askHttp, type HttpAnswer } from '../../../lib/http-client.ts';

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
export function jsonOf(url: string, { status, body }: HttpAnswer): unknown {
  const text = body.toString('utf8');
  if (status !== 200) throw refused(`${url} answered ${status}: ${text.slice(0, 300)}`);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw refused(`${url} did not answer with JSON: ${reasonOf(error)}`);
  }
}

function refused(message: string): PayboxError {
  return new PayboxError('REFUSED', message, { severity: 'fatal' });
}
