import type { Picture } from '../engine/pictures.ts';
import { codeOf, panelPicture } from './drawing.ts';
import { Emulator } from './emulator.ts';

const DATA_BYTES_MAX = 249;
const SIZE = { width: 800, height: 480 };
const CODE_SIDE_PIXELS = 400;
const EVER_SHOWN_MAX = 1_000;
const PAGE_REGISTER = 0x0084;
const PAGE_SHOWN = 0x0014;
const WORDS_READ_MAX = 125;
const CRC_BYTES = 2;
const USER_VP_MIN = 0x1000;

/** The controls of a panel's project: addresses and lengths (in words) of its texts and its QR. */
export interface DgusProject {
  texts: readonly { vp: number; words: number; unicode: boolean }[];
  qr: { vp: number; bytesMax: number } | null;
  pages: number;
  crc: boolean;
}

export const PROJECT: DgusProject = {
  texts: Array.from({ length: 8 }, (_, index) => ({ vp: 0x1000 + 0x80 * index, words: 0x80, unicode: true })),
  qr: { vp: 0x2000, bytesMax: 458 },
  pages: 4,
  crc: false,
};

/**
 * Emulates a DWIN DGUS II panel by its development guide. It is stricter than the device: whatever a real panel would ignore,
 * garble or overwrite is added to `violations`.
 */
export class DwinEmulator extends Emulator {
  /** While true, the panel executes commands but sends no answers. */
  silent = false;
  page = 0;
  /** The last payloads that the panel has shown, complete or not. */
  readonly everShown: string[] = [];
  readonly #send: (bytes: Uint8Array) => void;
  readonly #project: DgusProject;
  #memory = new Map<number, number>();
  #buffer = Buffer.alloc(0);

  constructor(send: (bytes: Uint8Array) => void, project: DgusProject = PROJECT) {
    super();
    this.#send = send;
    this.#project = project;
  }

  shownTexts(): string[] {
    return this.#project.texts.map(({ vp, words, unicode }) => {
      const bytes = this.#bytesAt(vp, words);
      return unicode ? new TextDecoder('utf-16be').decode(bytes) : bytes.toString('latin1');
    });
  }

  code(): Picture | undefined {
    const text = this.#qrText();
    return text === '' ? undefined : codeOf(text, CODE_SIDE_PIXELS);
  }

  picture(): Picture {
    return panelPicture(SIZE, this.shownTexts(), this.code());
  }

  /** Restarts on page 0 with empty memory. The panel sends nothing on restart. */
  restart(): void {
    this.#memory = new Map();
    this.#buffer = Buffer.alloc(0);
    this.page = 0;
  }

  /** Simulates a touch control that reports a key. */
  touch(vp: number, key: number): void {
    this.#answer(Buffer.from([0x83, vp >> 8, vp & 0xff, 1, key >> 8, key & 0xff]));
  }

  receive(bytes: Uint8Array): void {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    for (;;) {
      // A sender completes a half-sent frame with NULs, which the panel skips.
      const start = this.#buffer.findIndex((byte) => byte !== 0);
      this.#buffer = this.#buffer.subarray(start < 0 ? this.#buffer.length : start);
      if (this.#buffer.length < 3) return;
      if (this.#buffer[0] !== 0x5a || this.#buffer[1] !== 0xa5) {
        this.violation(`no frame head: ${this.#buffer.toString('hex')}`);
        this.#buffer = Buffer.alloc(0);
        return;
      }
      const end = 3 + (this.#buffer[2] ?? 0);
      if (this.#buffer.length < end) return;
      const frame = this.#buffer.subarray(3, end);
      this.#buffer = this.#buffer.subarray(end);
      if (this.#buffer.length > 0) this.violation(`${frame.toString('hex')} was not waited for`);
      this.#execute(frame);
    }
  }

  #execute(frame: Buffer): void {
    let body = frame;
    if (this.#project.crc) {
      body = frame.subarray(0, -CRC_BYTES);
      // With CRC on, a panel ignores frames with a wrong CRC.
      if (frame.length < CRC_BYTES || frame.readUInt16LE(frame.length - CRC_BYTES) !== crc16(body)) return;
    }
    const command = body[0];
    if (command === 0x82 && body.length > 3) this.#write(body.readUInt16BE(1), body.subarray(3));
    else if (command === 0x83 && body.length === 4) this.#read(body.readUInt16BE(1), body[3] ?? 0);
    else this.violation(`unknown command ${body.toString('hex')}`);
  }

  #write(vp: number, data: Buffer): void {
    if (data.length > DATA_BYTES_MAX) this.violation(`${data.length} data bytes in one frame`);
    if (data.length % 2 === 1) this.violation(`half a word for 0x${vp.toString(16)}`);
    if (vp === PAGE_REGISTER) this.#switch(data);
    else if (vp < USER_VP_MIN) this.violation(`a write to the system register 0x${vp.toString(16)}`);
    else this.#store(vp, data);
    this.#answer(Buffer.from([0x82, 0x4f, 0x4b]));
  }

  #switch(data: Buffer): void {
    const page = data.length === 4 && data.readUInt16BE(0) === 0x5a01 ? data.readUInt16BE(2) : -1;
    if (page < 0 || page >= this.#project.pages) this.violation(`no page: ${data.toString('hex')}`);
    else this.page = page;
  }

  #store(vp: number, data: Buffer): void {
    const last = vp + Math.ceil(data.length / 2) - 1;
    for (const { vp: from, words } of this.#controls()) {
      const starts = vp >= from && vp < from + words;
      if (starts && last >= from + words) this.violation(`0x${vp.toString(16)}: more than its control has room for`);
      if (vp < from && last >= from) this.violation(`0x${vp.toString(16)}: runs into 0x${from.toString(16)}`);
    }
    for (let word = 0; word < Math.floor(data.length / 2); word += 1)
      this.#memory.set(vp + word, data.readUInt16BE(word * 2));
    const text = this.#qrText();
    if (text === '' || this.everShown.at(-1) === text) return;
    this.everShown.push(text);
    if (this.everShown.length > EVER_SHOWN_MAX) this.everShown.shift();
  }

  #controls(): { vp: number; words: number }[] {
    const { texts, qr } = this.#project;
    return [...texts, ...(qr === null ? [] : [{ vp: qr.vp, words: Math.ceil(qr.bytesMax / 2) + 1 }])];
  }

  #read(vp: number, words: number): void {
    if (words === 0 || words > WORDS_READ_MAX) {
      this.violation(`a read of ${words} words`);
      return;
    }
    if (vp < USER_VP_MIN && (vp !== PAGE_SHOWN || words !== 1))
      this.violation(`a read of the system register 0x${vp.toString(16)}`);
    const data = Array.from({ length: words }, (_, at) =>
      vp === PAGE_SHOWN && at === 0 ? this.page : (this.#memory.get(vp + at) ?? 0),
    );
    this.#answer(Buffer.from([0x83, vp >> 8, vp & 0xff, words, ...data.flatMap((word) => [word >> 8, word & 0xff])]));
  }

  #answer(body: Buffer): void {
    if (this.silent) return;
    const crc = Buffer.alloc(this.#project.crc ? 2 : 0);
    if (this.#project.crc) crc.writeUInt16LE(crc16(body));
    this.#send(Buffer.concat([Buffer.from([0x5a, 0xa5, body.length + crc.length]), body, crc]));
  }

  #qrText(): string {
    const { qr } = this.#project;
    return qr === null ? '' : this.#bytesAt(qr.vp, Math.ceil(qr.bytesMax / 2) + 1).toString('latin1');
  }

  /** Returns the bytes from an address up to the terminator: FF FF, 00 00, or a single FF before it. */
  #bytesAt(vp: number, words: number): Buffer {
    const bytes: number[] = [];
    for (let at = 0; at < words; at += 1) {
      const word = this.#memory.get(vp + at) ?? 0;
      if (word === 0xffff || word === 0) break;
      bytes.push(word >> 8);
      if ((word & 0xff) === 0xff) break;
      bytes.push(word & 0xff);
    }
    return Buffer.from(bytes);
  }
}

/**
 * Returns the CRC-16, polynomial 8005 reflected. It uses a table, so that it differs from the driver's implementation.
 */
function crc16(bytes: Uint8Array): number {
  const table = Array.from({ length: 256 }, (_, index) => {
    let value = index;
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value % 2 === 1 ? 0xa001 : 0);
    return value;
  });
  return bytes.reduce((crc, byte) => (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] ?? 0), 0xffff);
}
