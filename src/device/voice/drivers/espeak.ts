import { z } from 'zod';
import type { Clock } from '../../../lib/clock.ts';
import type { SpeakerDriver, Speech } from '../contract.ts';
import { openPlayer, playerOptions } from '../player.ts';
import { runProgram } from '../program.ts';
import { decodeWav } from '../wav.ts';

/** The options of espeak-ng. `voice` is `vi` (north), `vi-vn-x-central` or `vi-vn-x-south`. */
export const espeakOptions = z.strictObject({
  voice: z
    .string()
    .regex(/^[A-Za-z][\w+-]{0,39}$/, 'a voice name of `espeak-ng --voices=vi`')
    .default('vi'),
  wordsPerMinute: z.int().min(80).max(450).default(160),
  pitchPercent: z.int().min(0).max(99).default(50),
  command: z.string().min(1).default('espeak-ng'),
});

export type EspeakOptions = z.infer<typeof espeakOptions>;

/** A sentence needs about 20 ms on a desktop. The slowest board is less than a hundred times slower. */
const RENDER_TIMEOUT_MS = 5_000;
const ADVICE = 'try it by hand: `espeak-ng -v vi một`';

/** Speaks by espeak-ng, with UTF-8 text on standard input and a WAV file on standard output. */
export function espeakSpeech({ voice, wordsPerMinute, pitchPercent, command }: EspeakOptions, clock: Clock): Speech {
  const args = ['-v', voice, '-s', `${wordsPerMinute}`, '-p', `${pitchPercent}`, '-b', '1', '--stdin', '--stdout'];
  return {
    render: async ({ text }, signal) => {
      const program = { command, args, debianPackage: 'espeak-ng', advice: ADVICE, input: Buffer.from(text) };
      const wav = await runProgram(program, clock, RENDER_TIMEOUT_MS, signal);
      return { words: decodeWav(wav, `what ${command} wrote`), chime: undefined };
    },
  };
}

const options = espeakOptions.extend({ player: playerOptions });

/** Speaks without recordings. */
export const espeak: SpeakerDriver<z.infer<typeof options>> = {
  name: 'espeak',
  summary: 'espeak-ng speaks, through aplay or paplay',
  options,
  example: options.parse({}),
  open: ({ player, ...speech }, { clock }) => ({
    speeches: [espeakSpeech(speech, clock)],
    output: openPlayer(player, clock),
  }),
};
