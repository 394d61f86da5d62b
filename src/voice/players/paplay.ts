import { z } from 'zod';
import type { Program } from '../program.ts';
import { encodeSamples, type Pcm } from '../wav.ts';

/** `sink` is a name of `pactl list short sinks`; the default sink when absent. */
export const paplayOptions = z.strictObject({
  kind: z.literal('paplay'),
  sink: z.string().min(1).max(200).optional(),
  command: z.string().min(1).default('paplay'),
});

/** PulseAudio's and PipeWire's player; of its standard input it takes raw samples only. */
export function paplay({ command, sink }: z.infer<typeof paplayOptions>, sound: Pcm): Program {
  const { sampleRateHz, channels, samples } = sound;
  // Without a latency, a sound that has ended is held for two seconds more.
  const args = ['--raw', '--latency-msec=100', '--format=s16le', `--rate=${sampleRateHz}`, `--channels=${channels}`];
  if (sink !== undefined) args.push(`--device=${sink}`);
  const advice = 'see that PulseAudio or PipeWire runs for this user: `pactl info`';
  return { command, args, debianPackage: 'pulseaudio-utils', advice, input: encodeSamples(samples) };
}
