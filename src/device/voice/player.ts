import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { SPEECH_FORMAT } from './chime.ts';
import type { Output } from './contract.ts';
import { type Program, runProgram } from './program.ts';
import { durationMs, encodeSamples, encodeWav, type Pcm, silence } from './wav.ts';

/** The options of ALSA's player. `device` is an ALSA name, as `aplay -L` lists them. */
const aplayOptions = z.strictObject({
  kind: z.literal('aplay'),
  device: z.string().min(1).max(200).default('default'),
  command: z.string().min(1).default('aplay'),
});

/** Runs ALSA's player, which knows the format from the WAV header. */
function aplay({ command, device }: z.infer<typeof aplayOptions>, sound: Pcm): Program {
  const args = ['--quiet', `--device=${device}`, '--file-type=wav', '-'];
  const advice = 'see `aplay -L` for devices, and that this user is in the group audio';
  return { command, args, debianPackage: 'alsa-utils', advice, input: encodeWav(sound) };
}

/**
 * The options of PulseAudio's player. `sink` is a name in `pactl list short sinks`. Without it the player uses the
 * default sink.
 */
const paplayOptions = z.strictObject({
  kind: z.literal('paplay'),
  sink: z.string().min(1).max(200).optional(),
  command: z.string().min(1).default('paplay'),
});

/** Runs the player of PulseAudio and PipeWire. From standard input it accepts raw samples only. */
function paplay({ command, sink }: z.infer<typeof paplayOptions>, sound: Pcm): Program {
  const { sampleRateHz, channels, samples } = sound;
  // Without a latency the player runs two seconds longer than the sound.
  const args = ['--raw', '--latency-msec=100', '--format=s16le', `--rate=${sampleRateHz}`, `--channels=${channels}`];
  if (sink !== undefined) args.push(`--device=${sink}`);
  const advice = 'see that PulseAudio or PipeWire runs for this user: `pactl info`';
  return { command, args, debianPackage: 'pulseaudio-utils', advice, input: encodeSamples(samples) };
}

export const playerOptions = z
  .discriminatedUnion('kind', [aplayOptions, paplayOptions])
  .prefault({ kind: 'aplay' as const });

export type PlayerOptions = z.infer<typeof playerOptions>;

/** A player may take this much longer than the sound, to open a slow device. */
const PLAY_GRACE_MS = 5_000;
/** The check lasts long enough for a player to open its device, and is too short to disturb. */
const CHECK_MS = 50;

/** Plays sound with a player program, one run per sound. */
export function openPlayer(options: PlayerOptions, clock: Clock): Output {
  const play = async (sound: Pcm, signal: AbortSignal) => {
    const program = options.kind === 'aplay' ? aplay(options, sound) : paplay(options, sound);
    await runProgram(program, clock, durationMs(sound) + PLAY_GRACE_MS, signal);
  };
  return {
    play: (sound, _text, signal) => play(sound, signal),
    check: (signal) => play(silence(CHECK_MS, SPEECH_FORMAT), signal),
  };
}
