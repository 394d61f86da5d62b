import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { SPEECH_FORMAT } from '../chime.ts';
import type { Output } from '../contract.ts';
import { runProgram } from '../program.ts';
import { durationMs, type Pcm, silence } from '../wav.ts';
import { aplay, aplayOptions } from './aplay.ts';
import { paplay, paplayOptions } from './paplay.ts';

export const playerOptions = z
  .discriminatedUnion('kind', [aplayOptions, paplayOptions])
  .prefault({ kind: 'aplay' as const });

export type PlayerOptions = z.infer<typeof playerOptions>;

/** How much longer than its sound a player may take, to open a slow device. */
const PLAY_GRACE_MS = 5_000;
/** Long enough for a player to open its device, too short to matter. */
const CHECK_MS = 50;

/** Sound through a player program, one run a sound. */
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
