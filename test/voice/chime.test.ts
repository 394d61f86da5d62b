import { describe, expect, it } from 'vitest';
import { chime, SPEECH_FORMAT } from '../../src/device/voice/chime.ts';
import { durationMs } from '../../src/device/voice/wav.ts';

/** How strongly a frequency sounds in the samples (Goertzel). */
function strength(samples: Int16Array, frequencyHz: number, sampleRateHz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * frequencyHz) / sampleRateHz);
  let [before, last] = [0, 0];
  for (const sample of samples) [before, last] = [last, sample + coefficient * last - before];
  return Math.sqrt(before ** 2 + last ** 2 - coefficient * before * last) / samples.length;
}

describe('the chime', () => {
  const { samples, sampleRateHz } = chime(SPEECH_FORMAT);

  it('is 0.6 s at the rate of espeak-ng, the same each time', () => {
    expect(SPEECH_FORMAT).toEqual({ sampleRateHz: 22_050, channels: 1 });
    expect(durationMs(chime(SPEECH_FORMAT))).toBe(600);
    expect(chime(SPEECH_FORMAT)).toEqual(chime(SPEECH_FORMAT));
  });

  it('can be heard, does not clip, and does not click at either end', () => {
    const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    expect(peak).toBeGreaterThan(8_000);
    expect(peak).toBeLessThan(26_000);
    for (const sample of [...samples.slice(0, 10), ...samples.slice(-10)]) expect(Math.abs(sample)).toBeLessThan(200);
    const step = samples.reduce(
      (most, sample, index) => Math.max(most, Math.abs(sample - (samples[index - 1] ?? 0))),
      0,
    );
    expect(step).toBeLessThan(5_000);
  });

  it('is two tones, the second higher and later', () => {
    const begin = samples.subarray(0, 0.15 * sampleRateHz);
    const later = samples.subarray(0.3 * sampleRateHz, 0.5 * sampleRateHz);
    expect(strength(begin, 880, sampleRateHz)).toBeGreaterThan(20 * strength(begin, 1_500, sampleRateHz));
    expect(strength(later, 1_174.66, sampleRateHz)).toBeGreaterThan(3 * strength(later, 880, sampleRateHz));
  });

  it('is the same in each channel', () => {
    const stereo = chime({ sampleRateHz: 44_100, channels: 2 });
    expect(durationMs(stereo)).toBe(600);
    expect(stereo.samples.filter((_, index) => index % 2 === 0)).toEqual(
      stereo.samples.filter((_, index) => index % 2 === 1),
    );
  });
});
