import { describe, expect, it } from 'vitest';
import { concat, decodeWav, durationMs, encodeWav, type Pcm, silence, withVolume } from '../../src/device/voice/wav.ts';
import { fc } from '../support/properties.ts';

const mono = (...samples: number[]): Pcm => ({ sampleRateHz: 22_050, channels: 1, samples: Int16Array.from(samples) });

const HEADER = '52494646 2a000000 57415645 666d7420 10000000 0100 0100 22560000 44ac0000 0200 1000 64617461 06000000';
const FILE = Buffer.from(`${HEADER}0100 ffff 0080`.replaceAll(' ', ''), 'hex');

describe('a WAV file', () => {
  it('is written byte by byte as the format says', () => {
    expect(encodeWav(mono(1, -1, -32_768)).toString('hex')).toBe(FILE.toString('hex'));
  });

  it('is read back as it was written', () => {
    const sound = fc
      .tuple(
        fc.constantFrom(8_000, 22_050, 44_100, 48_000),
        fc.constantFrom(1, 2),
        fc.array(fc.integer({ min: -32_768, max: 32_767 }), { minLength: 1 }),
      )
      .map(([sampleRateHz, channels, values]) => ({
        sampleRateHz,
        channels,
        samples: Int16Array.from(channels === 1 ? values : values.flatMap((value) => [value, -1])),
      }));
    fc.assert(
      fc.property(sound, (pcm) => {
        expect(decodeWav(encodeWav(pcm), 'it')).toEqual(pcm);
      }),
    );
  });

  it.each([
    ['zero', 0],
    ['beyond the end', 0x7ffff000],
    ['the largest number', 0xffffffff],
  ])('is read to its end when its data length is %s', (_, length) => {
    const file = Buffer.from(FILE);
    file.writeUInt32LE(length, 40);
    expect(decodeWav(file, 'it')).toEqual(mono(1, -1, -32_768));
  });

  it('is read only as far as its data goes', () => {
    expect(decodeWav(Buffer.concat([FILE, Buffer.from('LIST\x04\0\0\0abcd', 'latin1')]), 'it')).toEqual(
      mono(1, -1, -32_768),
    );
  });

  it('may hold other chunks before its data, of odd length too', () => {
    const noted = Buffer.concat([
      FILE.subarray(0, 36),
      Buffer.from('note\x03\0\0\0abc\0', 'latin1'),
      FILE.subarray(36),
    ]);
    expect(decodeWav(noted, 'it')).toEqual(mono(1, -1, -32_768));
  });

  it('may say extensible where it is PCM', () => {
    const format = Buffer.alloc(40);
    FILE.copy(format, 0, 20, 36);
    format.writeUInt16LE(0xfffe, 0);
    format.writeUInt16LE(1, 24);
    const file = Buffer.concat([FILE.subarray(0, 16), Buffer.from([40, 0, 0, 0]), format, FILE.subarray(36)]);
    expect(decodeWav(file, 'it')).toEqual(mono(1, -1, -32_768));
    format.writeUInt16LE(3, 24);
    const float = Buffer.concat([FILE.subarray(0, 16), Buffer.from([40, 0, 0, 0]), format, FILE.subarray(36)]);
    expect(() => decodeWav(float, 'it')).toThrow('it is of format 3 with 16 bits');
  });

  it.each<[string, (file: Buffer) => Buffer, string]>([
    ['nothing', () => Buffer.alloc(0), 'it is not a WAV file'],
    ['an MP3', () => Buffer.from('ID3\x04 something else altogether', 'latin1'), 'it is not a WAV file'],
    ['a header alone', (file) => file.subarray(0, 36), 'it holds no sound'],
    ['no data', (file) => file.subarray(0, 44), 'it holds no sound'],
    ['half a sample', (file) => file.subarray(0, 45), 'it holds no sound'],
    ['data before its format', (file) => Buffer.concat([file.subarray(0, 12), file.subarray(36)]), 'it holds no sound'],
    ['8 bits', (file) => patched(file, 34, 8), 'it is of format 1 with 8 bits'],
    ['µ-law', (file) => patched(file, 20, 7), 'it is of format 7 with 16 bits'],
    ['six channels', (file) => patched(file, 22, 6), 'it is 22050 Hz with 6 channels'],
    ['a rate of 16 Hz', (file) => patched(file, 24, 16), 'it is 16 Hz with 1 channel'],
  ])('with %s is refused by name', (_, change, message) => {
    expect(() => decodeWav(change(Buffer.from(FILE)), 'it')).toThrow(message);
  });

  it('never throws anything but a named fault, whatever its bytes', () => {
    const cut = fc.tuple(fc.nat(FILE.length), fc.nat(FILE.length - 1), fc.nat(255)).map(([length, at, value]) => {
      const file = Buffer.from(FILE);
      file[at] = value;
      return file.subarray(0, length);
    });
    fc.assert(
      fc.property(cut, (file) => {
        try {
          expect(decodeWav(file, 'it').samples.length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toMatchObject({ code: 'VOICE_FAULT' });
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

function patched(file: Buffer, at: number, value: number): Buffer {
  file.writeUInt16LE(value, at);
  return file;
}

describe('sound', () => {
  it('is put together in order', () => {
    expect(concat([mono(1, 2), silence(1000 / 22_050, mono()), mono(3)])).toEqual(mono(1, 2, 0, 3));
    expect(() => concat([])).toThrow(RangeError);
  });

  it('is scaled by a volume', () => {
    expect(withVolume(mono(100, -100, 32_767, -32_768), 100)).toEqual(mono(100, -100, 32_767, -32_768));
    expect(withVolume(mono(100, -100, 32_767, -32_768), 50)).toEqual(mono(50, -50, 16_384, -16_384));
    expect(withVolume(mono(100, -100), 0).samples.every((sample) => sample === 0)).toBe(true);
  });

  it('knows how long it is', () => {
    expect(durationMs({ sampleRateHz: 8_000, channels: 2, samples: new Int16Array(8_000) })).toBe(500);
    expect(durationMs(silence(250, { sampleRateHz: 16_000, channels: 2 }))).toBe(250);
  });
});
