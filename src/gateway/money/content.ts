import type { Random } from '../../lib/random.ts';
import { LIMITS } from '../../protocol/fields.ts';

/** The prefix of the public service, in the text of a bank. */
const CODE = /VQR[0-9A-F]{10}/g;
const HEX_DIGITS = 10;
/** The beginning of such a code, at the end of a text. */
const BEGUN_CODE = /VQR[0-9A-F]{3,9}$/;

/** A code as the public service puts it before a content. */
export function makePublicCode(random: Random): string {
  return `VQR${random.uuid().replaceAll('-', '').slice(0, HEX_DIGITS)}`;
}

/** The content that a QR carries after a code: cut, because the code is enough (PROTOCOL.md, clauses GEN-9 and GEN-10). */
export function withCode(content: string, code: string): string {
  return `${code} ${content}`.slice(0, LIMITS.contentMax).trimEnd();
}

/** The codes of public QRs in a text of A to Z and 0 to 9, as they are stored (PROTOCOL.md, clause CBK-8). */
export function codesIn(reduced: string): string[] {
  return [...reduced.matchAll(CODE)].map(([code]) => `VQR${code.slice(3).toLowerCase()}`);
}

/** Tells whether such a text ends inside such a code, so that what a bank writes behind it may complete one. */
export function endsInCode(reduced: string): boolean {
  return BEGUN_CODE.test(reduced);
}

/** The longest content that the test callback takes, and what it may have in it (service specification, section 2.5). */
const TESTABLE = new RegExp(`^[A-Za-z0-9 ]{1,${LIMITS.testCallbackContentMax}}$`);

/** Whether the test callback takes this content, by the specification. */
export function isTestable(content: string): boolean {
  return TESTABLE.test(content);
}
