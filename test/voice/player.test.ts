import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chime, SPEECH_FORMAT } from '../../src/device/voice/chime.ts';
import { openPlayer, playerOptions } from '../../src/device/voice/player.ts';
import { encodeWav } from '../../src/device/voice/wav.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { writeScript } from './support.ts';

const { signal } = new AbortController();
const sound = chime(SPEECH_FORMAT);
const player = (options: object) => openPlayer(playerOptions.parse(options), systemClock);
const alsa = without(PROGRAMS.aplay);

const recorder = () => writeScript('player', 'cat > "$HERE/input"', 'printf "%s\\n" "$@" > "$HERE/args"');

async function recorded(command: string) {
  const folder = dirname(command);
  const args = await readFile(join(folder, 'args'), 'utf8');
  return { args: args.trim().split('\n'), input: await readFile(join(folder, 'input')) };
}

describe('players', () => {
  it('hand aplay a WAV file and its device as one argument', async () => {
    const command = await recorder();
    await player({ kind: 'aplay', device: 'plughw:1,0; reboot', command }).play(sound, '', signal);
    const { args, input } = await recorded(command);
    expect(args).toEqual(['--quiet', '--device=plughw:1,0; reboot', '--file-type=wav', '-']);
    expect(input.equals(encodeWav(sound))).toBe(true);
  });

  it('hand paplay raw samples and their format', async () => {
    const command = await recorder();
    await player({ kind: 'paplay', sink: 'speaker', command }).play(sound, '', signal);
    const { args, input } = await recorded(command);
    expect(args).toEqual([
      '--raw',
      '--latency-msec=100',
      '--format=s16le',
      '--rate=22050',
      '--channels=1',
      '--device=speaker',
    ]);
    expect(input.equals(encodeWav(sound).subarray(44))).toBe(true);
  });

  it('are tried out with silence', async () => {
    const command = await recorder();
    await player({ kind: 'aplay', command }).check(signal);
    const { input } = await recorded(command);
    expect(input.length).toBeGreaterThan(1_000);
    expect(input.subarray(44).every((byte) => byte === 0)).toBe(true);
  });
});

describe.skipIf(alsa.missing)(`aplay${alsa.note}`, () => {
  it('plays to a device', async () => {
    await player({ kind: 'aplay', device: 'null' }).check(signal);
    await player({ kind: 'aplay', device: 'null' }).play(sound, '', signal);
  });

  it('names a device that is not there', async () => {
    await expect(player({ kind: 'aplay', device: 'hw:77' }).play(sound, '', signal)).rejects.toThrow(
      /^aplay failed with exit code 1: aplay: main:\d+: audio open error: .+$/,
    );
  });
});
