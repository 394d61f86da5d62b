import { z } from 'zod';
import type { Program } from '../program.ts';
import { encodeWav, type Pcm } from '../wav.ts';

/** `device` is an ALSA name, as `aplay -L` lists them. */
export const aplayOptions = z.strictObject({
  kind: z.literal('aplay'),
  device: z.string().min(1).max(200).default('default'),
  command: z.string().min(1).default('aplay'),
});

/** ALSA's player; it knows the format from the WAV header. */
export function aplay({ command, device }: z.infer<typeof aplayOptions>, sound: Pcm): Program {
  const args = ['--quiet', `--device=${device}`, '--file-type=wav', '-'];
  const advice = 'see `aplay -L` for devices, and that this user is in the group audio';
  return { command, args, debianPackage: 'alsa-utils', advice, input: encodeWav(sound) };
}
