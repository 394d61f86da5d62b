import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { PageAnnouncement } from '../../src/device/voice/contract.ts';
import { voiceOptions } from '../../src/device/voice/registry.ts';
import { openVoice, type Voice, type VoiceIo } from '../../src/device/voice/voice.ts';
import { encodeWav, type PcmFormat } from '../../src/device/voice/wav.ts';
import { vocabulary } from '../../src/device/voice/words.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { keptLog, type LogLine } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';

/** The machine's clock, whose readings a test may move, and whose sleeps may be shortened. */
export interface MovableClock extends Clock {
  forward(ms: number): void;
  setWall(ms: number): void;
}

export function movableClock(sleepDivisor = 1): MovableClock {
  let aheadMs = 0;
  let wallMs: number | undefined;
  return {
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    wallMs: () => wallMs ?? systemClock.wallMs(),
    sleep: (ms, signal) => systemClock.sleep(ms / sleepDivisor, signal),
    forward: (ms) => {
      aheadMs += ms;
    },
    setWall: (ms) => {
      wallMs = ms;
    },
  };
}

export function collectingIo(clock: Clock = systemClock): VoiceIo & { lines: LogLine[]; pages: PageAnnouncement[] } {
  const { log, lines } = keptLog(clock);
  const pages: PageAnnouncement[] = [];
  return {
    clock,
    log,
    toldMs: () => clock.wallMs(),
    onPage: (announcement) => {
      pages.push(announcement);
    },
    lines,
    pages,
  };
}

/** Opens a voice from its configuration; it is closed when the test ends. */
export function startVoice(config: unknown, io: VoiceIo): Voice {
  const voice = openVoice(voiceOptions.parse(config), io);
  onTestFinished(() => voice.close());
  return voice;
}

/** An executable shell script of the test's own. */
export async function writeScript(name: string, ...body: string[]): Promise<string> {
  const folder = await temporaryFolder();
  const file = join(folder, name);
  await writeFile(file, ['#!/bin/sh', `HERE=${folder}`, ...body, ''].join('\n'));
  await chmod(file, 0o755);
  return file;
}

/** Replaces a script of writeScript at one stroke: a shell that runs it reads on in the old one. */
export async function rewriteScript(file: string, ...body: string[]): Promise<void> {
  const head = (await readFile(file, 'utf8')).split('\n').slice(0, 2);
  await writeFile(`${file}.new`, [...head, ...body, ''].join('\n'), { mode: 0o755 });
  await rename(`${file}.new`, file);
}

export interface PlayedSound {
  startMs: number;
  endMs: number;
  wav: Buffer;
}

export interface RecordingPlayer {
  command: string;
  /** Without the silence by which the voice tries its player out. */
  played(): Promise<PlayedSound[]>;
  /** The first sound, once it was played. */
  firstWav(): Promise<Buffer>;
}

/** A player program that takes `holdS` seconds and keeps what it was given and when. */
export async function recordingPlayer(holdS = 0): Promise<RecordingPlayer> {
  const command = await writeScript(
    'player',
    'start=$(date +%s%N)',
    'cat > "$HERE/$$.wav"',
    `sleep ${holdS}`,
    'echo "$$ $start $(date +%s%N)" >> "$HERE/times"',
  );
  const folder = join(command, '..');
  const played = async () => {
    const text = await readFile(join(folder, 'times'), 'utf8').catch(() => '');
    const lines = text.split('\n').filter((line) => line !== '');
    const all = await Promise.all(
      lines.map(async (line) => {
        const [id, start, end] = line.split(' ');
        const wav = await readFile(join(folder, `${id}.wav`));
        return { startMs: Number(start) / 1e6, endMs: Number(end) / 1e6, wav };
      }),
    );
    return all.filter(({ wav }) => wav.subarray(44).some((byte) => byte !== 0));
  };
  return { command, played, firstWav: () => eventually('a sound', async () => (await played())[0]?.wav) };
}

export const CLIP_FORMAT: PcmFormat = { sampleRateHz: 16_000, channels: 1 };
const CLIP_FRAMES = 160;

/** A pack of clips may have all of these. */
const CLIPS = ['prefix', ...vocabulary('linh'), 'suffix', 'chime', 'repeat', 'giờ', 'phút'];

/** The sample that fills each clip of writeClips, so that a sound can be read back as words. */
export function clipLevel(name: string): number {
  return 1000 + 100 * CLIPS.indexOf(name);
}

/** A folder of clips of 10 ms, each filled with its own level. */
export async function writeClips(names: readonly string[] = CLIPS.filter((name) => name !== 'chime')): Promise<string> {
  const folder = join(await temporaryFolder(), 'clips');
  await mkdir(folder);
  for (const name of names) await writeClip(folder, name);
  return folder;
}

export async function writeClip(folder: string, name: string, format: PcmFormat = CLIP_FORMAT): Promise<void> {
  const samples = new Int16Array(CLIP_FRAMES * format.channels).fill(clipLevel(name.normalize('NFC').toLowerCase()));
  await writeFile(join(folder, `${name}.wav`), encodeWav({ ...format, samples }));
}

/** The clips of a sound put together from writeClips, played at full volume without a chime. */
export function clipsIn(wav: Uint8Array): string[] {
  const samples = Buffer.from(wav).subarray(44);
  const found: string[] = [];
  for (let at = 0; at < samples.length; at += CLIP_FRAMES * 2) {
    const level = samples.readInt16LE(at);
    found.push(CLIPS.find((name) => clipLevel(name) === level) ?? `level ${level}`);
  }
  return found;
}

export const player = (command: string) => ({ kind: 'aplay', command });

/** Clips through a player program at full volume without a chime, so that what is heard can be read back. */
export async function clipsConfig(command: string, more: object = {}) {
  const options = { folder: await writeClips(), player: player(command) };
  return { driver: 'clips', options, volumePercent: 100, chime: false, ...more };
}
