import type { z } from 'zod';
import { isObject } from '../../protocol/codec.ts';

/** Whole numbers as text: without sign, point, exponent and leading zero. */
const DIGITS = /^(0|[1-9]\d{0,14})$/;
/**
 * Never coerces an account or a checkSum: a number would lose leading zeros, and the checkSum must match byte for byte.
 */
const NEVER_TURNED = ['bankAccount', 'checkSum'];
/** An empty text is not a value of these fields. A later check refuses it with a code of its own. */
const NEVER_EMPTY = ['transType', 'bankCode'];

/**
 * Collects notes on one call for the developer of the partner's program: what the gateway accepted although it is not
 * to the letter (PROTOCOL.md, clause LEN), and warnings of later trouble.
 */
export class CallNotes {
  readonly isStrict: boolean;
  readonly lenient = new Set<string>();
  readonly warnings = new Set<string>();

  constructor(isStrict: boolean) {
    this.isStrict = isStrict;
  }

  /** Returns whether the gateway may accept a value that is not to the letter, and notes an accepted one. */
  takes(what: string): boolean {
    if (!this.isStrict) this.lenient.add(what);
    return !this.isStrict;
  }

  /** Returns the notes in the form of the traffic log. */
  listed(): { lenient: string[]; warnings: string[] } {
    return { lenient: [...this.lenient], warnings: [...this.warnings] };
  }

  warn(what: string): void {
    this.warnings.add(what);
  }
}

/** Reads the fields of a body as the public service does (PROTOCOL.md, clauses LEN-2 and LEN-3). */
export function readLeniently(schema: z.ZodObject, json: unknown, notes: CallNotes): unknown {
  if (!isObject(json)) return json;
  const fields = Object.entries(json).flatMap(([field, value]) => {
    const rule = Object.hasOwn(schema.shape, field) ? (schema.shape[field] as z.ZodType) : undefined;
    const isEmpty = value === '' && NEVER_EMPTY.includes(field);
    if (rule === undefined || (!isEmpty && rule.safeParse(value).success)) return [[field, value]];
    const isUnset = (value === null || value === '') && rule.safeParse(undefined).success;
    const written = value === null ? 'null' : 'an empty text';
    if (isUnset && notes.takes(`${field}: ${written} where it is left out`)) return [];
    const turned = NEVER_TURNED.includes(field) ? undefined : turnedOf(value);
    const isTaken = turned !== undefined && rule.safeParse(turned.value).success;
    return [[field, isTaken && notes.takes(`${field}: ${turned.what}`) ? turned.value : value]];
  });
  return Object.fromEntries(fields);
}

/** Converts a value of the wrong type, or returns undefined if it cannot be converted. */
function turnedOf(value: unknown): { value: unknown; what: string } | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value) && !Object.is(value, -0)) {
    return { value: String(value), what: 'a number for a text' };
  }
  if (typeof value === 'string' && DIGITS.test(value)) return { value: Number(value), what: 'a text for a number' };
  return isObject(value) ? { value: [value], what: 'an object for a list' } : undefined;
}
