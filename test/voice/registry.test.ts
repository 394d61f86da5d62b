import { describe, expect, it } from 'vitest';
import { SPEAKER_DRIVERS, voiceOptions } from '../../src/device/voice/registry.ts';
import { decodeWav } from '../../src/device/voice/wav.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { clipsIn, collectingIo, startVoice, writeClips } from './support.ts';

const espeak = without(PROGRAMS.espeak);
const aplay = without(PROGRAMS.aplay);

describe.each([...SPEAKER_DRIVERS])('the voice driver %s', (name, driver) => {
  it('has a valid example, and says what it is', () => {
    expect(driver.name).toBe(name);
    expect(driver.summary).not.toBe('');
    expect(driver.options.parse(driver.example)).toEqual(driver.example);
    expect(voiceOptions.parse({ driver: name, options: driver.example }).options).toEqual(driver.example);
  });

  it('refuses an option that it does not know, by its path', () => {
    const options = { ...(driver.example as object), nosuch: 1 };
    expect(() => driver.configure(options)).toThrow(/nosuch/);
    expect(voiceOptions.safeParse({ driver: name, options }).error?.issues).toMatchObject([
      { path: ['options'], message: expect.stringContaining('nosuch') },
    ]);
  });

  it('does nothing and holds nothing when it is opened', () => {
    const io = collectingIo();
    driver.configure(driver.example).open(io);
    expect([io.lines, io.pages]).toEqual([[], []]);
  });
});

describe('the configuration of a voice', () => {
  it('needs a driver alone', () => {
    expect(voiceOptions.parse({ driver: 'espeak' })).toEqual({
      driver: 'espeak',
      options: {},
      volumePercent: 80,
      chime: true,
      zero: 'linh',
    });
  });

  it.each([
    [{}, ['driver']],
    [{ driver: 'nosuch' }, ['driver']],
    [{ driver: 'espeak', volumePercent: 101 }, ['volumePercent']],
    [{ driver: 'espeak', volumePercent: -1 }, ['volumePercent']],
    [{ driver: 'espeak', zero: 'le' }, ['zero']],
    [{ driver: 'espeak', options: { player: { kind: 'mplayer' } } }, ['options', 'player', 'kind']],
    [{ driver: 'espeak', options: { wordsPerMinute: 1 } }, ['options', 'wordsPerMinute']],
    [{ driver: 'clips' }, ['options', 'folder']],
    [{ driver: 'espeak', quietHours: { from: '22:00', to: '6' } }, ['quietHours', 'to']],
  ])('refuses %j at its place', (config, path) => {
    expect(voiceOptions.safeParse(config).error?.issues.map((issue) => issue.path)).toEqual([path]);
  });
});

describe('the page', () => {
  it('is offered each announcement as sound and text, one after another', async () => {
    const folder = await writeClips();
    const io = collectingIo();
    const options = { speech: { kind: 'clips', folder } };
    const voice = startVoice({ driver: 'page', options, chime: false, volumePercent: 100 }, io);
    voice.announce({ transactionId: 'a', amount: 50_000 });
    voice.announce({ transactionId: 'b', amount: 7 });
    await eventually('the first', () => io.pages.length === 1);
    await eventually('the second', () => io.pages.length === 2);
    expect(io.pages.map(({ text }) => text)).toEqual(['Đã nhận năm mươi nghìn đồng', 'Đã nhận bảy đồng']);
    expect(io.pages.map(({ wav }) => clipsIn(wav).join(' '))).toEqual([
      'prefix năm mươi nghìn suffix',
      'prefix bảy suffix',
    ]);
    await eventually('both are through', () => io.lines.filter(({ event }) => event === 'payment-spoken').length === 2);
  });

  it('has its turn for as long as the sound lasts', async () => {
    const io = collectingIo();
    const voice = startVoice({ driver: 'page', options: { speech: { kind: 'none' } } }, io);
    voice.announce({ transactionId: 'a', amount: 1 });
    voice.announce({ transactionId: 'b', amount: 2 });
    await eventually('the first', () => io.pages.length === 1);
    expect(voice.status()).toMatchObject({ driver: 'page', ok: true, reason: null, queued: 1 });
    expect(io.lines).toEqual([{ time: expect.any(String), level: 'info', event: 'voice-recovered', voice: 'page' }]);
    await eventually('the second', () => io.pages.length === 2);
    expect(io.lines.map(({ event }) => event)).toEqual(['voice-recovered', 'payment-spoken']);
  });
});

describe.skipIf(espeak.missing || aplay.missing)(`espeak-ng and aplay${espeak.note}${aplay.note}`, () => {
  it('announce a payment from its amount to a sound device', async () => {
    const io = collectingIo();
    const voice = startVoice({ driver: 'espeak', options: { player: { kind: 'aplay', device: 'null' } } }, io);
    voice.announce({ transactionId: 'a', amount: 50_000 });
    await eventually('it is told', () => io.lines.some(({ event }) => event === 'payment-spoken'));
    expect(voice.status()).toMatchObject({ driver: 'espeak', ok: true, reason: null, queued: 0 });
  });

  it('make a chime and a sentence that neither clip nor fall silent, as loud as the volume says', async () => {
    const peaks: number[] = [];
    for (const volumePercent of [100, 25]) {
      const io = collectingIo();
      const voice = startVoice({ driver: 'page', volumePercent }, io);
      voice.announce({ transactionId: 'a', amount: 1_180_000 });
      const [announcement] = await eventually('the sound', () => io.pages.length === 1 && io.pages);
      const { samples, sampleRateHz } = decodeWav(announcement?.wav ?? Buffer.alloc(0), 'it');
      expect(samples.length / sampleRateHz).toBeGreaterThan(0.75 + 1.5);
      const words = samples.subarray(0.75 * sampleRateHz);
      peaks.push(words.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0));
    }
    const [full = 0, quarter = 0] = peaks;
    expect(full).toBeGreaterThan(3_000);
    expect(full).toBeLessThan(32_767);
    expect(quarter).toBe(Math.round(full / 4));
  });
});
