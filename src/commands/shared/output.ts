import { withoutUnseen } from '../../lib/text.ts';

/**
 * Writes text to standard output and ends its line. What a person cannot see is written in JSON notation: a name, a reason
 * or an answer may come from somebody who wants to command the terminal (PROTOCOL.md, clause THR-7).
 */
export function say(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

/** Writes text to standard error likewise. */
export function remark(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

function printable(text: string): string {
  return text.split('\n').map(withoutUnseen).join('\n');
}
