import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import { tokenResponse, transactionSyncReply } from '../../protocol/http-api.ts';
import { signWebhook } from '../../protocol/webhook.ts';
import type { CallbackAuth } from '../config.ts';
import type { Answer, Post } from './post.ts';

/** An attempt lasts at most this long, the partner's token included (PROTOCOL.md, clause SYN-6). */
const ATTEMPT_TIMEOUT_MS = 10_000;
/** Of an answer that is longer, the beginning is kept. */
const ANSWER_KEPT_CHARS_MAX = 4096;

/** One attempt and what it means for the callback. */
export interface Attempt {
  result: 'delivered' | 'retry' | 'failed';
  warning: string | null;
  startedAtMs: number;
  durationMs: number;
  /** As sent, the authorization masked. */
  requestHeaders: Record<string, string>;
  status: number | null;
  answer: string | null;
  error: string | null;
}

/** What is posted, where to, and what proves whence it comes. */
export interface CallbackRequest {
  /** The same at every attempt. */
  id: string;
  url: string;
  auth: CallbackAuth;
  signingSecret: string | undefined;
  body: string;
  /** Attempts of the ladder before it. */
  tries: number;
  byHand: boolean;
}

/** Makes one attempt of a callback, which an aborted `stop` ends. Never rejects. */
export type MakeAttempt = (
  to: CallbackRequest,
  how: { clock: Clock; post: Post },
  stop: AbortSignal,
) => Promise<Attempt>;

/** Posts a callback once (PROTOCOL.md, clauses SYN-1, SYN-3, SYN-4 and SYN-6). Never rejects. */
export async function attemptCallback(
  to: CallbackRequest,
  { clock, post }: { clock: Clock; post: Post },
  stop: AbortSignal,
): Promise<Attempt> {
  const startedAtMs = clock.wallMs();
  const begunMs = clock.monotonicMs();
  const timer = new AbortController();
  const timeout = new AbortController();
  void clock.sleep(ATTEMPT_TIMEOUT_MS, timer.signal).then(() => {
    if (!timer.signal.aborted) timeout.abort(new Error(`no answer within ${ATTEMPT_TIMEOUT_MS} ms`));
  });
  const signal = AbortSignal.any([stop, timeout.signal]);
  const requestHeaders: Record<string, string> = { 'content-type': 'application/json' };
  const ended = (end: Pick<Attempt, 'result' | 'warning' | 'status' | 'answer' | 'error'>): Attempt => {
    timer.abort();
    return { ...end, requestHeaders, startedAtMs, durationMs: Math.round(clock.monotonicMs() - begunMs) };
  };
  try {
    const authorization = await authorize(to.auth, post, signal);
    const signed = to.signingSecret === undefined ? {} : signWebhook(to.signingSecret, to.id, startedAtMs, to.body);
    if (authorization !== undefined) requestHeaders.authorization = 'Bearer ***';
    Object.assign(requestHeaders, signed);
    const bearer = authorization === undefined ? {} : { authorization };
    const answer = await post(to.url, { ...bearer, ...signed }, to.body, signal);
    return ended({
      ...judge(answer),
      status: answer.status,
      answer: storable(answer.body.slice(0, ANSWER_KEPT_CHARS_MAX)),
      error: null,
    });
  } catch (error) {
    const reason = reasonOf(signal.aborted ? signal.reason : error);
    return ended({ result: 'retry', warning: null, status: null, answer: null, error: reason });
  }
}

/** The value of `authorization`, or `undefined` for none. Rejects when the partner gives no token. */
async function authorize(auth: CallbackAuth, post: Post, signal: AbortSignal): Promise<string | undefined> {
  if (auth.kind === 'none') return undefined;
  if (auth.kind === 'bearer') return `Bearer ${auth.token}`;
  const basic = Buffer.from(`${auth.username}:${auth.password}`, 'utf8').toString('base64');
  const answer = await post(auth.url, { authorization: `Basic ${basic}` }, '{}', signal);
  const token = tokenResponse.pick({ access_token: true }).safeParse(jsonOf(answer.body));
  if (answer.status !== 200) throw new Error(`the token request was answered with HTTP ${answer.status}`);
  if (!token.success) throw new Error('the answer to the token request has no access_token');
  return `Bearer ${token.data.access_token}`;
}

function judge(answer: Answer): Pick<Attempt, 'result' | 'warning'> {
  const { status } = answer;
  if (status === 400) return { result: 'failed', warning: null };
  if (status < 200 || status > 299) return { result: 'retry', warning: null };
  if (status !== 200) return { result: 'delivered', warning: `HTTP ${status}: the documented reply is 200` };
  if (answer.cut) return { result: 'delivered', warning: 'the reply is longer than 65536 bytes' };
  const reply = transactionSyncReply.safeParse(jsonOf(answer.body));
  if (!reply.success) return { result: 'delivered', warning: 'the body is not the documented reply' };
  return {
    result: 'delivered',
    warning: reply.data.error ? `the reply has an error: ${reply.data.errorReason}` : null,
  };
}

/** PostgreSQL keeps no NUL in a text. */
function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
