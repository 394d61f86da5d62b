import type { Cut } from '../io/answers.ts';

/** Frames of DWIN DGUS II: `5A A5`, the length of the rest, a command, its data, and a CRC if that is enabled. */
const HEAD = [0x5a, 0xa5];
const WRITE = 0x82;
const READ = 0x83;
const PAGE_REGISTER = 0x0084;
/** The word with the current page (PIC_Now). */
export const PAGE_SHOWN = 0x0014;
/** The most data bytes of a write. The length byte also counts command, address and CRC. */
const DATA_BYTES_MAX = 249;
/** The largest value of the length byte. */
export const FRAME_BYTES_MAX = 255;
const CRC_BYTES = 2;
export const BYTES_A_WORD = 2;
/**
 * Data bytes per frame, so that the next frame begins at a whole word. The limit is 249 for a write, 250 for a read.
 */
const CHUNK_BYTES_MAX = 248;
const LENGTH_AT = 2;
const COMMAND_AT = 3;

export type Answer = { kind: 'done' } | { kind: 'read'; vp: number; bytes: number[] };

/** Writes whole words from address `vp`, at most 249 bytes. Throws a RangeError for more, or for half a word. */
export function writeFrame(vp: number, data: Uint8Array): Uint8Array {
  if (data.length > DATA_BYTES_MAX || data.length % 2 === 1) throw new RangeError(`a write of ${data.length} bytes`);
  return frameOf(WRITE, [vp >> 8, vp & 0xff, ...data]);
}

/** Asks for `words` words from address `vp`. A panel answers with at most 125. */
export function readFrame(vp: number, words: number): Uint8Array {
  return frameOf(READ, [vp >> 8, vp & 0xff, words]);
}

/** Switches to page `page`. */
export function switchPage(page: number): Uint8Array {
  return writeFrame(PAGE_REGISTER, Uint8Array.of(0x5a, 0x01, page >> 8, page & 0xff));
}

/** Splits bytes into frames, for writing or reading the memory from `vp`. */
export function chunksOf(vp: number, bytes: Uint8Array): { at: number; chunk: Uint8Array }[] {
  return Array.from({ length: Math.ceil(bytes.length / CHUNK_BYTES_MAX) }, (_, index) => {
    const start = index * CHUNK_BYTES_MAX;
    return { at: vp + start / BYTES_A_WORD, chunk: bytes.slice(start, start + CHUNK_BYTES_MAX) };
  });
}

function frameOf(command: number, data: readonly number[]): Uint8Array {
  return Uint8Array.from([...HEAD, data.length + 1, command, ...data]);
}

/** Returns the frame with a CRC at its end; the length includes it. */
export function crcOf(frame: Uint8Array): Uint8Array {
  const body = frame.slice(COMMAND_AT);
  const crc = modbusCrc(body);
  return Uint8Array.from([...HEAD, body.length + CRC_BYTES, ...body, crc & 0xff, crc >> 8]);
}

/** Parses the answer of a panel; undefined if it is not an answer or its CRC is wrong. */
export function parseAnswer(frame: Uint8Array, withCrc: boolean): Answer | undefined {
  const body = frame.slice(COMMAND_AT, withCrc ? -CRC_BYTES : undefined);
  if (withCrc && !crcOf(Uint8Array.from([...HEAD, 0, ...body])).every((byte, at) => byte === frame[at]))
    return undefined;
  const [command, high = 0, low = 0, count = 0, ...data] = body;
  if (command === WRITE && body.length === 3 && high === 0x4f && low === 0x4b) return { kind: 'done' };
  if (command !== READ || data.length !== 2 * count) return undefined;
  return { kind: 'read', vp: (high << 8) | low, bytes: data };
}

/** Cuts frames from a stream of bytes. Bytes before a head are dropped. */
export const cutDgus: Cut = (bytes) => {
  const start = bytes.findIndex((byte, at) => byte === HEAD[0] && bytes[at + 1] === HEAD[1]);
  const length = bytes[start + LENGTH_AT];
  if (start < 0 || length === undefined) return undefined;
  const end = start + COMMAND_AT + length;
  return end > bytes.length ? undefined : { answer: bytes.slice(start, end), length: end };
};

/** Computes the CRC-16 of Modbus: polynomial A001 reflected, initial value FFFF. */
export function modbusCrc(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  }
  return crc;
}
