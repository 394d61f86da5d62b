import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { EventStream } from '../../lib/event-stream.ts';
import { UNREAD_BYTES_MAX } from '../../lib/listen.ts';
import type { Logger } from '../../lib/log.ts';
import type { Code } from '../../protocol/codes.ts';
import { REASON_HEADER } from '../../protocol/http-api.ts';
import { BOX_ALIVE_MS } from '../../protocol/messages.ts';
import { parseJson, unknownFields } from '../common/decode.ts';
import type { LoginAttempt, Logins } from '../common/logins.ts';
import type { Refusal, Result } from '../common/result.ts';
import { addressOf } from './carried.ts';

/** The statuses of PROTOCOL.md, clause ERR-2. Callers set 404, 405, 413 and 415 themselves. */
const STATUS_OF: Partial<Record<Code, number>> = { E74: 401, E05: 500 };

/** The challenge to a caller who sends no token (RFC 6750, section 3). */
export const BEARER = 'Bearer realm="paybox"';

const HEADER_CHARS_MAX = 1_000;
export const ROWS_DEFAULT = 50;
export const ROWS_MAX = 500;

/** Returns the schema of a whole number in a query. A refusal names both bounds. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  const error = `expected ${min} ${max === Number.MAX_SAFE_INTEGER ? 'or more' : `to ${max}`}`;
  return z.coerce.number(error).int(error).min(min, error).max(max, error);
}

/** The query of a list. `before` is an id: only older rows are listed. */
export const listQuery = z.object({
  limit: wholeNumber(1, ROWS_MAX).default(ROWS_DEFAULT),
  before: z.string().optional().describe('an id: only older rows'),
});

/** Answers a refusal and logs it (PROTOCOL.md, clauses ERR-1, ERR-2, ERR-5 and ERR-7). */
export function answerRefusal(
  request: FastifyRequest,
  reply: FastifyReply,
  log: Logger,
  refusal: Omit<Refusal, 'ok'>,
  status = STATUS_OF[refusal.code] ?? 400,
  isReasoned = pathOf(request).startsWith('/admin/v1/'),
): FastifyReply {
  logRefusal(request, log, refusal, status);
  reply.header(REASON_HEADER, headerText(refusal.reason));
  // The body has the reason too, for admins (clause REG-4).
  const reason = isReasoned ? { reason: refusal.reason } : {};
  return reply.code(status).send({ status: 'FAILED', message: refusal.code, ...reason });
}

/** Makes a text fit for the value of a header: one line of ASCII, with other characters escaped as in JSON. */
export function headerText(text: string): string {
  const line = text.replaceAll(/[^\x20-\x7e]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return line.slice(0, HEADER_CHARS_MAX);
}

/** Statuses of refused logins. For these the log has the address of the caller. */
const LOGIN_REFUSED: readonly number[] = [401, 429];

/** Logs a refusal. The caller of this function answers it (PROTOCOL.md, clause ERR-5). */
export function logRefusal(
  request: FastifyRequest,
  log: Logger,
  { code, reason }: Omit<Refusal, 'ok'>,
  status: number,
): void {
  const from = LOGIN_REFUSED.includes(status) ? { address: addressOf(request) } : {};
  log.warn('request-refused', { method: request.method, path: pathOf(request), status, code, reason, ...from });
}

/** Makes a handler that answers with this JSON. It builds the JSON once, because anybody may ask for it often. */
export function answersOnceMade(make: () => object) {
  let text: string | undefined;
  return (_request: FastifyRequest, reply: FastifyReply) => {
    text ??= JSON.stringify(make());
    return reply.type('application/json; charset=utf-8').send(text);
  };
}

/** Returns the path without its query, because a query may contain secrets. */
export function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '';
}

/** Decodes the JSON body of a request. Logs the fields that `schema` does not know (PROTOCOL.md, clause ERR-4). */
export function readBody(request: FastifyRequest, log: Logger, schema?: z.ZodObject): Result<unknown> {
  const json = parseJson(Buffer.isBuffer(request.body) ? request.body : undefined, request.headers);
  if (json.ok && schema !== undefined) {
    const fields = unknownFields(schema, json.value);
    if (fields.length > 0) log.info('unknown-fields-ignored', { path: pathOf(request), fields: fields.join(' ') });
  }
  return json;
}

/** Turns an answer into a stream of events. Regular comments show that the stream is alive (clause BOX-HTTP-3). */
export function openStream(reply: FastifyReply, clock: Clock, headers: Record<string, string> = {}): EventStream {
  reply.hijack();
  const options = { clock, headers, heartbeatMs: BOX_ALIVE_MS, unreadBytesMax: UNREAD_BYTES_MAX };
  return new EventStream(reply.raw, options);
}

/**
 * Returns whether a login is right. Otherwise it answers: 401 with `challenge` as `WWW-Authenticate`, or 429 with
 * `Retry-After` after too many wrong logins.
 */
export function isLoggedIn(
  request: FastifyRequest,
  reply: FastifyReply,
  attempt: LoginAttempt,
  { logins, log, challenge }: { logins: Logins; log: Logger; challenge: string },
): boolean {
  const verdict = logins.check(attempt, addressOf(request));
  if (verdict.ok) return true;
  const { retryAfterSeconds } = verdict;
  if (retryAfterSeconds > 0) {
    reply.header('retry-after', String(retryAfterSeconds));
    answerRefusal(request, reply, log, { code: 'E74', reason: 'too many wrong logins' }, 429);
  } else {
    reply.header('www-authenticate', challenge);
    const problem = attempt.secret === undefined ? 'no' : 'wrong';
    answerRefusal(request, reply, log, { code: 'E74', reason: `${problem} credentials of a ${attempt.kind}` });
  }
  return false;
}
