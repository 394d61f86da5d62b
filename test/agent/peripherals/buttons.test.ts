import { open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Key } from '../../../src/device/agent/contract.ts';
import { buttonOptions, watchButtons } from '../../../src/device/agent/peripherals/buttons.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { collectingIo, rewriteScript, writeScript } from '../../voice/support.ts';
import { LINES, StandingClock, V1, V2 } from './fake-gpiomon.ts';

function watching(command: string, more: object = {}, clock = new StandingClock()) {
  const io = collectingIo(clock);
  const pressed: Key[] = [];
  const options = buttonOptions.parse({ lines: LINES, command, ...more });
  const buttons = watchButtons(options, io, (key) => pressed.push(key));
  onTestFinished(() => buttons.close());
  const ids = async () => {
    const text = await readFile(join(dirname(command), 'ids'), 'utf8').catch(() => '');
    return [...text.matchAll(/\d+/g)].map(Number);
  };
  return {
    clock,
    buttons,
    pressed,
    lines: io.lines,
    /** The process ids of every gpiomon so far. */
    ids,
    /** Writes to the pipe of the running gpiomon. */
    edges: async (...lines: string[]) => {
      await eventually('gpiomon watches', async () => (await ids()).length > 0);
      const pipe = await open(join(dirname(command), 'edges'), 'r+');
      onTestFinished(() => pipe.close());
      await pipe.write(`${lines.join('\n')}\n`);
    },
  };
}

const V2_OPTIONS = { chip: 'gpiochip4', activeLow: false };

function isRunning(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}

describe('buttons', () => {
  it('buttons are read through libgpiod 1', async () => {
    const { edges, pressed, buttons } = watching(await writeScript('gpiomon', ...V1));
    await edges('17 1', '17 0', '22 1', '22 0', '27 1');
    await eventually('three presses', () => pressed.length === 3);
    expect(pressed).toEqual(['dismiss', 'history', 'repeat']);
    expect(buttons.status()).toEqual({ ok: true, reason: null });
  });

  it('buttons are read through libgpiod 2, wired to 3.3 V', async () => {
    const { edges, pressed } = watching(await writeScript('gpiomon', ...V2), V2_OPTIONS);
    await edges('17 1', '17 2', '22 1', '22 2', '27 1');
    await eventually('three presses', () => pressed.length === 3);
    expect(pressed).toEqual(['dismiss', 'history', 'repeat']);
  });

  it('buttons do not bounce, closing or opening, even where the kernel reports an edge wrongly', async () => {
    const { edges, pressed, clock } = watching(await writeScript('gpiomon', ...V1));
    // The last edge of each step is another line's, by which the test knows that the step was read.
    await edges('17 1', '17 0', '17 1', '17 0', '17 1', '27 1', '27 0');
    await eventually('the first press', () => pressed.length === 2);
    clock.forward(149);
    await edges('17 0', '17 1', '22 1', '22 0');
    await eventually('an edge before the line was at rest', () => pressed.length === 3);
    clock.forward(1_000);
    await edges('17 1', '17 0', '17 1', '17 0', '27 1', '27 0');
    await eventually('the release', () => pressed.length === 4);
    clock.forward(150);
    await edges('17 0', '17 1', '22 1', '22 0');
    await eventually('the second press', () => pressed.length === 6);
    expect(pressed).toEqual(['dismiss', 'repeat', 'history', 'repeat', 'dismiss', 'history']);
  });

  it('buttons ignore unexpected output of gpiomon, and log it once', async () => {
    const { edges, pressed, lines } = watching(await writeScript('gpiomon', ...V1));
    await edges('17', '17 2', '17 1 1', ' 17 1', '170 1', '5 1', 'x'.repeat(1_000), '', '\x1b[31m17 1', '22 1');
    await eventually('the press that is one', () => pressed.length > 0);
    expect(pressed).toEqual(['history']);
    expect(lines.filter(({ event }) => event === 'buttons-output-unknown')).toEqual([
      expect.objectContaining({ level: 'warn', text: '17' }),
    ]);
  });

  it('buttons read edges that arrive in pieces', async () => {
    const body = [
      ...V1.slice(0, -1),
      'printf 1; sleep 0.05; printf "7 "; sleep 0.05; printf "1\\n22"; exec sleep 1000',
    ];
    const { pressed } = watching(await writeScript('gpiomon', ...body));
    await eventually('a press', () => pressed.length > 0);
    expect(pressed).toEqual(['dismiss']);
  });

  it('buttons end a gpiomon that floods, and start it again later', async () => {
    const body = [...V1.slice(0, -1), 'exec yes "17 1"'];
    const { pressed, ids, lines, buttons } = watching(await writeScript('gpiomon', ...body));
    await eventually('a second try', async () => (await ids()).length > 1);
    const [first = 0] = await ids();
    expect(isRunning(first)).toBe(false);
    expect(pressed.length).toBeLessThanOrEqual((await ids()).length);
    expect(buttons.status().reason).toMatch(
      /^buttons on gpiochip0: more than 500 edges in a second \(check the wiring/,
    );
    expect(lines.map(({ event }) => event)).toEqual(['buttons-failed']);
  });

  it('buttons count many edges, in as many seconds', async () => {
    const { edges, pressed, clock, ids } = watching(await writeScript('gpiomon', ...V1));
    const noise = Array<string>(400).fill('17 0');
    await edges(...noise, '22 1', '22 0');
    await eventually('the first press', () => pressed.length === 1);
    clock.forward(1_000);
    await edges(...noise, '22 1', '22 0');
    await eventually('the second press', () => pressed.length === 2);
    expect(await ids()).toHaveLength(1);
  });

  it('buttons start a gpiomon that died again, and forget what was held', async () => {
    const command = await writeScript('gpiomon', ...V1);
    const { edges, pressed, ids, lines, clock } = watching(command);
    await edges('17 1');
    await eventually('a press', () => pressed.length === 1);
    const [first = 0] = await ids();
    process.kill(first, 'SIGKILL');
    await eventually('another gpiomon', async () => (await ids()).length === 2);
    clock.forward(1_000);
    await edges('17 1');
    await eventually('a press through it', () => pressed.length === 2);
    clock.steady();
    await eventually('all is well', () => lines.length === 2);
    expect(lines.map(({ event, reason }) => [event, reason])).toEqual([
      [
        'buttons-failed',
        `buttons on gpiochip0: ${command} was ended by SIGKILL (see \`gpioinfo\` for chips and lines)`,
      ],
      ['buttons-recovered', undefined],
    ]);
  });

  it('buttons wait twice as long after each failure of gpiomon, up to a minute, and reset that after a good while', async () => {
    const command = await writeScript('gpiomon', ...V1.slice(0, 1), 'exit 1');
    const { clock, ids, edges, pressed } = watching(command);
    await eventually('two waits of a minute', () => clock.waitsMs.filter((ms) => ms === 60_000).length > 1);
    expect(clock.waitsMs.slice(0, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    await rewriteScript(command, ...V1);
    await edges('17 1');
    await eventually('a press', () => pressed.length === 1);
    clock.steady();
    process.kill((await ids()).at(-1) ?? 0, 'SIGKILL');
    await eventually('another gpiomon', async () => (await ids()).length === 2);
    expect(clock.waitsMs.at(-1)).toBe(1_000);
  });

  it.each([
    ['no program', undefined, / is not installed \(sudo apt-get install gpiod\)$/],
    [
      'no chip, by libgpiod 1',
      'gpiomon: error waiting for events: No such file or directory',
      /^buttons on gpiochip0: \S+ ended with exit code 1: gpiomon: error .* \(see `gpiodetect` for the chips/,
    ],
    [
      'no chip, by libgpiod 2',
      "gpiomon: cannot find GPIO chip character device 'gpiochip0'",
      / \(see `gpiodetect` for the chips/,
    ],
    [
      'no permission',
      "gpiomon: unable to open chip '/dev/gpiochip0': Permission denied",
      / \(add this user to the group that owns \/dev\/gpiochip0/,
    ],
    [
      'a busy line',
      'gpiomon: error waiting for events: Device or resource busy',
      / \(another program uses a line: see `gpioinfo`\)$/,
    ],
    [
      'no such line',
      "gpiomon: offset 99 is out of range on chip 'gpiochip0'",
      / \(see `gpioinfo` for the lines of this chip\)$/,
    ],
  ])('name %s, once, and are well when it is', async (_, complaint, reason) => {
    const missing = join(dirname(await writeScript('other')), 'gpiomon');
    const failing = [...V1.slice(0, 1), `echo more >&2; echo "${complaint}" >&2`, 'echo >> "$HERE/tries"; exit 1'];
    const command = complaint === undefined ? missing : await writeScript('gpiomon', ...failing);
    const { buttons, lines, edges, pressed, clock } = watching(command);
    await eventually('it is named', () => reason.test(buttons.status().reason ?? ''));
    if (complaint === undefined) return;
    await eventually('it was tried thrice', async () => {
      const tries = await readFile(join(dirname(command), 'tries'), 'utf8');
      return tries.length >= 3;
    });
    expect(lines.map(({ event }) => event)).toEqual(['buttons-failed']);
    await rewriteScript(command, ...V1);
    await edges('27 1');
    await eventually('a press', () => pressed.length > 0);
    expect(pressed).toEqual(['repeat']);
    clock.steady();
    await eventually('all is well', () => buttons.status().ok);
    expect(lines.map(({ event }) => event)).toEqual(['buttons-failed', 'buttons-recovered']);
  });

  it.each([
    ['of another age', ['echo "gpiomon v3.0"'], / has an unknown version: gpiomon v3\.0 \(install libgpiod 1 or 2\)$/],
    ['that may not be run', ['exit 126'], / failed with exit code 126 /],
    ['that hangs', ['exec sleep 1000'], / hung and was killed /],
  ])('name a gpiomon %s', async (_, body, reason) => {
    const { buttons } = watching(await writeScript('gpiomon', ...body), {}, new StandingClock(500));
    await eventually('it is named', () => reason.test(buttons.status().reason ?? ''));
  });

  it('buttons leave no gpiomon behind, and press nothing more, when they are closed', async () => {
    const { buttons, edges, ids, pressed } = watching(await writeScript('gpiomon', ...V1));
    await edges('17 1');
    await eventually('a press', () => pressed.length === 1);
    await buttons.close();
    await buttons.close();
    const all = await ids();
    expect(all.map(isRunning)).toEqual([false]);
    expect(pressed).toEqual(['dismiss']);
    expect(buttons.status()).toEqual({ ok: true, reason: null });
  });

  it('buttons can be closed before gpiomon has printed its version', async () => {
    const { buttons, lines } = watching(await writeScript('gpiomon', 'exec sleep 1000'));
    await buttons.close();
    expect(lines).toEqual([]);
  });

  it.each([
    {},
    { lines: {} },
    { lines: { dismiss: -1 } },
    { lines: { dismiss: 1.5 } },
    { lines: { dismiss: 4, repeat: 4 } },
    { lines: { other: 4 } },
    { lines: LINES, chip: '--help' },
    { lines: LINES, chip: 'a b' },
    { lines: LINES, debounceMs: 0 },
  ])('refuse %j', (options) => {
    expect(buttonOptions.safeParse(options).success).toBe(false);
  });
});

const real = without(PROGRAMS.gpiomon);

describe.skipIf(real.missing)(`the gpiomon of this machine${real.note}`, () => {
  it.each([true, false])(
    'the gpiomon of this machine accepts the command line, active low %s, and lacks nothing but the chip',
    async (activeLow) => {
      const { buttons } = watching('gpiomon', { chip: 'gpiochip987', activeLow });
      const reason = await eventually('it is named', () => buttons.status().reason ?? undefined);
      expect(reason).toMatch(
        /^buttons on gpiochip987: gpiomon ended with exit code 1: .* \(see `gpiodetect` for the chips/,
      );
    },
  );
});
