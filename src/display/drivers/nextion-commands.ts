import { displayFault } from './fault.ts';
import { END } from './nextion-answers.ts';
import type { NextionOptions } from './nextion-options.ts';

export function encoded(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

/** The instruction as it is sent. */
export function command(instruction: string): Uint8Array {
  return Uint8Array.from([...encoded(instruction), ...END]);
}

/** `t0.txt="…"`, with what the panel's parser asks to be escaped. Throws a PayboxError where it cannot carry the text. */
export function assignment(component: string, value: string, encoding: NextionOptions['encoding']): string {
  const carried = encoding === 'utf-8' ? /^\P{Cc}*$/u : /^[ -~]*$/;
  if (!carried.test(value)) {
    throw displayFault(`the text for ${component} has characters that the panel cannot take`, 'set encoding: utf-8');
  }
  return `${component}.txt="${value.replaceAll(/["\\]/g, '\\$&')}"`;
}
