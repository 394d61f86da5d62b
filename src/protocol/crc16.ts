/**
 * Computes the CRC-16/CCITT-FALSE (polynomial 1021, initial value FFFF, no reflection, no final XOR) of an ASCII
 * string, as four upper-case hexadecimal digits (PROTOCOL.md, clause QRP-3). It detects every change within 16
 * consecutive bits, and so any changed byte (clause QRP-5).
 */
export function crc16(ascii: string): string {
  let crc = 0xffff;
  for (let index = 0; index < ascii.length; index += 1) {
    crc ^= ascii.charCodeAt(index) << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ ((crc & 0x8000) === 0 ? 0 : 0x1021)) & 0xffff;
  }
  return crc.toString(16).toUpperCase().padStart(4, '0');
}
