import { LIMITS } from '../../protocol/fields.ts';

/** The prefix of the public service, in the text of a bank: in any case. */
const CODE = /VQR[0-9A-F]{10}/gi;
export const TEN_HEX_CHARS = 10;

/** The content that the QR carries under `contentPrefix: vietqr`: cut, because its code is enough (PROTOCOL.md, clause GEN-9). */
export function withCode(content: string, tenHex: string): string {
  return `VQR${tenHex} ${content}`.slice(0, LIMITS.contentMax).trimEnd();
}

/** The codes of public QRs in a text, as they are stored (PROTOCOL.md, clause CBK-8). */
export function codesIn(text: string): string[] {
  const found = text.replaceAll(/[^A-Za-z0-9]/g, '').matchAll(CODE);
  return [...found].map(([code]) => `VQR${code.slice(3).toLowerCase()}`);
}

/** The longest content that the test callback takes, and what it may have in it (service specification, section 2.5). */
const TESTABLE = new RegExp(`^[A-Za-z0-9 ]{1,${LIMITS.testCallbackContentMax}}$`);

/** Whether the test callback takes this content, by the specification. */
export function isTestable(content: string): boolean {
  return TESTABLE.test(content);
}
