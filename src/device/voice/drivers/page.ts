import { z } from 'zod';
import type { Clock } from '../../../lib/clock.ts';
import type { SpeakerDriver, Speech } from '../contract.ts';
import { durationMs, encodeWav } from '../wav.ts';
import { clipsOptions, clipsSpeech } from './clips.ts';
import { espeakOptions, espeakSpeech } from './espeak.ts';

/** The speech of the page. With `none` the sound is only the chime, and the page may speak the text. */
const options = z.strictObject({
  speech: z
    .discriminatedUnion('kind', [
      espeakOptions.extend({ kind: z.literal('espeak') }),
      clipsOptions.extend({ kind: z.literal('clips') }),
      z.strictObject({ kind: z.literal('none') }),
    ])
    .prefault({ kind: 'espeak' as const }),
});

/** Plays nothing itself. The web page of the box gets and plays each announcement. */
export const page: SpeakerDriver<z.infer<typeof options>> = {
  name: 'page',
  summary: 'the web page of the box speaks',
  options,
  example: options.parse({}),
  open: ({ speech }, { clock, onPage }) => ({
    speeches: speechesOf(speech, clock),
    output: {
      play: async (sound, text, signal) => {
        onPage({ text, wav: encodeWav(sound) });
        await clock.sleep(durationMs(sound), signal);
      },
      check: async () => undefined,
    },
  }),
};

function speechesOf(speech: z.infer<typeof options>['speech'], clock: Clock): Speech[] {
  if (speech.kind === 'none') return [];
  return [speech.kind === 'espeak' ? espeakSpeech(speech, clock) : clipsSpeech(speech)];
}
