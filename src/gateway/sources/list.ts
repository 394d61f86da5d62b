import { z } from 'zod';
import { type HttpAnswer, parseJson } from '../../lib/http-client.ts';
import { isExposed } from '../../lib/tls.ts';
import { issuesOf } from '../../protocol/codec.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { sourceSecret } from './fields.ts';

/** More than this many pages of one period are a list without an end. */
const PAGES_MAX = 1_000;
/** SePay's largest page; Casso names no largest. */
export const PAGE_ROWS = 100;
const SHOWN_CHARS_MAX = 200;
const VIETNAM_AHEAD_MS = 7 * 3_600_000;

/** The address of a source's API, without a slash at its end. */
export const apiUrl = (usual: string) =>
  z
    .url({ protocol: /^https?$/, error: 'an http:// or https:// address', abort: true })
    .max(LIMITS.urlMax)
    .refine((url) => !isExposed(url), 'expected https:// beyond this machine: the request has the token')
    .refine((url) => new URL(url).username === '', 'expected an address without a user name')
    .transform((url) => url.replace(/\/+$/, ''))
    .prefault(usual);

/** Access to a source's list, of which catch-up asks for what no webhook told. */
export const listApi = (usual: string) =>
  z
    .strictObject({ url: apiUrl(usual), token: sourceSecret })
    .optional()
    .describe('for catch-up');

/** A calendar time as `2026-01-05 09:10:11` in Vietnam's time; its first ten characters are the day. */
export function vietnamTime(atMs: number): string {
  return new Date(atMs + VIETNAM_AHEAD_MS).toISOString().slice(0, 19).replace('T', ' ');
}

/** Decodes the answer of a list. Throws for another status than 2xx, and for what does not fit. */
export function decodeAnswer<T>({ status, body }: HttpAnswer, schema: z.ZodType<T>): T {
  if (status < 200 || status > 299) throw new Error(`the list was answered with HTTP ${status}${saidIn(body)}`);
  const read = schema.safeParse(parseJson(body));
  if (!read.success) throw new Error(`the answer of the list is not as documented: ${issuesOf(read.error)}`);
  return read.data;
}

/** Reads page after page until one says that it is the last. */
export async function eachPage(read: (page: number) => Promise<{ hasMore: boolean }>): Promise<void> {
  for (let page = 1; page <= PAGES_MAX; page += 1) {
    const { hasMore } = await read(page);
    if (!hasMore) return;
  }
  throw new Error(`the list has more than ${PAGES_MAX} pages`);
}

/** The message in the body of a failure, if it is a short one. */
function saidIn(body: Buffer): string {
  const said = z.object({ message: z.string() }).safeParse(parseJson(body));
  return said.success ? `: ${said.data.message.slice(0, SHOWN_CHARS_MAX)}` : '';
}
