import type { z } from 'zod';
import { type BodyHeaders, notJson, textIn } from '../../lib/bodies.ts';
import { reasonOf } from '../../lib/errors.ts';
import { isObject, issuesOf } from '../../protocol/codec.ts';
import { accept, type Result, refuse } from './result.ts';

/** Decodes the JSON object of a request by `schema`. Problems are E46 (PROTOCOL.md, clause ERR-3). */
export function decodeBody<T>(schema: z.ZodType<T>, json: unknown): Result<T> {
  if (!isObject(json)) return refuse('E46', 'body: expected a JSON object');
  const parsed = schema.safeParse(json);
  return parsed.success ? accept(parsed.data) : refuse('E46', issuesOf(parsed.error));
}

/** Returns the top-level fields of a body that its schema does not know (PROTOCOL.md, clause ERR-4). */
export function unknownFields(schema: z.ZodObject, json: unknown): string[] {
  return isObject(json) ? Object.keys(json).filter((key) => !Object.hasOwn(schema.shape, key)) : [];
}

/** Decodes the JSON of a received body in the charset of its `Content-Type`, or refuses it by clauses ERR-3 and ERR-9. */
export function parseJson(body: Buffer | undefined, headers?: BodyHeaders): Result<unknown> {
  if (body === undefined || body.length === 0) return refuse('E46', 'body: expected JSON, it is empty');
  let text: string;
  try {
    text = textIn(body, headers);
  } catch (error) {
    return refuse('E46', `body: expected UTF-8 JSON: ${reasonOf(error)}`);
  }
  try {
    return accept(JSON.parse(text, finite) as unknown);
  } catch {
    return refuse('E46', `body: expected UTF-8 JSON: ${notJson(text) ?? 'it is nested too deep'}`);
  }
}

/** Replaces an infinite number such as 1e400 by one that its field refuses as too large (PROTOCOL.md, clause ERR-3). */
function finite(_key: string, value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value;
  return Math.sign(value) * Number.MAX_VALUE;
}
