import type { Random } from '../lib/random.ts';

const PREFIX = 'PB';
/** Without 0, 1, I and O, which people and banks confuse. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
const RANDOM_CHARS = 6;
const CODE_IN_TEXT = new RegExp(`(?=(${PREFIX}[${ALPHABET}]{${RANDOM_CHARS + 1}}))`, 'g');
/** With fewer characters, a bank's own words could form the code of a certain order. */
const BEGUN_CHARS_MIN = 3;
const BEGUN_CODE = new RegExp(`${PREFIX}[${ALPHABET}]{${BEGUN_CHARS_MIN},${RANDOM_CHARS}}$`);

/**
 * Returns a code for the content of a QR: `PB`, six random characters and a check character (PROTOCOL.md, clause
 * MAT-1).
 */
export function makeOrderCode(random: Random): string {
  const bytes = Buffer.from(random.secret(RANDOM_CHARS), 'base64url');
  const chars = [...bytes].map((byte) => ALPHABET[byte % ALPHABET.length] ?? '').join('');
  return `${PREFIX}${chars}${checkOf(chars)}`;
}

export function isOrderCode(text: string): boolean {
  return orderCodesIn(text)[0] === text;
}

/** Returns the codes with a right check character in a text of A to Z and 0 to 9, in their order. */
export function orderCodesIn(reduced: string): string[] {
  const found = [...reduced.matchAll(CODE_IN_TEXT)].map(([, code = '']) => code);
  return found.filter((code) => code.endsWith(checkOf(code.slice(PREFIX.length, -1))));
}

/** Returns whether a text of A to Z and 0 to 9 ends inside a code, so that a bank's next words may complete it. */
export function endsInOrderCode(reduced: string): boolean {
  return BEGUN_CODE.test(reduced);
}

/**
 * Returns the check character by Luhn's algorithm for an alphabet of 32, by which every single wrong character is
 * noticed.
 */
function checkOf(chars: string): string {
  const size = ALPHABET.length;
  const sum = [...chars].reduce((total, char, at) => {
    const value = ALPHABET.indexOf(char) * (at % 2 === 0 ? 1 : 2);
    return total + Math.floor(value / size) + (value % size);
  }, 0);
  return ALPHABET[(size - (sum % size)) % size] ?? '';
}

/** If this many random codes are all in use, the store is full of them, or the random source is broken. */
const CODE_TRIES_MAX = 10;

/** Calls `make` until it returns something. It returns undefined if another order has its new code. */
export async function withFreeCode<T>(make: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < CODE_TRIES_MAX; tries += 1) {
    const made = await make();
    if (made !== undefined) return made;
  }
  throw new Error(`${CODE_TRIES_MAX} random codes are those of other orders`);
}
