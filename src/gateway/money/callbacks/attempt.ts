import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { decompressed, textIn } from '../../../lib/bodies.ts';
import type { Clock } from '../../../lib/clock.ts';
import { CollectedBytes } from '../../../lib/collected-bytes.ts';
import { reasonOf } from '../../../lib/errors.ts';
import { openHttp, parseJson } from '../../../lib/http-client.ts';
import { suggestion } from '../../../lib/suggestion.ts';
import { withoutUnseen } from '../../../lib/text.ts';
import { isObject, issuesOf } from '../../../protocol/codec.ts';
import { tokenResponse, transactionSyncReply } from '../../../protocol/http-api.ts';
import { signWebhook } from '../../../protocol/webhook.ts';
import type { Outside } from '../../common/world.ts';
import type { CallbackAuth, CallbackConfig } from '../../config/callback-config.ts';
import { lookupFor } from '../../config/callback-destination.ts';

/** Includes the request for the partner's token (PROTOCOL.md, clause SYN-6). */
const ATTEMPT_TIMEOUT_MS = 10_000;
/** A longer answer is cut before it is stored. */
const ANSWER_STORED_CHARS_MAX = 4096;
/** PROTOCOL.md, clause SYN-6. */
const ANSWER_READ_BYTES_MAX = 65_536;

/** Some partners answer 2xx with `error: true`. They have not processed the callback. */
const errorReply = z.object({
  error: z.literal(true),
  errorReason: z.unknown().optional(),
  toastMessage: z.unknown().optional(),
});

export interface Answer {
  status: number;
  body: string;
  location?: string | undefined;
  /** The reason why the body cannot be read. Its text is then a guess or empty. */
  problem?: string;
}

/**
 * Posts JSON and reads up to 64 KiB of the answer. It follows no redirect. It rejects on a connection error, on a
 * forbidden address and when `signal` aborts.
 */
export type Post = (url: string, headers: Record<string, string>, body: string, signal: AbortSignal) => Promise<Answer>;

export interface Attempt extends Outcome {
  startedAtMs: number;
  durationMs: number;
  /** The value of Authorization is masked. */
  requestHeaders: Record<string, string>;
}

interface Outcome {
  result: 'delivered' | 'retry' | 'failed';
  warning: string | null;
  status: number | null;
  answer: string | null;
  error: string | null;
}

export interface CallbackRequest {
  /** The same at every attempt: the partner's idempotency key. */
  id: string;
  url: string;
  auth: CallbackAuth;
  signingSecret: string | undefined;
  /** Which answers mean that the partner processed the callback. */
  success: CallbackConfig['success'];
  body: string;
  /** Number of scheduled attempts before this one. */
  tries: number;
  byHand: boolean;
}

/** Makes one attempt of a callback. `stop` aborts it. Never rejects. */
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
  const ended = (end: Outcome): Attempt => {
    timer.abort('over');
    const texts = { warning: storable(end.warning), answer: storable(end.answer), error: storable(end.error) };
    return { ...end, ...texts, requestHeaders, startedAtMs, durationMs: Math.round(clock.monotonicMs() - begunMs) };
  };
  try {
    const authorization = await authorize(to.auth, post, signal);
    const signed = to.signingSecret === undefined ? {} : signWebhook(to.signingSecret, to.id, startedAtMs, to.body);
    if (authorization !== undefined) requestHeaders.authorization = 'Bearer ***';
    Object.assign(requestHeaders, signed);
    const bearer = authorization === undefined ? {} : { authorization };
    const answer = await post(to.url, { ...bearer, ...signed }, to.body, signal);
    return ended({
      ...resultOf(answer, to),
      status: answer.status,
      answer: answer.body.slice(0, ANSWER_STORED_CHARS_MAX),
      error: null,
    });
  } catch (error) {
    const reason = reasonOf(signal.aborted ? signal.reason : error);
    return ended({ result: 'retry', warning: null, status: null, answer: null, error: reason });
  }
}

/**
 * Returns the value of the Authorization header, or undefined for none. Rejects when the partner does not issue a
 * token.
 */
async function authorize(auth: CallbackAuth, post: Post, signal: AbortSignal): Promise<string | undefined> {
  if (auth.kind === 'none') return undefined;
  if (auth.kind === 'bearer') return `Bearer ${auth.token}`;
  const basic = Buffer.from(`${auth.username}:${auth.password}`, 'utf8').toString('base64');
  const answer = await post(auth.url, { authorization: `Basic ${basic}` }, '{}', signal);
  const isGiven = answer.status >= 200 && answer.status <= 299;
  if (!isGiven) {
    const redirect = redirectProblem(answer, { from: auth.url, option: 'callback.auth.url' });
    throw new Error(`the token request was answered with ${redirect ?? `HTTP ${answer.status}`}`);
  }
  if (answer.problem !== undefined)
    throw new Error(`the answer to the token request cannot be read: ${answer.problem}`);
  if (answer.body.trim() === '') throw new Error('the answer to the token request is empty');
  const json = parseJson(answer.body);
  if (json === undefined) throw new Error('the answer to the token request is not JSON');
  const token = tokenResponse.pick({ access_token: true }).safeParse(json);
  if (!token.success) {
    const meant = mistypedIn(Object(json), ['access_token']);
    throw new Error(`the answer to the token request has no access_token${meant}`);
  }
  return `Bearer ${token.data.access_token}`;
}

function resultOf(
  answer: Answer,
  { success, url }: CallbackRequest,
): { result: Outcome['result']; warning: string | null } {
  const { status } = answer;
  if (status === 400) return { result: 'failed', warning: null };
  if (status < 200 || status > 299) {
    return { result: 'retry', warning: redirectProblem(answer, { from: url, option: 'callback.url' }) ?? null };
  }
  if (status !== 200 && success === 200) {
    return { result: 'retry', warning: `HTTP ${status}: callback.success of this partner is 200 alone` };
  }
  if (status !== 200) return { result: 'delivered', warning: `HTTP ${status}: the documented reply is 200` };
  if (answer.problem !== undefined)
    return { result: 'delivered', warning: `the reply cannot be read: ${answer.problem}` };
  const reply = parseJson(answer.body);
  const failed = errorReply.safeParse(reply).data;
  if (failed !== undefined) {
    const reasons = [failed.errorReason, failed.toastMessage].filter((it) => typeof it === 'string' && it !== '');
    return {
      result: 'delivered',
      warning: `the reply has an error: ${withoutUnseen(reasons.join(', ')) || 'without a reason'}`,
    };
  }
  const problem = replyProblem(answer.body);
  return {
    result: 'delivered',
    warning: problem === undefined ? null : `the body is not the documented reply: ${problem}`,
  };
}

/** Replaces NUL and lone surrogates in a partner's text, because no database stores them. */
function storable(text: string | null): string | null {
  return text === null ? null : text.toWellFormed().replaceAll('\0', '\ufffd');
}

/**
 * Returns a `Post` to partners. It refuses this gateway's own ports, link-local and metadata addresses. `lookup`
 * resolves names for one call, until its signal aborts.
 */
export function createPost({ ownPorts, lookup }: Outside): Post {
  return async (url, headers, body, signal) => {
    const to = new URL(url);
    const response = await openHttp(to, {
      method: 'POST',
      headers,
      body,
      lookup: lookupFor(to, ownPorts, lookup(signal)),
      // No connection is reused: the partner may close an idle one, and the attempt would fail without reaching it.
      agent: false,
      signal,
    });
    return readUpTo(response, ANSWER_READ_BYTES_MAX);
  };
}

async function readUpTo(response: IncomingMessage, bytesMax: number): Promise<Answer> {
  const body = new CollectedBytes(bytesMax);
  let isWhole = true;
  for await (const piece of response as AsyncIterable<Buffer>) {
    isWhole = body.add(piece);
    if (!isWhole) break;
  }
  const { statusCode: status = 0, headers } = response;
  const { location } = headers;
  if (!isWhole) {
    const isPlain = headers['content-encoding'] === undefined;
    const beginning = isPlain ? body.bytes.toString('utf8') : '';
    return { status, location, body: beginning, problem: `it is longer than ${bytesMax} bytes` };
  }
  let content = body.bytes;
  try {
    content = await decompressed(content, headers, bytesMax);
    return { status, location, body: textIn(content, headers) };
  } catch (error) {
    return { status, location, body: content.toString('utf8'), problem: reasonOf(error) };
  }
}

/** The first characters of a body that is not JSON show whether it is a page or a warning of PHP. */
const BEGINNING_CHARS_MAX = 20;
const PROBLEM_CHARS_MAX = 300;
const ADDRESS_CHARS_MAX = 200;
const KEYS_MAX = 100;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Returns why a reply to a callback is not the documented one, or undefined if it is (PROTOCOL.md, clause SYN-3). */
function replyProblem(body: string): string | undefined {
  if (body.trim() === '') return 'it is empty';
  const reply = parseJson(body);
  if (reply === undefined)
    return `it is not JSON: it begins with "${withoutUnseen(body.trim().slice(0, BEGINNING_CHARS_MAX))}"`;
  if (!isObject(reply)) return 'expected an object';
  const read = transactionSyncReply.safeParse(reply);
  if (read.success) return undefined;
  return `${issuesOf(read.error)}${mistypedIn(reply, Object.keys(transactionSyncReply.shape))}`.slice(
    0,
    PROBLEM_CHARS_MAX,
  );
}

/** Lists keys of an answer that look like misspelled keys that it lacks. The text ends a sentence. */
function mistypedIn(reply: object, known: readonly string[]): string {
  const missing = known.filter((it) => !Object.hasOwn(reply, it));
  return Object.keys(reply)
    .slice(0, KEYS_MAX)
    .filter((key) => !known.includes(key))
    .map((key) => ({ key, meant: suggestion(key, missing) }))
    .map(({ key, meant }) => (meant === '' ? '' : `; unknown key ${withoutUnseen(key)}${meant}`))
    .join('');
}

/**
 * Describes where a redirect leads and which option should hold that address. Returns undefined for any other answer.
 */
function redirectProblem(
  { status, location }: { status: number; location?: string | undefined },
  { from, option }: { from: string; option: string },
): string | undefined {
  if (!REDIRECTS.includes(status)) return undefined;
  const to = location ? URL.parse(location, from) : null;
  if (to === null || !/^https?:$/.test(to.protocol)) {
    return `HTTP ${status} without an http(s) address in Location: redirects are not followed; put the right address into ${option}`;
  }
  // A query or a user name may be a secret, so neither is shown.
  const whole = `${to.origin}${to.pathname}`;
  const address = whole.length > ADDRESS_CHARS_MAX ? `${whole.slice(0, ADDRESS_CHARS_MAX)}…` : whole;
  return `HTTP ${status} to ${address}: redirects are not followed; put that address into ${option}`;
}
