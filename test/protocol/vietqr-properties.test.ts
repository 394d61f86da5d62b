import { expect, it } from 'vitest';
import { decodeVietQr, encodeVietQr } from '../../src/protocol/vietqr.ts';
import { anyChar, fc } from '../support/properties.ts';
import { field, payloadOf, sealed, vectors, vietQrs } from './payloads.ts';

/** Every payload of these tests is valid before it is damaged. */
const payloads = vietQrs.map(encodeVietQr);
const PUBLIC = vectors.valid.map((vector) => vector.payload);

it('QRP-6 what is encoded is decoded to the same fields', () => {
  fc.assert(
    fc.property(vietQrs, (fields) => {
      expect(decodeVietQr(encodeVietQr(fields))).toStrictEqual({ ok: true, value: fields });
    }),
    { numRuns: 3000 },
  );
});

it.each(PUBLIC)('QRP-5 every other byte at every position is refused: %s', (payload) => {
  const accepted: string[] = [];
  for (let position = 0; position < payload.length; position += 1) {
    for (let byte = 0; byte < 256; byte += 1) {
      if (byte === payload.charCodeAt(position)) continue;
      const changed = payload.slice(0, position) + String.fromCharCode(byte) + payload.slice(position + 1);
      if (decodeVietQr(changed).ok) accepted.push(changed);
    }
  }
  expect(accepted).toEqual([]);
});

it('QRP-5 a changed byte is refused at every position of any payload', () => {
  const shift = fc.integer({ min: 1, max: 255 });
  fc.assert(
    fc.property(payloads, shift, (payload, by) => {
      for (let position = 0; position < payload.length; position += 1) {
        const byte = String.fromCharCode((payload.charCodeAt(position) + by) % 256);
        expect(decodeVietQr(payload.slice(0, position) + byte + payload.slice(position + 1)).ok).toBe(false);
      }
    }),
    { numRuns: 200 },
  );
});

it('QRP-4 every truncation is refused, from either end', () => {
  fc.assert(
    fc.property(payloads, (payload) => {
      for (let length = 0; length < payload.length; length += 1) {
        expect(decodeVietQr(payload.slice(0, length)).ok).toBe(false);
      }
      for (let start = 1; start < payload.length; start += 1) expect(decodeVietQr(payload.slice(start)).ok).toBe(false);
    }),
    { numRuns: 200 },
  );
});

it('QRP-4 every extension is refused, at either end', () => {
  const more = fc.oneof(fc.string({ minLength: 1 }), payloads);
  fc.assert(
    fc.property(payloads, more, (payload, extra) => {
      expect(decodeVietQr(payload + extra).ok).toBe(false);
      expect(decodeVietQr(extra + payload).ok).toBe(false);
    }),
    { numRuns: 1000 },
  );
});

it('QRP-4 a doubled tag is refused although lengths and CRC are right', () => {
  fc.assert(
    fc.property(payloads, fc.nat(), fc.nat(), (payload, which, where) => {
      const fields = split(payload.slice(0, -8));
      const doubled = fields[which % fields.length] ?? '';
      const position = 1 + (where % fields.length);
      const decoded = decodeVietQr(sealed(...fields.slice(0, position), doubled, ...fields.slice(position)));
      expect(decoded).toMatchObject({ ok: false, tag: doubled.slice(0, 2), reason: expect.stringContaining('twice') });
    }),
    { numRuns: 1000 },
  );
});

it('QRP-4 a length that is off is refused although the CRC is right, at every level', () => {
  const payload = payloadOf();
  const unsealed = payload.slice(0, -8);
  const tags = ['38', '00', '01', '00', '01', '02', '52', '53', '54', '58', '59', '60', '62', '08'];
  const starts = [0, 6];
  for (const tag of tags) starts.push(payload.indexOf(tag, (starts.at(-1) ?? 0) + 4));
  const accepted: string[] = [];
  for (const start of starts) {
    for (let length = 0; length < 100; length += 1) {
      const digits = String(length).padStart(2, '0');
      const changed = unsealed.slice(0, start + 2) + digits + unsealed.slice(start + 4);
      if (changed !== unsealed && decodeVietQr(sealed(changed)).ok) accepted.push(changed);
    }
  }
  const nameThatSwallowsTheCity = unsealed.replace('5912', '5922');
  expect(accepted).toEqual([nameThatSwallowsTheCity]);
});

it('QRP-4 random texts are refused without an exception', () => {
  const texts = fc.oneof(
    fc.string({ unit: anyChar, maxLength: 600 }),
    fc.string({ unit: fc.constantFrom(...'0123456789ABCDEF'), maxLength: 300 }),
    fc
      .array(fc.tuple(fc.nat(99), fc.string({ maxLength: 99 })))
      .map((fields) => sealed(...fields.map(([tag, value]) => field(String(tag).padStart(2, '0'), value)))),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const decoded = decodeVietQr(text);
      expect(decoded).toMatchObject({ ok: false, tag: expect.stringMatching(/^\d\d(-\d\d){0,2}$/) });
    }),
    { numRuns: 5000 },
  );
});

/** The outermost fields of a payload without its CRC. */
function split(payload: string): string[] {
  const fields: string[] = [];
  for (let position = 0; position < payload.length; ) {
    const end = position + 4 + Number(payload.slice(position + 2, position + 4));
    fields.push(payload.slice(position, end));
    position = end;
  }
  return fields;
}
