import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { clipsSpeech } from '../../../src/device/voice/drivers/clips.ts';
import { encodeWav } from '../../../src/device/voice/wav.ts';
import { numberWords } from '../../../src/device/voice/words.ts';
import { CLIP_FORMAT, clipLevel, clipsIn, writeClip, writeClips } from '../support.ts';

const { signal } = new AbortController();
const phrase = (value: number) => ({ text: 'not read', number: numberWords(value) });

describe('speech of clips', () => {
  it('puts prefix, words and suffix together in order', async () => {
    const speech = clipsSpeech({ folder: await writeClips() });
    const { words, chime } = await speech.render(phrase(2_005_105), signal);
    const said = 'prefix hai triệu không trăm linh năm nghìn một trăm linh năm suffix';
    expect(clipsIn(encodeWav(words)).join(' ')).toBe(said);
    expect(words).toMatchObject(CLIP_FORMAT);
    expect(chime).toBeUndefined();
  });

  it('needs the words alone, and takes a chime of its own', async () => {
    const speech = clipsSpeech({ folder: await writeClips(['năm', 'mươi', 'mốt', 'chime']) });
    const { words, chime } = await speech.render(phrase(51), signal);
    expect(clipsIn(encodeWav(words))).toEqual(['năm', 'mươi', 'mốt']);
    expect(chime?.samples[0]).toBe(clipLevel('chime'));
  });

  it('finds clips whose names are decomposed or in capitals', async () => {
    const speech = clipsSpeech({ folder: await writeClips(['mười'.normalize('NFD'), 'LĂM']) });
    const { words } = await speech.render(phrase(15), signal);
    expect(clipsIn(encodeWav(words))).toEqual(['mười', 'lăm']);
  });

  it('names each missing clip, once', async () => {
    const folder = await writeClips(['trăm']);
    await expect(clipsSpeech({ folder }).render(phrase(555), signal)).rejects.toMatchObject({
      code: 'VOICE_FAULT',
      message: `no clip năm.wav, mươi.wav, lăm.wav in ${folder}`,
    });
  });

  it('names a clip of another format', async () => {
    const folder = await writeClips(['một', 'trăm']);
    await writeClip(folder, 'suffix', { sampleRateHz: 44_100, channels: 2 });
    await expect(clipsSpeech({ folder }).render(phrase(100), signal)).rejects.toThrow(
      `${join(folder, 'suffix.wav')} is 44100 Hz with 2 channels, other clips are 16000 Hz with 1 channel`,
    );
  });

  it('names a clip that is no sound or far too long, and a folder that is not there', async () => {
    const folder = await writeClips();
    const rejected = (value: number) => expect(clipsSpeech({ folder }).render(phrase(value), signal)).rejects;
    await writeFile(join(folder, 'một.wav'), 'hello');
    await rejected(1).toThrow(`${join(folder, 'một.wav')} is not a WAV file`);
    await writeFile(join(folder, 'hai.wav'), Buffer.alloc(4 * 1024 * 1024 + 1));
    await rejected(2).toThrow(`${join(folder, 'hai.wav')} is larger than 4194304 bytes`);
    await expect(clipsSpeech({ folder: '/nowhere' }).render(phrase(1), signal)).rejects.toThrow(
      'the clips in /nowhere cannot be read: ENOENT',
    );
  });
});
