import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';
import { reasonOf, systemCodeOf } from './errors.ts';
import { utf16ByMark, validBytesIn } from './text.ts';

/*
 * Reads bodies of requests and answers. Senders compress them, put a byte order mark in front, or use another charset.
 */

/** Headers that say how to read a body. */
export interface BodyHeaders {
  'content-encoding'?: string | undefined;
  'content-type'?: string | undefined;
}

/** Reports a body that cannot be read. The message names the problem, as `Content-Encoding: zstd; expected …`. */
export class UnreadableBody extends Error {
  /** The status with which a server refuses such a request. */
  readonly statusCode: 400 | 413 | 415;

  constructor(statusCode: 400 | 413 | 415, problem: string) {
    super(problem);
    this.name = 'UnreadableBody';
    this.statusCode = statusCode;
  }
}

type Decompress = (bytes: Buffer, bytesMax: number) => Promise<Buffer>;

const decompressor = (work: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>): Decompress => {
  return (bytes, maxOutputLength) => work(bytes, { maxOutputLength });
};
const gzip = decompressor(promisify(gunzip));
const zlib = decompressor(promisify(inflate));
const bareDeflate = decompressor(promisify(inflateRaw));
/** Returns whether the bytes begin with a zlib header (RFC 1950). Some servers send deflate without it. */
const isZlib = (bytes: Buffer) => ((bytes[0] ?? 0) & 0x0f) === 8;

const DECOMPRESSORS: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', (bytes, bytesMax) => (isZlib(bytes) ? zlib : bareDeflate)(bytes, bytesMax)],
  ['br', decompressor(promisify(brotliDecompress))],
]);

/**
 * Returns a body without its `Content-Encoding` (gzip, deflate or br). It decompresses at most `bytesMax` bytes.
 *
 * @throws UnreadableBody for another encoding, for bytes that do not have it, and for more than `bytesMax` bytes.
 */
export async function decompressed(
  body: Buffer,
  { 'content-encoding': given }: BodyHeaders,
  bytesMax: number,
): Promise<Buffer> {
  const encoding = given?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity' || body.length === 0) return body;
  const decompress = DECOMPRESSORS.get(encoding);
  if (decompress === undefined) {
    throw new UnreadableBody(
      415,
      `Content-Encoding: ${shown(encoding)} is not known; expected gzip, deflate, br or none`,
    );
  }
  try {
    return await decompress(body, bytesMax);
  } catch (error) {
    if (systemCodeOf(error) === 'ERR_BUFFER_TOO_LARGE') {
      throw new UnreadableBody(413, `the body is longer than ${bytesMax} bytes once its ${encoding} is undone`);
    }
    throw new UnreadableBody(400, `Content-Encoding: the body is no ${encoding}: ${reasonOf(error)}`);
  }
}

const SHOWN_CHARS_MAX = 40;
/** Returns the beginning of a sender's header in ASCII, as a message may show it. */
const shown = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, SHOWN_CHARS_MAX);

/**
 * Returns the text of a body without its byte order mark. The mark names the charset; without one `Content-Type` does;
 * without both it is UTF-8. With `isLenient`, bytes outside the charset become U+FFFD.
 *
 * @throws UnreadableBody for an unknown charset, and for bytes that are not in it.
 */
export function textIn(
  body: Uint8Array,
  { 'content-type': type = '' }: BodyHeaders = {},
  { isLenient = false } = {},
): string {
  const named = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(type)?.[1]?.toLowerCase();
  const charset = utf16ByMark(body) ?? named ?? 'utf-8';
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(charset, { fatal: !isLenient });
  } catch {
    throw new UnreadableBody(415, `Content-Type: charset ${shown(charset)} is not known; expected utf-8`);
  }
  try {
    return decoder.decode(body);
  } catch {
    const at = decoder.encoding === 'utf-8' ? ` at byte ${validBytesIn(body)}` : '';
    throw new UnreadableBody(400, `the body is not ${decoder.encoding.toUpperCase()}${at}`);
  }
}

/**
 * Parses the JSON of a body. An error message never quotes the body, which may hold a secret.
 *
 * @throws UnreadableBody as `textIn` does, and for invalid JSON.
 */
export function jsonIn(body: Uint8Array, headers: BodyHeaders = {}): unknown {
  const text = textIn(body, headers);
  if (text.trim() === '') throw new UnreadableBody(400, 'the body is empty, expected JSON');
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const type = mediaTypeOf(headers);
    const kind = type === undefined || /json/i.test(type) ? '' : ` but ${type}`;
    throw new UnreadableBody(400, `the body is not JSON${kind}${placeOf(error, text)}`);
  }
}

/** Returns why a text is not JSON and where, without quoting it; undefined if it is JSON. */
export function notJson(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `the body is not JSON${placeOf(error, text)}`;
  }
}

function placeOf(error: unknown, text: string): string {
  const reason = reasonOf(error);
  if (reason.includes('end of JSON')) return ` (it is cut at position ${text.length})`;
  const [place] = /at position \d+/.exec(reason) ?? [];
  return place === undefined ? '' : ` (${place})`;
}

/** Returns the type of a body without its parameters, safe to print; undefined if the header is missing. */
export function mediaTypeOf({ 'content-type': type = '' }: BodyHeaders): string | undefined {
  return shown((type.split(';', 1)[0] ?? '').trim()) || undefined;
}

/**
 * Guesses from the first bytes of a body whether it is JSON or which type of form; undefined if it looks like neither.
 */
export function looksLike(body: Uint8Array): FormType | 'JSON' | undefined {
  const beginning = Buffer.from(body.subarray(0, BEGINNING_BYTES)).toString('latin1').trimStart();
  if (/^[{[]/.test(beginning)) return 'JSON';
  if (/^--\S[^\n]*\r?\ncontent-/i.test(beginning)) return 'multipart/form-data';
  return /^[\w.%+-]+=/.test(beginning) ? 'application/x-www-form-urlencoded' : undefined;
}

type FormType = 'multipart/form-data' | 'application/x-www-form-urlencoded';
/** This length covers the boundary of a form and the name of its first field. */
const BEGINNING_BYTES = 200;
/** These are the two types of forms that browsers and form libraries send. */
const FORM = /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\s*(?:;|$)/i;

export function isForm({ 'content-type': type = '' }: BodyHeaders): boolean {
  return FORM.test(type.trim());
}

/**
 * Returns the fields of a form. Of fields with equal names the last one wins, and files are ignored. The caller limits
 * the size of the body.
 *
 * @throws UnreadableBody for a body that does not match its `Content-Type`.
 */
export async function formIn(
  body: Uint8Array<ArrayBuffer>,
  { 'content-type': type = '' }: BodyHeaders,
): Promise<Record<string, string>> {
  const media = mediaTypeOf({ 'content-type': type }) ?? '';
  if (/^multipart\//i.test(media) && !/;\s*boundary\s*=/i.test(type)) {
    throw new UnreadableBody(400, `Content-Type is ${media} without a boundary, expected one`);
  }
  try {
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    const fields = [...form].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : []));
    return Object.fromEntries(fields);
  } catch {
    const hint = looksLike(body) === 'JSON' ? `; Content-Type is ${media}, expected application/json` : '';
    throw new UnreadableBody(400, `the body is no ${media}${hint}`);
  }
}
