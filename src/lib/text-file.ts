import { isUtf8 } from 'node:buffer';
import { ConfigError } from './errors.ts';
import { utf16ByMark, validBytesIn } from './text.ts';

const SAVE_ANEW = 'save it as UTF-8, in a text editor';
const LINE_END = 0x0a;

/**
 * Returns the text of a file without its byte order mark. It refuses bytes that are not UTF-8, such as CP1258 and
 * UTF-16. With U+FFFD in their place, two different passwords would be equal.
 *
 * @throws ConfigError with the line, never with the text, which may be a secret.
 */
export function textOfFile(bytes: Uint8Array, name: string): string {
  if (utf16ByMark(bytes) !== undefined) throw new ConfigError(`${name}:1: is UTF-16, expected UTF-8`, SAVE_ANEW);
  const valid = isUtf8(bytes) ? bytes.length : validBytesIn(bytes);
  const nul = bytes.subarray(0, valid).indexOf(0);
  if (nul >= 0) throw new ConfigError(`${name}:${lineAt(bytes, nul)}: is no text`, SAVE_ANEW);
  if (valid < bytes.length) {
    throw new ConfigError(`${name}:${lineAt(bytes, valid)}: has letters that are not UTF-8`, SAVE_ANEW);
  }
  return new TextDecoder('utf-8').decode(bytes);
}

function lineAt(bytes: Uint8Array, end: number): number {
  let line = 1;
  for (let at = bytes.indexOf(LINE_END); at >= 0 && at < end; at = bytes.indexOf(LINE_END, at + 1)) line += 1;
  return line;
}
