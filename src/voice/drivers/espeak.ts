import type { z } from 'zod';
import type { SpeakerDriver } from '../contract.ts';
import { openPlayer, playerOptions } from '../players/player.ts';
import { espeakOptions, espeakSpeech } from '../speech/espeak.ts';

const options = espeakOptions.extend({ player: playerOptions });

/** A voice that needs no recordings. */
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
