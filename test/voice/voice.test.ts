import { describe, expect, it } from 'vitest';
import { decodeWav } from '../../src/device/voice/wav.ts';
import { vocabulary } from '../../src/device/voice/words.ts';
import { eventually } from '../support/net.ts';
import {
  clipsConfig,
  clipsIn,
  collectingIo,
  movableClock,
  player,
  recordingPlayer,
  startVoice,
  writeClips,
} from './support.ts';

const heard = (wav: Uint8Array) => clipsIn(wav).slice(1, -1).join(' ');
/** In Vietnam it is 09:05 then. */
const NINE_FIVE = Date.UTC(2026, 0, 2, 2, 5);
const at = (hours: number, minutes: number) => new Date(2025, 5, 1, hours, minutes).getTime();

describe('a voice', () => {
  it('a voice says announcements in order, one after another and never two at once', async () => {
    const { command, played } = await recordingPlayer(0.1);
    const io = collectingIo();
    const voice = startVoice(await clipsConfig(command), io);
    for (let amount = 1; amount <= 5; amount += 1) voice.announce({ transactionId: `t${amount}`, amount });
    const sounds = await eventually('five sounds', async () => {
      const all = await played();
      return all.length === 5 && all;
    });
    expect(sounds.map(({ wav }) => heard(wav))).toEqual(['một', 'hai', 'ba', 'bốn', 'năm']);
    sounds.slice(1).forEach((sound, index) => {
      expect(sound.startMs).toBeGreaterThanOrEqual(sounds[index]?.endMs ?? Number.NaN);
    });
    await eventually('all told', () => io.lines.filter(({ event }) => event === 'payment-spoken').length === 5);
    expect(voice.status()).toEqual({
      driver: 'clips',
      ok: true,
      reason: null,
      queued: 0,
      said: 5,
      words: 'Đã nhận năm đồng',
    });
  });

  it('a voice says a transaction once, whatever it is told, until a person asks for it again', async () => {
    const { command, played } = await recordingPlayer();
    const io = collectingIo();
    const voice = startVoice(await clipsConfig(command), io);
    voice.announce({ transactionId: 'a', amount: 21 });
    voice.announce({ transactionId: 'a', amount: 21 });
    await eventually('the first', async () => (await played()).length === 1);
    voice.announce({ transactionId: 'a', amount: 21 });
    voice.announce({ transactionId: 'b', amount: 5 });
    await eventually('the second', () => io.lines.filter(({ event }) => event === 'payment-spoken').length === 2);
    for (let presses = 0; presses < 2; presses += 1)
      voice.repeat({ transactionId: 'b', amount: 5, paidAtMs: NINE_FIVE });
    await eventually('the repetition', () => io.lines.filter(({ event }) => event === 'payment-spoken').length === 3);
    voice.announce({ transactionId: 'c', amount: 1 });
    await eventually('the last', () => io.lines.filter(({ event }) => event === 'payment-spoken').length === 4);
    const again = 'repeat chín giờ năm phút prefix năm suffix';
    expect((await played()).map(({ wav }) => clipsIn(wav).join(' '))).toEqual([
      'prefix hai mươi mốt suffix',
      'prefix năm suffix',
      again,
      'prefix một suffix',
    ]);
    const repeats = io.lines.filter(({ event }) => event === 'payment-spoken').map(({ repeated }) => repeated);
    expect([repeats, voice.status().said]).toEqual([[false, false, true, false], 3]);
  });

  it('AGT-17 THR-39 a repetition begins with "Nhắc lại" and the time, without the chime of a new payment', async () => {
    const { command, played } = await recordingPlayer();
    const voice = startVoice(await clipsConfig(command, { chime: true }), collectingIo());
    voice.repeat({ transactionId: 'a', amount: 21, paidAtMs: NINE_FIVE });
    const [sound] = await eventually('the sound', async () => (await played()).length === 1 && played());
    expect(clipsIn(sound?.wav ?? Buffer.of()).join(' ')).toBe('repeat chín giờ năm phút prefix hai mươi mốt suffix');
    await eventually('its words', () => voice.status().words !== null);
    expect(voice.status().words).toBe('Nhắc lại, lúc chín giờ năm phút, đã nhận hai mươi mốt đồng');
  });

  it('AGT-17 a voice repeats nothing where its clips lack the words for it, and announces as before', async () => {
    const { command, played } = await recordingPlayer();
    const io = collectingIo();
    const names = ['prefix', ...vocabulary('linh'), 'suffix', 'giờ'];
    const options = { folder: await writeClips(names), player: player(command) };
    const voice = startVoice({ driver: 'clips', options, volumePercent: 100, chime: true }, io);
    await eventually('tried out', () => voice.status().ok);
    voice.repeat({ transactionId: 'a', amount: 5, paidAtMs: NINE_FIVE });
    const [line] = await eventually('it is named', () => {
      const found = io.lines.filter(({ event }) => event === 'announcement-not-spoken');
      return found.length > 0 && found;
    });
    expect(line?.reason).toMatch(/^no clip repeat\.wav, phút\.wav in .*; nothing is said again$/);
    expect(io.lines.filter(({ event }) => event === 'repetitions-not-spoken')).toHaveLength(1);
    voice.announce({ transactionId: 'b', amount: 5 });
    await eventually('the new one', async () => (await played()).length === 1);
    expect([voice.status().ok, voice.status().words]).toEqual([true, 'Đã nhận năm đồng']);
  });

  it('AGT-17 a voice repeats nothing by its chime alone, which would be that of a new payment', async () => {
    const io = collectingIo();
    const voice = startVoice({ driver: 'page', options: { speech: { kind: 'none' } } }, io);
    voice.repeat({ transactionId: 'a', amount: 5, paidAtMs: NINE_FIVE });
    await eventually('it is named', () => io.lines.some(({ event }) => event === 'announcement-not-spoken'));
    expect(io.pages).toEqual([]);
  });

  it('AGT-17 THR-39 a voice repeats after those that wait, once however often it is asked', async () => {
    const { command, played } = await recordingPlayer(0.2);
    const io = collectingIo();
    const voice = startVoice(await clipsConfig(command), io);
    voice.announce({ transactionId: 'a', amount: 1 });
    voice.announce({ transactionId: 'b', amount: 2 });
    await eventually('the first is being heard', () => voice.status().queued === 1);
    for (let presses = 0; presses < 5; presses += 1)
      voice.repeat({ transactionId: 'a', amount: 1, paidAtMs: NINE_FIVE });
    expect(voice.status().queued).toBe(2);
    await eventually('three sounds', async () => (await played()).length === 3);
    const [one, two, three] = (await played()).map(({ wav }) => clipsIn(wav).join(' '));
    expect([one, two]).toEqual(['prefix một suffix', 'prefix hai suffix']);
    expect(three).toMatch(/^repeat /);
  });

  it('a voice forgets the oldest transactions, so that its memory is bounded', async () => {
    const io = collectingIo();
    const voice = startVoice({ driver: 'page', options: { speech: { kind: 'none' } }, volumePercent: 0 }, io);
    const unspoken = () => io.lines.filter(({ event }) => event === 'announcement-not-spoken').length;
    for (let id = 0; id < 1_001; id += 1) {
      voice.announce({ transactionId: `t${id}`, amount: 1 });
    }
    await eventually('all are through', () => unspoken() === 1_001);
    voice.announce({ transactionId: 't1000', amount: 1 });
    voice.announce({ transactionId: 't1', amount: 1 });
    expect(voice.status().queued).toBe(0);
    voice.announce({ transactionId: 't0', amount: 1 });
    await eventually('the forgotten one', () => unspoken() === 1_002);
  });

  it('a voice drops the oldest announcement when too many wait, and logs which', async () => {
    const { command, played } = await recordingPlayer(0.3);
    const io = collectingIo();
    const voice = startVoice(await clipsConfig(command), io);
    voice.announce({ transactionId: 't0', amount: 1 });
    await eventually('the first is being heard', () => voice.status().ok && voice.status().queued === 0);
    for (let id = 1; id <= 9; id += 1) voice.announce({ transactionId: `t${id}`, amount: id });
    expect(voice.status().queued).toBe(8);
    const dropped = io.lines.filter(({ event }) => event === 'announcement-not-spoken');
    expect(dropped).toMatchObject([{ transactionId: 't1', reason: 'more than 8 announcements wait' }]);
    await eventually('nine sounds', async () => (await played()).length === 9);
    expect((await played()).map(({ wav }) => heard(wav)).slice(0, 3)).toEqual(['một', 'hai', 'ba']);
  });

  it('a voice says nothing late: which, and how long it waited, is in the log', async () => {
    const { command, played } = await recordingPlayer(0.3);
    const clock = movableClock();
    const io = collectingIo(clock);
    const voice = startVoice(await clipsConfig(command), io);
    voice.announce({ transactionId: 'now', amount: 1 });
    await eventually('the first is being heard', () => voice.status().ok && voice.status().queued === 0);
    voice.announce({ transactionId: 'late', amount: 2 });
    clock.forward(61_000);
    const [line] = await eventually('it is named', () => {
      const found = io.lines.filter(({ event }) => event === 'announcement-not-spoken');
      return found.length > 0 && found;
    });
    expect(line).toMatchObject({ transactionId: 'late', amount: 2 });
    expect(line?.reason).toMatch(/^it waited 6\d{4} ms, longer than 60000 ms$/);
    voice.announce({ transactionId: 'again', amount: 3 });
    await eventually('it is being heard', () => voice.status().queued === 0);
    voice.repeat({ transactionId: 'late', amount: 2, paidAtMs: NINE_FIVE });
    clock.forward(61_000);
    const unspoken = () => io.lines.filter(({ event }) => event === 'announcement-not-spoken').length;
    await eventually('a repetition, too', () => unspoken() === 2);
    expect((await played()).map(({ wav }) => heard(wav))).toEqual(['một', 'ba']);
  });

  it('a voice rings before it speaks, and scales both by the volume', async () => {
    const peaks: number[] = [];
    for (const volumePercent of [100, 50]) {
      const { command, firstWav } = await recordingPlayer();
      const voice = startVoice(await clipsConfig(command, { chime: true, volumePercent }), collectingIo());
      voice.announce({ transactionId: 'a', amount: 9 });
      const wav = await firstWav();
      const { samples, sampleRateHz } = decodeWav(wav, 'it');
      expect(sampleRateHz).toBe(16_000);
      expect(samples.length / sampleRateHz).toBeCloseTo(0.6 + 0.15 + 0.03, 2);
      peaks.push(Math.max(...samples.subarray(0, 9_600)), samples.at(-1) ?? 0);
    }
    const [chimeFull = 0, wordsFull = 0, chimeHalf, wordsHalf] = peaks;
    expect([chimeHalf, wordsHalf]).toEqual([Math.round(chimeFull / 2), Math.round(wordsFull / 2)]);
    expect(chimeFull).toBeGreaterThan(5_000);
  });

  it('a voice rings with the chime of its clips where they have one', async () => {
    const { command, firstWav } = await recordingPlayer();
    const options = { folder: await writeClips(['chime', 'chín']), player: player(command) };
    const voice = startVoice({ driver: 'clips', options, volumePercent: 100 }, collectingIo());
    voice.announce({ transactionId: 'a', amount: 9 });
    const wav = await firstWav();
    const said = clipsIn(wav);
    expect(said).toEqual(['chime', ...Array(15).fill('level 0'), 'chín']);
  });

  it('a voice is silent in quiet hours, across midnight, and names it', async () => {
    const { command, played } = await recordingPlayer();
    const clock = movableClock();
    clock.setWall(at(5, 59));
    const io = collectingIo(clock);
    const voice = startVoice(await clipsConfig(command, { quietHours: { from: '22:00', to: '06:00' } }), io);
    voice.announce({ transactionId: 'night', amount: 1 });
    await eventually('it is named', () => io.lines.some(({ reason }) => reason === 'quiet hours'));
    clock.setWall(at(6, 0));
    voice.announce({ transactionId: 'morning', amount: 2 });
    await eventually('the morning', async () => (await played()).length === 1);
    expect((await played()).map(({ wav }) => heard(wav))).toEqual(['hai']);
    expect(voice.status().ok).toBe(true);
  });

  it('a voice speaks at any hour while it does not know the time: its clock may have stood still without power', async () => {
    const { command, firstWav } = await recordingPlayer();
    const clock = movableClock();
    clock.setWall(at(23, 0));
    const io = { ...collectingIo(clock), toldMs: () => undefined };
    const voice = startVoice(await clipsConfig(command, { quietHours: { from: '22:00', to: '06:00' } }), io);
    voice.announce({ transactionId: 'a', amount: 1 });
    expect(heard(await firstWav())).toBe('một');
  });

  it('a voice speaks at the volume of quiet hours, never louder than by day', async () => {
    for (const [quiet, expected] of [
      [10, 10],
      [90, 40],
    ] as const) {
      const { command, firstWav } = await recordingPlayer();
      const clock = movableClock();
      clock.setWall(at(23, 0));
      const quietHours = { from: '22:00', to: '06:00', volumePercent: quiet };
      const voice = startVoice(await clipsConfig(command, { quietHours, volumePercent: 40 }), collectingIo(clock));
      voice.announce({ transactionId: 'a', amount: 1 });
      const wav = await firstWav();
      expect(wav.readInt16LE(44)).toBe((1000 * expected) / 100);
    }
  });
});
