import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { espeakOptions, espeakSpeech } from '../../../src/device/voice/drivers/espeak.ts';
import { decodeWav, durationMs } from '../../../src/device/voice/wav.ts';
import { announcementText, numberWords } from '../../../src/device/voice/words.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { movableClock, writeScript } from '../support.ts';

const { signal } = new AbortController();
const phrase = (amount: number) => ({ text: announcementText(amount), number: numberWords(amount) });
const speech = (options: object = {}, clock = systemClock) => espeakSpeech(espeakOptions.parse(options), clock);
const openPipes = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
const espeak = without(PROGRAMS.espeak);

describe.skipIf(espeak.missing)(`espeak-ng${espeak.note}`, () => {
  it('speaks a sentence that is long enough, not silent and does not clip', async () => {
    for (const amount of [0, 50_000, 1_180_000, 9_999_999_999_999]) {
      const { words, chime } = await speech().render(phrase(amount), signal);
      expect(words).toMatchObject({ sampleRateHz: 22_050, channels: 1 });
      expect(durationMs(words)).toBeGreaterThan(500);
      const peak = words.samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
      expect(peak).toBeGreaterThan(3_000);
      expect(peak).toBeLessThan(32_767);
      expect(chime).toBeUndefined();
    }
  });

  it('takes longer for more words', async () => {
    const short = await speech().render(phrase(5), signal);
    const long = await speech().render(phrase(555_555_555_555), signal);
    expect(durationMs(long.words)).toBeGreaterThan(3 * durationMs(short.words));
  });

  it('gives through its pipe the very samples that it writes to a file', async () => {
    const file = join(await temporaryFolder(), 'said.wav');
    const { text, number } = phrase(1_180_000);
    spawnSync('espeak-ng', ['-v', 'vi', '-s', '160', '-p', '50', '-b', '1', '-w', file, '--stdin'], { input: text });
    expect((await speech().render({ text, number }, signal)).words).toEqual(decodeWav(await readFile(file), file));
  });

  it('names a voice that it does not have', async () => {
    await expect(speech({ voice: 'nosuch' }).render(phrase(1), signal)).rejects.toThrow(
      'espeak-ng failed with exit code 1: Error: The specified espeak-ng voice does not exist.',
    );
  });
});

describe('speech of espeak-ng', () => {
  it('hands the text over on standard input, the rest as single arguments', async () => {
    const command = await writeScript('espeak', 'cat > "$HERE/input"', 'printf "%s\\n" "$@" > "$HERE/args"');
    await expect(
      speech({ command }).render({ text: '$(reboot) -w /etc/passwd; đồng', number: '' }, signal),
    ).rejects.toThrow(`what ${command} wrote is not a WAV file`);
    expect(await readFile(join(dirname(command), 'input'), 'utf8')).toBe('$(reboot) -w /etc/passwd; đồng');
    const args = (await readFile(join(dirname(command), 'args'), 'utf8')).trim().split('\n');
    expect(args).toEqual(['-v', 'vi', '-s', '160', '-p', '50', '-b', '1', '--stdin', '--stdout']);
  });

  it.each(['-w/tmp/x', 'vi; reboot', '../vi', ''])('refuses the voice name "%s"', (voice) => {
    expect(espeakOptions.safeParse({ voice }).success).toBe(false);
  });

  it.each([
    ['is missing', '/nowhere/espeak-ng', '/nowhere/espeak-ng is not installed'],
    ['may not be run', '/etc/passwd', '/etc/passwd cannot be started: spawn /etc/passwd EACCES'],
  ])('names a program that %s', async (_, command, message) => {
    await expect(speech({ command }).render(phrase(1), signal)).rejects.toThrow(message);
  });

  it.each([
    ['hangs', ['exec sleep 1000'], 'hung and was killed'],
    ['leaves a child that holds its pipes', ['sleep 1000 & echo $! > "$HERE/child"', 'wait'], 'hung and was killed'],
    ['crashes', ['kill -SEGV $$'], 'was ended by SIGSEGV'],
    ['writes without end', ['exec cat /dev/zero'], 'wrote more than 8388608 bytes'],
  ])('names a program that %s', async (_, body, message) => {
    const command = await writeScript('espeak', ...body);
    onTestFinished(async () => {
      const child = await readFile(join(dirname(command), 'child'), 'utf8').catch(() => undefined);
      if (child !== undefined) process.kill(Number(child), 'SIGKILL');
    });
    const before = openPipes();
    await expect(
      speech({ command }, message.startsWith('hung') ? movableClock(20) : systemClock).render(phrase(1), signal),
    ).rejects.toThrow(`${command} ${message}`);
    await eventually('its pipes are closed', () => openPipes() === before);
  });
});
