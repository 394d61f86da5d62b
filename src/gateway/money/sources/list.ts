import { z } from 'zod';
import { jsonIn } from '../../../lib/bodies.ts';
import { reasonOf } from '../../../lib/errors.ts';
import { type HttpAnswer, parseJson } from '../../../lib/http-client.ts';
import { HTTP_SCHEMES, isExposed } from '../../../lib/tls.ts';
import { issuesOf } from '../../../protocol/codec.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { sourceSecret } from './fields.ts';
import type { Listed } from './source.ts';

/** A list of more pages for one period has no end. */
const PAGES_MAX = 1_000;
/** SePay allows no larger page. Casso documents no limit. */
export const PAGE_ROWS = 100;
const SHOWN_CHARS_MAX = 200;

/** The address of a source's API. A slash at its end is dropped. */
export const apiAddress = z
  .url({ protocol: /^https?$/, error: 'an http:// or https:// address', abort: true })
  .max(LIMITS.urlMax)
  .refine((url) => !isExposed(url, HTTP_SCHEMES), 'expected https:// beyond this machine: the request has the token')
  .refine((url) => new URL(url).username === '', 'expected an address without a user name')
  .transform((url) => url.replace(/\/+$/, ''));

export const apiUrl = (usual: string) => apiAddress.prefault(usual);

/**
 * Returns the schema of the access to a source's list. Catch-up reads the list for credits that no webhook reported.
 */
export const listApi = (usual: string) =>
  z
    .strictObject({ url: apiUrl(usual), token: sourceSecret })
    .optional()
    .describe('for catch-up');

/**
 * Decodes the answer to the request for `what`. Throws for a status other than 2xx, and for a body that does not fit.
 */
export function decodeAnswer<T>({ status, headers, body }: HttpAnswer, schema: z.ZodType<T>, what = 'the list'): T {
  if (status < 200 || status > 299) throw new Error(`${what} was answered with HTTP ${status}${saidIn(body)}`);
  let json: unknown;
  try {
    json = jsonIn(body, headers);
  } catch (error) {
    throw new Error(`the answer of ${what} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  const read = schema.safeParse(json);
  if (!read.success) throw new Error(`the answer of ${what} is not as documented: ${issuesOf(read.error)}`);
  return read.data;
}

/** A page of a list. `entries` is its raw content: a list that ignores the page number repeats it. */
export interface Page {
  listed: Listed;
  entries: unknown;
  hasMore: boolean;
}

/** Reads page after page until the last. Throws for a list without an end. */
export async function* eachPage(read: (page: number) => Promise<Page>): AsyncGenerator<Listed> {
  let before = '';
  for (let page = 1; page <= PAGES_MAX; page += 1) {
    const { listed, entries, hasMore } = await read(page);
    yield listed;
    if (!hasMore) return;
    const text = JSON.stringify(entries);
    if (text === before) throw new Error(`the list has no end: its pages ${page - 1} and ${page} are the same`);
    before = text;
  }
  throw new Error(`the list has no end: it has more than ${PAGES_MAX} pages`);
}

/** Returns the message in the body of a failure, cut to a short text. */
function saidIn(body: Buffer): string {
  const said = z.object({ message: z.string() }).safeParse(parseJson(body));
  return said.success ? `: ${said.data.message.slice(0, SHOWN_CHARS_MAX)}` : '';
}
