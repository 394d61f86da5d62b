import type { Random } from '../../lib/random.ts';
import { LIMITS } from '../../protocol/fields.ts';

/** The codes of public QRs, as a bank writes them. */
const CODE = /VQR[0-9A-F]{10}/g;
const HEX_DIGITS = 10;
/** An incomplete code at the end of a text. */
const BEGUN_CODE = /VQR[0-9A-F]{3,9}$/;

/** Makes a code of the kind that the public service puts before a content. */
export function makePublicCode(random: Random): string {
  return `VQR${random.uuid().replaceAll('-', '').slice(0, HEX_DIGITS)}`;
}

/**
 * Returns the content of a QR: the code, then as much of the content as fits. The code alone identifies the order
 * (PROTOCOL.md, clauses GEN-9 and GEN-10).
 */
export function withCode(content: string, code: string): string {
  return `${code} ${content}`.slice(0, LIMITS.contentMax).trimEnd();
}

/**
 * Finds the codes of public QRs in a text of A to Z and 0 to 9, and returns them as they are stored (PROTOCOL.md,
 * clause CBK-8).
 */
export function codesIn(reduced: string): string[] {
  return [...reduced.matchAll(CODE)].map(([code]) => `VQR${code.slice(3).toLowerCase()}`);
}

/** Returns whether such a text ends inside a code. A bank's own words behind it could then complete one. */
export function endsInCode(reduced: string): boolean {
  return BEGUN_CODE.test(reduced);
}

/** The contents that the test callback accepts (service specification, section 2.5). */
const TESTABLE = new RegExp(`^[A-Za-z0-9 ]{1,${LIMITS.testCallbackContentMax}}$`);

/** Returns whether the test callback accepts this content. */
export function isTestable(content: string): boolean {
  return TESTABLE.test(content);
}
