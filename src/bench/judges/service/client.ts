import { MissingPeerError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { type HttpAnswer, openHttp, parseJson, readBody } from '../../../lib/http-client.ts';
import { Mismatch, NoAnswer } from '../check.ts';
import { recordOf } from './json.ts';
import { ANSWER_TIMEOUT_MS, type ServiceRun } from './subject.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** As programs send them: some firewalls refuse requests without. */
const HEADERS = { accept: '*/*', 'user-agent': 'paybox' };
const ANSWER_BYTES_MAX = 1_000_000;
/** Characters of a body in the evidence. */
const KEPT_CHARS_MAX = 4_000;

export interface ServiceRequest {
  /** A path below the base address, or a URL. */
  path: string;
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | undefined;
  /** True if the answer is delayed, so that virtual time may pass meanwhile. */
  whileTimePasses?: boolean;
}

export interface Answer extends HttpAnswer {
  text: string;
  /** Undefined for a body that is not JSON. */
  json: unknown;
}

/** Error codes when no service is there. With any other code a service is there, and fails. */
const NOBODY = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']);

/**
 * Sends one request and keeps it as evidence. Returns an answer of any status. Throws MissingPeerError when no service
 * is there, NoAnswer for an incomplete answer, Mismatch for one that is not HTTP or does not end.
 */
export async function sendRequest(run: ServiceRun, question: ServiceRequest): Promise<Answer> {
  const { subject, evidence, signal } = run;
  const { path, method = 'POST', headers = {}, body } = question;
  const url = path.startsWith('http') ? path : `${subject.options.access.baseUrl}${path}`;
  const request = {
    method,
    url: subject.redactor.text(url),
    headers: subject.redactor.value(headers),
    body: shortened(subject.redactor.text(body ?? '')),
  };
  try {
    const { answerTimeoutMs = ANSWER_TIMEOUT_MS } = subject.options;
    const asked = () => exchange(url, question, signal, answerTimeoutMs);
    const called = await evidence.timed('answer', () =>
      question.whileTimePasses === true ? asked() : subject.time.inRealTime(asked),
    );
    const { access_token: token } = recordOf(called.json);
    // The token is hidden even if the service should not have issued it.
    if (typeof token === 'string') subject.redactor.addSecret(token);
    const refusal = codeOf(called);
    if (refusal !== undefined) subject.codes.add(refusal);
    const answer = {
      status: called.status,
      headers: subject.redactor.value(called.headers),
      body: shortened(subject.redactor.text(called.text)),
    };
    evidence.add('call', `${method} ${new URL(url).pathname}: ${called.status}`, { detail: { request, answer } });
    return called;
  } catch (error) {
    evidence.add('call', `${method} ${new URL(url).pathname}: ${reasonOf(error)}`, { detail: { request } });
    throw error;
  }
}

async function exchange(
  url: string,
  { method = 'POST', headers = {}, body }: ServiceRequest,
  end: AbortSignal,
  timeoutMs: number,
): Promise<Answer> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    // Each request has a new connection, because the service may close an idle one just as it is used.
    const signal = AbortSignal.any([end, late]);
    const to = { method, headers: { ...HEADERS, ...headers }, body, agent: false, signal };
    const response = await openHttp(url, { ...to, connectTimeoutMs: CONNECT_TIMEOUT_MS });
    const bytes = await readBody(response, ANSWER_BYTES_MAX);
    if (bytes === undefined) throw new Mismatch(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`);
    const text = bytes.toString('utf8');
    const { statusCode: status = 0, headers: answered } = response;
    return { status, headers: answered, body: bytes, text, json: parseJson(text) };
  } catch (error) {
    end.throwIfAborted();
    throw late.aborted ? new NoAnswer(`no whole answer within ${timeoutMs / 1_000} s`, error) : whyNot(url, error);
  }
}

function whyNot(url: string, error: unknown): Error {
  if (error instanceof Mismatch) return error;
  const code = systemCodeOf(error) ?? reasonOf(error);
  if (NOBODY.has(code) || /CERT|TLS|SSL/.test(code)) {
    const fix = 'start it, or name another address; a CA of your own goes into NODE_EXTRA_CA_CERTS';
    return new MissingPeerError(`nothing answers at ${new URL(url).origin} (${code})`, fix, error);
  }
  if (/^HPE_/.test(code)) return new Mismatch(`the answer is not HTTP (${code})`, error);
  return new NoAnswer(`the connection ended without a whole answer (${code})`, error);
}

/** Returns the code of a refusal (PROTOCOL.md, clause ERR-1); undefined for another answer. */
export function codeOf({ json }: Answer): string | undefined {
  const { status, message } = recordOf(json);
  return status === 'FAILED' && typeof message === 'string' ? message : undefined;
}

/** Returns true for a refusal of any kind. */
export function isRefusal({ status, json }: { status: number; json: unknown }): boolean {
  return status >= 400 || recordOf(json).status === 'FAILED';
}

/** Returns an answer in a few words: `400 E46`, `200 SUCCESS`, `404 <html>…`. */
export function summaryOf(called: Answer): string {
  const { status, message } = recordOf(called.json);
  const isStatus = typeof status === 'string' && typeof message === 'string';
  const words = isStatus ? (codeOf(called) ?? `${status} ${message}`) : called.text.slice(0, 80);
  return `${called.status} ${words}`.trim();
}

function shortened(text: string): string {
  return text.length > KEPT_CHARS_MAX ? `${text.slice(0, KEPT_CHARS_MAX)}… (${text.length} characters)` : text;
}
