import type { Pcm, PcmFormat } from './wav.ts';

/** The format of espeak-ng, so that chime and speech need no resampling. */
export const SPEECH_FORMAT: PcmFormat = { sampleRateHz: 22_050, channels: 1 };

/** The tones are a rising fourth. The second one begins while the first one fades. */
const TONES = [
  { frequencyHz: 880, startS: 0, lengthS: 0.35 },
  { frequencyHz: 1174.66, startS: 0.16, lengthS: 0.44 },
] as const;
const LENGTH_S = 0.6;
/** The amplitude of each tone. Together they stay below full scale. */
const AMPLITUDE = 0.35;
const ATTACK_S = 0.012;
/** The tone falls to 1/e in this time. */
const DECAY_S = 0.11;
const RELEASE_S = 0.06;
const FULL_SCALE = 32_767;

/** Returns the built-in chime: two soft tones, 0.6 s. The same format gives the same samples. */
export function chime({ sampleRateHz, channels }: PcmFormat): Pcm {
  const frames = Math.round(LENGTH_S * sampleRateHz);
  const samples = new Int16Array(frames * channels);
  for (let frame = 0; frame < frames; frame += 1) {
    const level = TONES.reduce((sum, tone) => sum + toneAt(tone, frame / sampleRateHz - tone.startS), 0);
    samples.fill(Math.round(level * FULL_SCALE), frame * channels, (frame + 1) * channels);
  }
  return { sampleRateHz, channels, samples };
}

function toneAt({ frequencyHz, lengthS }: (typeof TONES)[number], timeS: number): number {
  if (timeS < 0 || timeS >= lengthS) return 0;
  // Both ends are raised cosines, because a step in the envelope would click.
  const attack = timeS < ATTACK_S ? (1 - Math.cos((Math.PI * timeS) / ATTACK_S)) / 2 : 1;
  const leftS = lengthS - timeS;
  const release = leftS < RELEASE_S ? (1 - Math.cos((Math.PI * leftS) / RELEASE_S)) / 2 : 1;
  return AMPLITUDE * attack * release * Math.exp(-timeS / DECAY_S) * Math.sin(2 * Math.PI * frequencyHz * timeS);
}
