import { vietnamTime } from '../../lib/vietnam-time.ts';
import type { Phrase } from './contract.ts';

/** The largest number with words here: one million tỷ. */
export const NUMBER_MAX = 10 ** 15;

export interface NumberWordsOptions {
  /** The word for an empty tens place: `linh` in the north, `lẻ` in the south. */
  zero?: ZeroWord;
}

export type ZeroWord = 'linh' | 'lẻ';
export const ZERO_WORDS = ['linh', 'lẻ'] as const satisfies readonly ZeroWord[];

const DIGITS = ['không', 'một', 'hai', 'ba', 'bốn', 'năm', 'sáu', 'bảy', 'tám', 'chín'] as const;
/** The names of the three groups of a billion, lowest first. */
const GROUPS = ['', 'nghìn', 'triệu'] as const;
const BILLION = 10 ** 9;

/**
 * Returns the Vietnamese words of a whole number from 0 to NUMBER_MAX: lower case, separated by single spaces. Groups
 * below the first have all their words (`một nghìn không trăm linh năm`), and empty groups have none. Throws a
 * RangeError for any other number.
 */
export function numberWords(value: number | bigint, { zero = 'linh' }: NumberWordsOptions = {}): string {
  const whole = Number(value);
  if (!Number.isInteger(whole) || whole < 0 || whole > NUMBER_MAX) {
    throw new RangeError(`${value} has no words here: a whole number from 0 to ${NUMBER_MAX} has`);
  }
  return whole === 0 ? DIGITS[0] : positive(whole, false, zero).join(' ');
}

/** Returns the sentence for a payment of `amountDong` whole đồng. Throws a RangeError as numberWords does. */
export function announcementText(amountDong: number, options: NumberWordsOptions = {}): string {
  return `Đã nhận ${numberWords(amountDong, options)} đồng`;
}

/** Returns the sentence for a repetition, which nobody mistakes for a new payment. `paidAtMs` is calendar time. */
export function repetitionText(amountDong: number, paidAtMs: number, options: NumberWordsOptions = {}): string {
  return `Nhắc lại, lúc ${timeWords(paidAtMs, options)}, đã nhận ${numberWords(amountDong, options)} đồng`;
}

/** Returns the words of the time of day in Vietnam, as `chín giờ năm phút`, separated by single spaces. */
export function timeWords(wallMs: number, options: NumberWordsOptions = {}): string {
  const [, time = ''] = vietnamTime(wallMs).split(' ');
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  const hour = `${numberWords(hours, options)} giờ`;
  return minutes === 0 ? hour : `${hour} ${numberWords(minutes, options)} phút`;
}

/** This phrase has every word that a repetition needs besides numbers. */
export const REPETITION_TRIED: Phrase = {
  text: repetitionText(0, 60_000),
  number: numberWords(0),
  time: timeWords(60_000),
};

/** Returns every word that numberWords can use with this `zero`, once. */
export function vocabulary(zero: ZeroWord): string[] {
  return [...DIGITS, 'mốt', 'tư', 'lăm', 'mười', 'mươi', zero, 'trăm', 'nghìn', 'triệu', 'tỷ'];
}

function positive(value: number, inner: boolean, zero: ZeroWord): string[] {
  if (value >= BILLION) {
    const rest = value % BILLION;
    return [...positive((value - rest) / BILLION, inner, zero), 'tỷ', ...positive(rest, true, zero)];
  }
  const words: string[] = [];
  for (let place = GROUPS.length - 1; place >= 0; place -= 1) {
    const group = Math.floor(value / 1000 ** place) % 1000;
    if (group === 0) continue;
    words.push(...groupWords(group, inner || words.length > 0, zero));
    const name = GROUPS[place];
    if (name) words.push(name);
  }
  return words;
}

/** Returns words of 1…999. An `inner` group also reads its empty hundreds. */
function groupWords(group: number, inner: boolean, zero: ZeroWord): string[] {
  const hundreds = Math.floor(group / 100);
  const tens = Math.floor(group / 10) % 10;
  const units = group % 10;
  const withHundreds = inner || hundreds > 0;
  const words = withHundreds ? [digit(hundreds), 'trăm'] : [];
  if (tens === 0) {
    if (units === 0) return words;
    return withHundreds ? [...words, zero, digit(units)] : [digit(units)];
  }
  words.push(...(tens === 1 ? ['mười'] : [digit(tens), 'mươi']));
  return units === 0 ? words : [...words, unitAfterTens(units, tens)];
}

function unitAfterTens(units: number, tens: number): string {
  if (units === 5) return 'lăm';
  if (tens > 1 && units === 1) return 'mốt';
  if (tens > 1 && units === 4) return 'tư';
  return digit(units);
}

function digit(value: number): string {
  return DIGITS[value] ?? '';
}
