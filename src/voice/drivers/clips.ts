import { z } from 'zod';
import type { SpeakerDriver } from '../contract.ts';
import { openPlayer, playerOptions } from '../players/player.ts';
import { clipsOptions, clipsSpeech } from '../speech/clips.ts';
import { espeakOptions, espeakSpeech } from '../speech/espeak.ts';

/** `fallback` speaks the whole sentence when a clip is missing. */
const options = clipsOptions.extend({ fallback: z.enum(['espeak', 'none']).default('none'), player: playerOptions });

/** A person's voice, recorded word by word. */
export const clips: SpeakerDriver<z.infer<typeof options>> = {
  name: 'clips',
  summary: 'recorded words from a folder, through aplay or paplay',
  options,
  example: options.parse({ folder: '/usr/share/paybox/clips', fallback: 'espeak' }),
  open: ({ folder, fallback, player }, { clock }) => ({
    speeches: [
      clipsSpeech({ folder }),
      ...(fallback === 'espeak' ? [espeakSpeech(espeakOptions.parse({}), clock)] : []),
    ],
    output: openPlayer(player, clock),
  }),
};
