import type { Seeded } from '../support/seeded.ts';

/** More than any limit of a decoder, so that each limit is met from both sides. */
const INPUT_BYTES_MAX = 70_000;
const STEPS_MAX = 4;

/** Numbers at the edges of what fields, lengths, doubles and dates hold. */
export const ODD_NUMBERS = [
  ...[
    '0',
    '-0',
    '-1',
    '1',
    '0.5',
    '1.0',
    '1e0',
    '00',
    '01',
    '0x10',
    '1e5',
    '1e-400',
    '1e400',
    '-1e400',
    'NaN',
    'Infinity',
  ],
  ...['99', '100', '127', '128', '255', '256', '32767', '32768', '65535', '65536', '2147483647', '2147483648'],
  ...['4294967295', '4294967296', '9999999999999', '10000000000000', '8640000000000000', '8640000000000001'],
  ...['9007199254740991', '9007199254740992', '9007199254740993', '1'.repeat(400)],
];

/** Text that other programs stumble over. */
export const ODD_TEXTS = [
  ...[
    '',
    ' ',
    '\0',
    '\r\n',
    '\n\n',
    '\t',
    '\u007f',
    '\u0085',
    '\u00a0',
    '\u2028',
    '\u2029',
    '\ufeff',
    '\ufffd',
    '\uffff',
  ],
  ...[
    '\u202e',
    '\u200b',
    '\u200d',
    'e\u0301'.repeat(30),
    '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
    '\u{10ffff}',
    'ß',
    'İ',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'null',
    'true',
    '[]',
    '{}',
    '""',
    "'",
    '"',
    '\\',
    '\\u0000',
  ],
  ...['../../../etc/passwd', '%00', '%s%n', '<script>', "' OR 1=1 --", '\x1b[2J', '\x1b]0;x\x07', '#', '+', '$SYS/#'],
  ...['Đã nhận năm mươi nghìn đồng', 'ﷺ', '٣', 'a'.repeat(64), 'a'.repeat(65), '9'.repeat(20), 'x'.repeat(1_000)],
];

/** Bytes that are no UTF-8, or mean something to a wire. */
const ODD_BYTES = [
  ...[
    '00',
    'ff',
    'ffffff',
    '80',
    'c080',
    'eda080',
    'f4908080',
    'fffe',
    'efbbbf',
    '1b',
    '03',
    '0a',
    '0d0a',
    '7f',
    '5aa5',
  ],
  ...[
    '01ffffff',
    '00ffffff',
    '88ffffff',
    '000000ffffff',
    '5aa503824f4b',
    '5aa506834f000150',
    '12',
    '72',
    'ffffff7f',
    '8080808001',
  ],
].map((hex) => Buffer.from(hex, 'hex'));

type Step = (bytes: Buffer, chance: Seeded, corpus: readonly Uint8Array[]) => Buffer;

const STEPS: readonly (readonly [number, Step])[] = [
  [3, flipBit],
  [3, (bytes, chance) => withByte(bytes, chance, chance.below(256))],
  [3, (bytes, chance) => withByte(bytes, chance, [0, 0xff, 0x7f, 0x80, 0x20, 0x0a, 0x30][chance.below(7)] ?? 0)],
  [2, (bytes, chance) => bytes.subarray(0, chance.below(bytes.length + 1))],
  [2, cut],
  [2, duplicate],
  [1, repeat],
  [2, splice],
  [2, (bytes, chance) => insert(bytes, chance, pick(ODD_BYTES, chance))],
  [2, (bytes, chance) => insert(bytes, chance, Buffer.from(pick(ODD_TEXTS, chance)))],
  [3, renumber],
  [2, resize],
];

/** One item of the corpus, changed in one to four places: always the same for the same chance. */
export function mutated(corpus: readonly Uint8Array[], chance: Seeded): Buffer {
  let bytes = Buffer.from(pick(corpus, chance));
  for (let left = 1 + chance.below(STEPS_MAX); left > 0; left -= 1) {
    bytes = Buffer.from(chance.weighted(STEPS)(bytes, chance, corpus).subarray(0, INPUT_BYTES_MAX));
  }
  return bytes;
}

export function pick<T>(choices: readonly T[], chance: Seeded): T {
  const choice = choices[chance.below(choices.length)];
  if (choice === undefined) throw new RangeError('nothing to choose from');
  return choice;
}

function flipBit(bytes: Buffer, chance: Seeded): Buffer {
  const at = chance.below(bytes.length);
  return withByteAt(bytes, at, (bytes[at] ?? 0) ^ (1 << chance.below(8)));
}

function withByte(bytes: Buffer, chance: Seeded, value: number): Buffer {
  return withByteAt(bytes, chance.below(bytes.length), value);
}

function withByteAt(bytes: Buffer, at: number, value: number): Buffer {
  const changed = Buffer.from(bytes);
  if (at < changed.length) changed[at] = value;
  return changed;
}

/** Somewhere a piece from `from` up to `to`. */
function piece(bytes: Buffer, chance: Seeded): { from: number; to: number } {
  const from = chance.below(bytes.length + 1);
  return { from, to: Math.min(bytes.length, from + 1 + chance.below(chance.chance(0.5) ? 4 : 64)) };
}

function cut(bytes: Buffer, chance: Seeded): Buffer {
  const { from, to } = piece(bytes, chance);
  return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
}

function duplicate(bytes: Buffer, chance: Seeded): Buffer {
  const { from, to } = piece(bytes, chance);
  return insert(bytes, chance, bytes.subarray(from, to));
}

function repeat(bytes: Buffer, chance: Seeded): Buffer {
  const { from, to } = piece(bytes, chance);
  const times = Math.min(2 ** (1 + chance.below(12)), Math.floor(INPUT_BYTES_MAX / Math.max(1, to - from)));
  const many = Buffer.concat(Array.from({ length: times }, () => bytes.subarray(from, to)));
  return Buffer.concat([bytes.subarray(0, to), many, bytes.subarray(to)]);
}

function splice(bytes: Buffer, chance: Seeded, corpus: readonly Uint8Array[]): Buffer {
  const other = pick(corpus, chance);
  const at = chance.below(bytes.length + 1);
  return Buffer.concat([bytes.subarray(0, at), other.subarray(chance.below(other.length + 1))]);
}

function insert(bytes: Buffer, chance: Seeded, inserted: Uint8Array): Buffer {
  const at = chance.below(bytes.length + 1);
  return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)]);
}

/** Another number where one stands in digits, as in JSON, lengths of tags and headers. */
function renumber(bytes: Buffer, chance: Seeded): Buffer {
  const start = chance.below(bytes.length);
  const from = bytes.findIndex((byte, at) => at >= start && isDigit(byte));
  if (from < 0) return insert(bytes, chance, Buffer.from(pick(ODD_NUMBERS, chance)));
  let to = from;
  while (to < bytes.length && isDigit(bytes[to] ?? 0)) to += 1;
  return Buffer.concat([bytes.subarray(0, from), Buffer.from(pick(ODD_NUMBERS, chance)), bytes.subarray(to)]);
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** A length of one, two or four bytes that says a little, or far, too much or too little. */
function resize(bytes: Buffer, chance: Seeded): Buffer {
  const width = pick([1, 2, 4], chance);
  const at = chance.below(bytes.length);
  if (at + width > bytes.length) return bytes;
  const changed = Buffer.from(bytes);
  const limit = 2 ** (8 * width);
  const big = chance.chance(0.5);
  const said = big ? changed.readUIntBE(at, width) : changed.readUIntLE(at, width);
  const value = (said + pick([1, -1, 2, -2, 16, limit / 2, limit - 1, -said], chance) + limit) % limit;
  if (big) changed.writeUIntBE(value, at, width);
  else changed.writeUIntLE(value, at, width);
  return changed;
}
