import { voiceFault } from './fault.ts';

/** Sound in 16-bit samples. The channels are interleaved. */
export interface Pcm {
  sampleRateHz: number;
  channels: number;
  samples: Int16Array;
}

export interface PcmFormat {
  sampleRateHz: number;
  channels: number;
}

const HEADER_BYTES = 44;
const BYTES_PER_SAMPLE = 2;
const FORMAT_PCM = 1;
/** WAVE_FORMAT_EXTENSIBLE: the first two bytes of the sub-format are the real format. */
const FORMAT_EXTENSIBLE = 0xfffe;
const SUB_FORMAT_AT = 24;
const SAMPLE_RATE_MIN_HZ = 8_000;
const SAMPLE_RATE_MAX_HZ = 96_000;

export function durationMs({ samples, channels, sampleRateHz }: Pcm): number {
  return (samples.length / channels / sampleRateHz) * 1000;
}

export function silence(ms: number, { sampleRateHz, channels }: PcmFormat): Pcm {
  return { sampleRateHz, channels, samples: new Int16Array(Math.round((ms * sampleRateHz) / 1000) * channels) };
}

/** Joins sounds of one format, one after the other. */
export function concat(sounds: readonly Pcm[]): Pcm {
  const [first] = sounds;
  if (first === undefined) throw new RangeError('no sounds to put together');
  const { sampleRateHz, channels } = first;
  const samples = new Int16Array(sounds.reduce((total, sound) => total + sound.samples.length, 0));
  let at = 0;
  for (const sound of sounds) {
    samples.set(sound.samples, at);
    at += sound.samples.length;
  }
  return { sampleRateHz, channels, samples };
}

/** Returns the sound with its amplitude at 0…100 percent. */
export function withVolume(sound: Pcm, percent: number): Pcm {
  return { ...sound, samples: sound.samples.map((sample) => Math.round((sample * percent) / 100)) };
}

export function describeFormat({ sampleRateHz, channels }: PcmFormat): string {
  return `${sampleRateHz} Hz with ${channels} ${channels === 1 ? 'channel' : 'channels'}`;
}

/** Returns a WAV file with a 44-byte header and little-endian samples. */
export function encodeWav({ sampleRateHz, channels, samples }: Pcm): Buffer {
  const dataBytes = samples.length * BYTES_PER_SAMPLE;
  const file = Buffer.alloc(HEADER_BYTES + dataBytes);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(HEADER_BYTES - 8 + dataBytes, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(FORMAT_PCM, 20);
  file.writeUInt16LE(channels, 22);
  file.writeUInt32LE(sampleRateHz, 24);
  file.writeUInt32LE(sampleRateHz * channels * BYTES_PER_SAMPLE, 28);
  file.writeUInt16LE(channels * BYTES_PER_SAMPLE, 32);
  file.writeUInt16LE(8 * BYTES_PER_SAMPLE, 34);
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(dataBytes, 40);
  file.set(encodeSamples(samples), HEADER_BYTES);
  return file;
}

/** Returns only the samples, little-endian. */
export function encodeSamples(samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(samples.length * BYTES_PER_SAMPLE);
  samples.forEach((sample, index) => {
    bytes.writeInt16LE(sample, index * BYTES_PER_SAMPLE);
  });
  return bytes;
}

/**
 * Decodes a WAV file of 16-bit PCM. A data length of 0, or beyond the end, means the rest of the file: programs that
 * write to a pipe do not know the length. Throws a PayboxError with `name` and the problem.
 */
export function decodeWav(bytes: Uint8Array, name: string): Pcm {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.length < 12 || file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE') {
    throw voiceFault(`${name} is not a WAV file`, 'record it as 16-bit PCM WAV');
  }
  let format: PcmFormat | undefined;
  for (let at = 12; at + 8 <= file.length; ) {
    const id = file.toString('latin1', at, at + 4);
    const declared = file.readUInt32LE(at + 4);
    const body = file.subarray(at + 8, at + 8 + declared);
    if (id === 'fmt ') format = formatOf(body, name);
    if (id === 'data') return { ...soundIn(declared === 0 ? file.subarray(at + 8) : body, format, name) };
    // Chunks are padded to even lengths.
    at += 8 + declared + (declared % 2);
  }
  throw voiceFault(`${name} holds no sound`, 'record it again');
}

function formatOf(chunk: Buffer, name: string): PcmFormat {
  const wrong = (what: string) => voiceFault(`${name} is ${what}`, 'record it as 16-bit PCM, mono or stereo');
  if (chunk.length < 16) throw wrong('cut off in its header');
  const tag = chunk.readUInt16LE(0);
  const extended = tag === FORMAT_EXTENSIBLE && chunk.length >= SUB_FORMAT_AT + 2;
  const kind = extended ? chunk.readUInt16LE(SUB_FORMAT_AT) : tag;
  const channels = chunk.readUInt16LE(2);
  const sampleRateHz = chunk.readUInt32LE(4);
  const bits = chunk.readUInt16LE(14);
  if (kind !== FORMAT_PCM || bits !== 8 * BYTES_PER_SAMPLE) throw wrong(`of format ${kind} with ${bits} bits`);
  if (channels < 1 || channels > 2 || sampleRateHz < SAMPLE_RATE_MIN_HZ || sampleRateHz > SAMPLE_RATE_MAX_HZ) {
    throw wrong(describeFormat({ sampleRateHz, channels }));
  }
  return { sampleRateHz, channels };
}

function soundIn(body: Buffer, format: PcmFormat | undefined, name: string): Pcm {
  const frameBytes = (format?.channels ?? 1) * BYTES_PER_SAMPLE;
  const frames = Math.floor(body.length / frameBytes);
  if (format === undefined || frames === 0) throw voiceFault(`${name} holds no sound`, 'record it again');
  const samples = new Int16Array(frames * format.channels);
  for (let index = 0; index < samples.length; index += 1) samples[index] = body.readInt16LE(index * BYTES_PER_SAMPLE);
  return { ...format, samples };
}
