import type { z } from 'zod';
import { isObject } from '../../protocol/codec.ts';

/** Whole numbers as text: without sign, point, exponent and leading zero. */
const DIGITS = /^(0|[1-9]\d{0,14})$/;
/** Accounts lose zeros as numbers, and a checkSum is compared as it was sent: neither is read in another way. */
const NEVER_TURNED = ['bankAccount', 'checkSum'];
/** An empty text is no value of these, but only a later check says so: that has a code of its own. */
const NEVER_EMPTY = ['transType', 'bankCode'];

/**
 * Notes on one call for the developer of the partner's program: things that were taken although they are not to the
 * letter (PROTOCOL.md, clause LEN), and warnings of later trouble.
 */
export class CallNotes {
  readonly isStrict: boolean;
  readonly lenient = new Set<string>();
  readonly warnings = new Set<string>();

  constructor(isStrict: boolean) {
    this.isStrict = isStrict;
  }

  /** Whether something that is not to the letter may be taken. What is taken is noted. */
  takes(what: string): boolean {
    if (!this.isStrict) this.lenient.add(what);
    return !this.isStrict;
  }

  /** As in an entry of the traffic log. */
  listed(): { lenient: string[]; warnings: string[] } {
    return { lenient: [...this.lenient], warnings: [...this.warnings] };
  }

  warn(what: string): void {
    this.warnings.add(what);
  }
}

/** The fields of a body as the public service reads them (PROTOCOL.md, clauses LEN-2 and LEN-3). */
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

/** The other reading of a value of the wrong type. */
function turnedOf(value: unknown): { value: unknown; what: string } | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value) && !Object.is(value, -0)) {
    return { value: String(value), what: 'a number for a text' };
  }
  if (typeof value === 'string' && DIGITS.test(value)) return { value: Number(value), what: 'a text for a number' };
  return isObject(value) ? { value: [value], what: 'an object for a list' } : undefined;
}
