import { unaccented } from '../../lib/text.ts';

const ASCII = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join('');

/** Every Vietnamese letter outside ASCII, in both cases. */
const VIETNAMESE = accented().join('') + accented().join('').toUpperCase();

/** Every character that a screen can draw. `cleanText` replaces all others. */
export const CHARSET = `${ASCII}${VIETNAMESE}₫…“”‘’–—•·×`;

/** The characters of an amount, for example `50.000 ₫`. */
export const FIGURES = '0123456789. ₫';

/** The letters of the mark on screens of a sandbox. */
export const MARK_LETTERS = 'ABDNOSX';

const KNOWN = new Set(CHARSET);

/** Words of ASCII with one space between them. Most texts are such, again with each second of a countdown. */
const CLEAN = /^[!-~]+(?: [!-~]+)*$/;

function accented(): string[] {
  const tones = ['', '\u0300', '\u0301', '\u0309', '\u0303', '\u0323'];
  const letters = [...'aăâeêioôơuưy'].flatMap((vowel) => tones.map((tone) => (vowel + tone).normalize('NFC')));
  return [...letters.filter((letter) => !ASCII.includes(letter)), 'đ'];
}

/**
 * Cleans text from outside: one composed line with characters of `CHARSET` only. Control characters and line breaks
 * become spaces, letters lose foreign accents, other characters become `?`.
 */
export function cleanText(text: string): string {
  if (CLEAN.test(text)) return text;
  const composed = text
    .toWellFormed()
    .normalize('NFC')
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ');
  return Array.from(composed, drawable).join('').trim();
}

function drawable(char: string): string {
  if (KNOWN.has(char)) return char;
  if (/\p{M}/u.test(char)) return '';
  const base = char.normalize('NFKD').charAt(0);
  return KNOWN.has(base) ? base : '?';
}

/** Returns the text in ASCII letters, for displays without accented characters. */
export function withoutAccents(text: string): string {
  return unaccented(text)
    .replaceAll('₫', 'd')
    .replaceAll('…', '~')
    .replaceAll(/[“”]/g, '"')
    .replaceAll(/[‘’]/g, "'")
    .replaceAll(/[–—•·]/g, '-')
    .replaceAll('×', 'x');
}
