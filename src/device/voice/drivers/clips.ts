import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { reasonOf } from '../../../lib/errors.ts';
import { readFileBytes } from '../../../lib/files.ts';
import type { SpeakerDriver, Speech } from '../contract.ts';
import { voiceFault } from '../fault.ts';
import { openPlayer, playerOptions } from '../player.ts';
import { concat, decodeWav, describeFormat, type Pcm } from '../wav.ts';
import { espeakOptions, espeakSpeech } from './espeak.ts';

export const clipsOptions = z.strictObject({ folder: z.string().min(1) });

export type ClipsOptions = z.infer<typeof clipsOptions>;

/** This is about twenty seconds of CD sound. A longer file is not a word. */
const CLIP_BYTES_MAX = 4 * 1024 * 1024;
const EXTRAS = ['prefix', 'suffix', 'chime'];
/** This clip comes before a repetition. Without it the box does not announce repetitions. */
const REPEAT = 'repeat';

/**
 * Makes speech of recorded clips: one WAV file per word, named after it (`năm.wav`, `mươi.wav`…), all in one format.
 * `prefix.wav` ("Đã nhận"), `suffix.wav` ("đồng") and `chime.wav` are optional. A repetition needs `repeat.wav` ("Nhắc
 * lại, lúc"), `giờ.wav` and `phút.wav`.
 */
export function clipsSpeech({ folder }: ClipsOptions): Speech {
  return {
    render: async ({ number, time }) => {
      const files = await list(folder);
      const before = time === undefined ? [] : [REPEAT, ...time.split(' ')];
      const amount = number.split(' ');
      const needed = [...before, ...amount];
      const missing = [...new Set(needed.filter((word) => !files.has(word)))].map((word) => `${word}.wav`);
      if (missing.length > 0) {
        throw voiceFault(`no clip ${missing.join(', ')} in ${folder}`, 'record it, or set a fallback');
      }
      const found = await readClips(files, new Set([...needed, ...EXTRAS]));
      const words = [...before, 'prefix', ...amount, 'suffix'].flatMap((name) => found.get(name) ?? []);
      return { words: concat(words), chime: found.get('chime') };
    },
  };
}

/** Reads those of these clips that exist. Throws a PayboxError that names a clip in another format. */
async function readClips(files: ReadonlyMap<string, string>, names: Iterable<string>): Promise<Map<string, Pcm>> {
  const found = new Map<string, Pcm>();
  for (const name of names) {
    const file = files.get(name);
    if (file === undefined) continue;
    const clip = await readClip(file);
    const [first] = found.values();
    if (first !== undefined && describeFormat(first) !== describeFormat(clip)) {
      throw voiceFault(
        `${file} is ${describeFormat(clip)}, other clips are ${describeFormat(first)}`,
        'record all clips in one format',
      );
    }
    found.set(name, clip);
  }
  return found;
}

/**
 * Returns the WAV files of a folder by name, in lower case and composed letters, because file systems and recorders
 * differ.
 */
async function list(folder: string): Promise<Map<string, string>> {
  try {
    const names = (await readdir(folder)).filter((name) => name.toLowerCase().endsWith('.wav'));
    return new Map(names.map((name) => [name.slice(0, -4).normalize('NFC').toLowerCase(), join(folder, name)]));
  } catch (error) {
    throw voiceFault(`the clips in ${folder} cannot be read: ${reasonOf(error)}`, 'correct the folder', error);
  }
}

async function readClip(file: string): Promise<Pcm> {
  try {
    const { size } = await stat(file);
    if (size <= CLIP_BYTES_MAX) return decodeWav(await readFileBytes(file), file);
  } catch (error) {
    throw voiceFault(reasonOf(error), 'record the clip again as 16-bit PCM WAV', error);
  }
  throw voiceFault(`${file} is larger than ${CLIP_BYTES_MAX} bytes`, 'cut the clip to its word');
}

/** The options of recorded clips. `fallback` says the whole sentence when a clip is missing. */
const options = clipsOptions.extend({ fallback: z.enum(['espeak', 'none']).default('none'), player: playerOptions });

/** Plays a person's voice, recorded word by word. */
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
