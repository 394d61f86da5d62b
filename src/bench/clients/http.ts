import { MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';

const ANSWER_TIMEOUT_MS = 15_000;
const ANSWER_BYTES_MAX = 16_000_000;

/** What an HTTP server answered. */
export interface HttpAnswer {
  status: number;
  body: Uint8Array;
}

/** One request. Throws MissingPeerError when nobody answers; an answer of any status is an answer. */
export async function request(
  url: string,
  { method = 'GET', headers = {}, json }: { method?: string; headers?: Record<string, string>; json?: object } = {},
): Promise<HttpAnswer> {
  try {
    const response = await fetch(url, {
      method,
      headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) throw new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`);
      chunks.push(chunk);
    }
    return { status: response.status, body: Buffer.concat(chunks) };
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const { origin } = new URL(url);
    const why = systemCodeOf(cause) ?? reasonOf(cause);
    throw new MissingPeerError(`nothing answers at ${origin} (${why})`, 'start it, or name another address', error);
  }
}

/** What shows a gateway, or a box, that its owner asks; nothing without a token. */
export function authorizationHeader(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** The JSON of an answer. Throws PayboxError for another status than 200, and for what is no JSON. */
export function jsonOf(url: string, { status, body }: HttpAnswer): unknown {
  const text = Buffer.from(body).toString('utf8');
  if (status !== 200) throw refused(`${url} answered ${status}: ${text.slice(0, 300)}`);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw refused(`${url} answered what is no JSON: ${reasonOf(error)}`);
  }
}

function refused(message: string): PayboxError {
  return new PayboxError('REFUSED', message, { severity: 'fatal' });
}
