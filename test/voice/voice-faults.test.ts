import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import {
  clipsConfig,
  collectingIo,
  movableClock,
  player,
  recordingPlayer,
  rewriteScript,
  startVoice,
  writeClips,
  writeScript,
} from './support.ts';

const readBeside = (command: string, name: string) => readFile(join(dirname(command), name), 'utf8').catch(() => '');

describe('a voice whose parts fail', () => {
  it('a voice names a failing player once, goes on, and recovers when the player does', async () => {
    const command = await writeScript(
      'player',
      'echo first >&2',
      'echo "audio open error: No such device" >&2',
      'exit 7',
    );
    const io = collectingIo();
    const voice = startVoice(await clipsConfig(command), io);
    voice.announce({ transactionId: 'a', amount: 1 });
    voice.announce({ transactionId: 'b', amount: 2 });
    const reason = `${command} failed with exit code 7: audio open error: No such device (see \`aplay -L\` for devices, and that this user is in the group audio)`;
    await eventually('both have failed', () => voice.status().queued === 0 && voice.status().reason === reason);
    await rewriteScript(command, 'cat > /dev/null');
    voice.announce({ transactionId: 'c', amount: 3 });
    await eventually('it is heard', () =>
      io.lines.some((line) => line.event === 'payment-spoken' && line.transactionId === 'c'),
    );
    await eventually('it is well', () => voice.status().ok);
    const changes = io.lines.filter(({ event }) => event !== 'payment-spoken');
    expect(changes.map(({ level, event }) => `${level} ${event}`)).toEqual([
      'error voice-failed',
      'info voice-recovered',
    ]);
    expect(io.lines[0]).toMatchObject({ voice: 'clips', reason });
  });

  it('a voice names a player that is not installed', async () => {
    const io = collectingIo();
    const voice = startVoice(await clipsConfig('/nowhere/aplay'), io);
    await eventually('it is named', () =>
      voice.status().reason?.startsWith('/nowhere/aplay is not installed (sudo apt-get install alsa-utils)'),
    );
    voice.announce({ transactionId: 'a', amount: 1 });
    await eventually('it is through', () => voice.status().queued === 0);
    expect(voice.status().ok).toBe(false);
  });

  it('a voice kills a player that hangs, names it once, and goes on', async () => {
    const command = await writeScript('player', 'echo $$ >> "$HERE/ids"', 'exec sleep 1000');
    const io = collectingIo(movableClock(5));
    const voice = startVoice(await clipsConfig(command), io);
    voice.announce({ transactionId: 'a', amount: 1 });
    voice.announce({ transactionId: 'b', amount: 1_234_567 });
    const ids = await eventually('the third attempt', async () => {
      const all = (await readBeside(command, 'ids')).trim().split('\n');
      return all.length === 3 && all;
    });
    expect(voice.status().reason).toContain(`${command} hung and was killed`);
    await rewriteScript(command, 'cat > /dev/null');
    voice.announce({ transactionId: 'c', amount: 2 });
    await eventually('the next is heard', () => voice.status().ok);
    expect(io.lines.map(({ event }) => event)).toEqual(['voice-failed', 'payment-spoken', 'voice-recovered']);
    for (const id of ids) expect(() => process.kill(Number(id), 0)).toThrow(/ESRCH/);
  });

  it('a voice falls silent at once when it is closed, and leaves no process behind', async () => {
    const command = await writeScript('player', 'echo $$ > "$HERE/id"', 'exec sleep 1000');
    const io = collectingIo();
    const voice = startVoice(await clipsConfig(command), io);
    voice.announce({ transactionId: 'a', amount: 1 });
    const id = await eventually('it runs', async () => Number(await readBeside(command, 'id')) || undefined);
    await voice.close();
    expect(() => process.kill(id, 0)).toThrow(/ESRCH/);
    voice.announce({ transactionId: 'b', amount: 1 });
    expect(voice.status().queued).toBe(0);
    expect(io.lines).toEqual([]);
  });

  it('a voice rings alone when nothing can speak, and names the clip that is missing', async () => {
    const { command, firstWav } = await recordingPlayer();
    const io = collectingIo();
    const config = await clipsConfig(command);
    await rm(`${config.options.folder}/năm.wav`);
    await rm(`${config.options.folder}/tư.wav`);
    const voice = startVoice(config, io);
    await eventually('all that is missing', () =>
      voice.status().reason?.startsWith(`no clip năm.wav, tư.wav in ${config.options.folder}`),
    );
    voice.announce({ transactionId: 'a', amount: 5 });
    const wav = await firstWav();
    expect(wav.length).toBe(44 + 2 * 0.6 * 22_050);
    await eventually('it is named', () => voice.status().reason?.startsWith('no clip năm.wav in '));
    voice.announce({ transactionId: 'b', amount: 6 });
    await eventually('what needs no missing clip is well', () => voice.status().ok);
  });

  it('a voice speaks with the fallback when a clip is missing, and names it', async () => {
    const { command, firstWav } = await recordingPlayer();
    const folder = await writeClips(['prefix', 'hai']);
    const io = collectingIo();
    const options = { folder, player: player(command), fallback: 'espeak' };
    const voice = startVoice({ driver: 'clips', options, chime: false }, io);
    voice.announce({ transactionId: 'a', amount: 1 });
    await firstWav();
    // The player ends after it has written what it was given.
    const named = /^no clip một\.wav in .*; (another voice speaks instead|espeak-ng is not inst)/;
    await eventually('it is named', () => named.test(voice.status().reason ?? ''));
  });

  it('a voice survives a page that throws', async () => {
    const io = collectingIo();
    const failing = {
      ...io,
      onPage: () => {
        throw new Error('no page');
      },
    };
    const voice = startVoice({ driver: 'page', options: { speech: { kind: 'none' } } }, failing);
    voice.announce({ transactionId: 'a', amount: 1 });
    await eventually('it is named', () => voice.status().reason === 'no page');
  });
});
