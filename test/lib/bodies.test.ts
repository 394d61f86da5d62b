import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decompressed, formIn, jsonIn, textIn } from '../../src/lib/bodies.ts';
import { validBytesIn } from '../../src/lib/text.ts';

const TEXT = '{"text":"Nguyễn Văn Á"}';
const BYTES = Buffer.from(TEXT);

describe('the encoding of a body', () => {
  it.each([
    ['gzip', gzipSync(BYTES)],
    ['x-gzip', gzipSync(BYTES)],
    ['GZIP ', gzipSync(BYTES)],
    ['deflate', deflateSync(BYTES)],
    ['deflate', deflateRawSync(BYTES)],
    ['br', brotliCompressSync(BYTES)],
    ['identity', BYTES],
    [undefined, BYTES],
  ])('undoes %s', async (encoding, body) => {
    const headers = encoding === undefined ? {} : { 'content-encoding': encoding };
    expect((await decompressed(body, headers, 1_000)).toString()).toBe(TEXT);
  });

  it('decompresses no more than the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(1_000_000));
    await expect(decompressed(bomb, { 'content-encoding': 'gzip' }, 999_999)).rejects.toMatchObject({
      statusCode: 413,
      message: 'the body is longer than 999999 bytes once its gzip is undone',
    });
    expect(await decompressed(bomb, { 'content-encoding': 'gzip' }, 1_000_000)).toHaveLength(1_000_000);
  });

  it.each([
    ['zstd', BYTES, 415, /^Content-Encoding: zstd is not known; expected gzip, deflate, br or none$/],
    ['gzip, br', BYTES, 415, /^Content-Encoding: gzip, br is not known/],
    ['gzip', BYTES, 400, /^Content-Encoding: the body is no gzip: incorrect header check$/],
    ['gzip', gzipSync(BYTES).subarray(0, 20), 400, /^Content-Encoding: the body is no gzip: unexpected end of file$/],
    ['br', BYTES, 400, /^Content-Encoding: the body is no br: /],
    ['deflate', Buffer.from([0xff, 0xff]), 400, /^Content-Encoding: the body is no deflate: /],
  ])('names what is wrong with %s', async (encoding, body, statusCode, message) => {
    await expect(decompressed(body, { 'content-encoding': encoding }, 1_000)).rejects.toMatchObject({
      statusCode,
      message: expect.stringMatching(message),
    });
  });
});

describe('the text of a body', () => {
  const utf16 = (text: string) => Buffer.from(text, 'utf16le');
  it.each([
    ['UTF-8', undefined, BYTES],
    ['UTF-8 with a byte order mark', undefined, Buffer.from(`\ufeff${TEXT}`)],
    ['UTF-16 with a byte order mark', 'application/json; charset=utf-8', utf16(`\ufeff${TEXT}`)],
    ['UTF-16, most significant byte first', undefined, utf16(`\ufeff${TEXT}`).swap16()],
    ['UTF-16 by its charset', 'application/json;charset="UTF-16LE"', utf16(TEXT)],
  ])('reads %s', (_what, type, body) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    expect(textIn(body, headers)).toBe(TEXT);
    expect(jsonIn(body, headers)).toEqual(JSON.parse(TEXT));
  });

  it('reads the charset of Vietnamese Windows', () => {
    expect(textIn(Buffer.from([0xd0, 0xf5]), { 'content-type': 'text/plain; charset=windows-1258' })).toBe(
      'Đơ'.normalize(),
    );
  });

  it('names the charset or the byte that is wrong, never the text', () => {
    const words = (body: Buffer, type?: string) => {
      try {
        return jsonIn(body, type === undefined ? {} : { 'content-type': type });
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(words(Buffer.from('{"a":"\xe1"}', 'latin1'))).toBe('the body is not UTF-8 at byte 6');
    expect(words(Buffer.from('{}'), 'application/json; charset=klingon')).toBe(
      'Content-Type: charset klingon is not known; expected utf-8',
    );
    expect(words(Buffer.from('<html>secret</html>'), 'text/html; charset=utf-8')).toBe(
      'the body is not JSON but text/html',
    );
    expect(words(Buffer.from('{"a":"secret",}'))).toBe('the body is not JSON (at position 14)');
    expect(words(Buffer.from(' '))).toBe('the body is empty, expected JSON');
  });

  it('counts the bytes that are UTF-8', () => {
    for (const good of ['', 'a', 'á', 'aá€😀', 'x'.repeat(1_000)]) {
      const bytes = Buffer.from(good);
      for (const bad of [[0xff], [0xc3], [0xe1, 0x20], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]]) {
        expect([good, bad, validBytesIn(Buffer.concat([bytes, Buffer.from(bad), Buffer.from('á'.repeat(9))]))]).toEqual(
          [good, bad, bytes.length],
        );
      }
      expect(validBytesIn(bytes)).toBe(bytes.length);
    }
  });
});

it('reads the fields of a form, and leaves files out', async () => {
  const form = new FormData();
  for (const [name, value] of [
    ['a', 'một'],
    ['b', ''],
    ['a', 'hai & 3'],
  ] as const)
    form.append(name, value);
  form.append('file', new Blob(['x']), 'x.txt');
  const { headers, body } = await encoded(form);
  expect(await formIn(body, headers)).toEqual({ a: 'hai & 3', b: '' });
  const text = new TextEncoder().encode('a=m%E1%BB%99t+2&b=&a=hai%20%26%203');
  expect(await formIn(text, { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' })).toEqual({
    a: 'hai & 3',
    b: '',
  });
  await expect(formIn(text, headers)).rejects.toThrow('the body is no multipart/form-data');
  await expect(formIn(text, { 'content-type': 'multipart/form-data' })).rejects.toThrow('without a boundary');
});

async function encoded(form: FormData) {
  const request = new Request('http://localhost', { method: 'POST', body: form });
  const type = request.headers.get('content-type') ?? '';
  return { headers: { 'content-type': type }, body: new Uint8Array(await request.arrayBuffer()) };
}
