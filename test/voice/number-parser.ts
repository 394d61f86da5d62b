/** Reads Vietnamese number words by their grammar, independently of how they are made. Throws on ill-formed words. */

const AFTER_NOTHING = ['một', 'hai', 'ba', 'bốn', 'năm', 'sáu', 'bảy', 'tám', 'chín'];
const AFTER_TEN = ['một', 'hai', 'ba', 'bốn', 'lăm', 'sáu', 'bảy', 'tám', 'chín'];
const AFTER_TENS = ['mốt', 'hai', 'ba', 'tư', 'lăm', 'sáu', 'bảy', 'tám', 'chín'];

const one = (words: readonly string[]) => words.join('|');
const TENS = one(AFTER_NOTHING.slice(1));
const UNDER_HUNDRED =
  `(?:(?<ten>mười)(?: (?<afterTen>${one(AFTER_TEN)}))?` +
  `|(?<tens>${TENS}) mươi(?: (?<afterTens>${one(AFTER_TENS)}))?)`;
/** A group that begins the number. */
const LEADING = new RegExp(
  `^(?:(?<hundreds>${one(AFTER_NOTHING)}) trăm(?: (?:(?:linh|lẻ) (?<linh>${one(AFTER_NOTHING)})|${UNDER_HUNDRED}))?$)`,
  'u',
);
const LEADING_SHORT = new RegExp(`^(?:(?<unit>${one(AFTER_NOTHING)})|${UNDER_HUNDRED})$`, 'u');
/** An empty hundreds place is named, and something must follow it. */
const INNER_EMPTY = new RegExp(`^không trăm (?:(?:linh|lẻ) (?<linh>${one(AFTER_NOTHING)})|${UNDER_HUNDRED})$`, 'u');

export function parseNumberWords(text: string): bigint {
  if (text === 'không') return 0n;
  const parts = text.split(' tỷ');
  if (parts.length > 2) throw new Error(`more than one tỷ: ${text}`);
  if (parts.length === 1) return parseBelowBillion(text, true);
  const [above = '', below = ''] = parts;
  if (below !== '' && !below.startsWith(' ')) throw new Error(`nothing may stick to tỷ: ${text}`);
  const high = parseBelowBillion(above, true);
  return high * 1_000_000_000n + (below === '' ? 0n : parseBelowBillion(below.slice(1), false));
}

function parseBelowBillion(text: string, leads: boolean): bigint {
  let rest = text;
  let value = 0n;
  let first = leads;
  for (const [name, worth] of [
    [' triệu', 1_000_000n],
    [' nghìn', 1_000n],
  ] as const) {
    const at = rest.indexOf(name);
    if (at === -1) continue;
    value += worth * parseGroup(rest.slice(0, at), first);
    first = false;
    rest = rest.slice(at + name.length);
    if (rest === '') return value;
    if (!rest.startsWith(' ')) throw new Error(`not a word boundary: ${text}`);
    rest = rest.slice(1);
  }
  return value + parseGroup(rest, first);
}

function parseGroup(text: string, leads: boolean): bigint {
  const found = LEADING.exec(text) ?? (leads ? LEADING_SHORT : INNER_EMPTY).exec(text);
  const groups = found?.groups;
  if (groups === undefined) throw new Error(`ill-formed ${leads ? 'leading' : 'inner'} group: "${text}"`);
  const digit = (words: readonly string[], word: string | undefined) =>
    word === undefined ? 0 : words.indexOf(word) + 1;
  const tens = groups.ten === undefined ? digit(AFTER_NOTHING, groups.tens) : 1;
  const units =
    digit(AFTER_NOTHING, groups.unit) +
    digit(AFTER_NOTHING, groups.linh) +
    digit(AFTER_TEN, groups.afterTen) +
    digit(AFTER_TENS, groups.afterTens);
  return BigInt(digit(AFTER_NOTHING, groups.hundreds) * 100 + tens * 10 + units);
}
