const START = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
const SHIFTS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
];
const SINES = Array.from({ length: 64 }, (_, i) => Math.floor(2 ** 32 * Math.abs(Math.sin(i + 1))));
const MIXES = [
  (b, c, d) => (b & c) | (~b & d),
  (b, c, d) => (d & b) | (~d & c),
  (b, c, d) => b ^ c ^ d,
  (b, c, d) => c ^ (b | ~d),
];
const ORDERS = [(i) => i, (i) => 5 * i + 1, (i) => 3 * i + 5, (i) => 7 * i];

/** Returns the MD5 of a text in UTF-8, as lower-case hexadecimal (RFC 1321). Browsers provide none. */
export function md5(text) {
  const words = wordsOf(new TextEncoder().encode(text));
  let state = START;
  for (let at = 0; at < words.length; at += 16) {
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i += 1) {
      const round = i >> 4;
      const sum = (a + MIXES[round](b, c, d) + SINES[i] + words[at + (ORDERS[round](i) % 16)]) | 0;
      const shift = SHIFTS[round][i % 4];
      [a, b, c, d] = [d, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0, b, c];
    }
    state = [a, b, c, d].map((it, i) => (it + state[i]) | 0);
  }
  const bytes = new DataView(new ArrayBuffer(16));
  state.forEach((it, i) => {
    bytes.setUint32(4 * i, it, true);
  });
  return [...new Uint8Array(bytes.buffer)].map((it) => it.toString(16).padStart(2, '0')).join('');
}

/** Returns the padded message. */
function wordsOf(bytes) {
  const words = new Uint32Array((((bytes.length + 8) >> 6) + 1) * 16);
  const put = (byte, i) => {
    words[i >> 2] |= byte << (8 * (i % 4));
  };
  bytes.forEach(put);
  put(0x80, bytes.length);
  words[words.length - 2] = bytes.length * 8;
  return words;
}
