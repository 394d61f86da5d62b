import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Key } from '../../../src/device/agent/contract.ts';
import { isInForeground, watchKeyboard } from '../../../src/device/agent/peripherals/keyboard.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { fc } from '../../support/properties.ts';

/** The input of a terminal that knows its mode, and refuses to be read in the wrong one. */
class FakeTerminal extends PassThrough {
  readonly modes: boolean[] = [];

  setRawMode(raw: boolean): this {
    this.modes.push(raw);
    return this;
  }

  sends(text: string): void {
    if (this.modes.at(-1) !== true) throw new Error('the terminal waits for a whole line');
    if (!this.push(Buffer.from(text, 'utf8')) && this.isPaused()) throw new Error('nobody reads');
  }
}

function typing() {
  const clock = new VirtualClock();
  const terminal = new FakeTerminal();
  const logged = new PassThrough();
  const seen: (Key | 'interrupt')[] = [];
  const keyboard = watchKeyboard(
    terminal as unknown as ReadStream,
    { clock, log: createLogger(logged, clock, 'text') },
    (key) => seen.push(key),
    () => seen.push('interrupt'),
  );
  onTestFinished(() => keyboard.close());
  return {
    clock,
    terminal,
    keyboard,
    seen,
    log: () => String(logged.read() ?? ''),
    /** Sends portions with pauses of `pauseMs` between them, then waits for silence. */
    sends: async (portions: readonly string[], pauseMs = 0) => {
      for (const portion of portions) {
        terminal.sends(portion);
        await clock.advance(pauseMs);
      }
      await clock.advance(1_000);
    },
  };
}

const SEQUENCES = [
  '\x1b[A',
  '\x1bOd',
  '\x1b[1;5D',
  '\x1bd',
  '\x1b\x1b',
  '\x1b[?62;4c',
  '\x1b[?1;2d',
  '\x1b_Gi=31;OK\x1b\\',
  '\x1bP1$r0m\x1b\\',
  '\x1b]11;rgb:dddd/dddd/dddd\x07',
  '\x1b[200~rhd \x1b[201~',
  '\x1b[<0;10;10M',
  'history',
  'dd',
  'đ',
  ' r',
  'r\n',
];

describe('the keyboard', () => {
  it.each([
    ['Esc', '\x1b', 'dismiss'],
    ['Space', ' ', 'dismiss'],
    ['d', 'd', 'dismiss'],
    ['r', 'r', 'repeat'],
    ['h', 'h', 'history'],
  ])('takes %s', async (_, typed, key) => {
    const { sends, seen } = typing();
    await sends([typed]);
    await sends([typed]);
    expect(seen).toEqual([key, key]);
  });

  it.each(['\r', 'D', 'q', '1', '\x1a', '\x04', '\x00'])('ignores %j', async (typed) => {
    const { sends, seen } = typing();
    await sends([typed]);
    expect(seen).toEqual([]);
  });

  it('the keyboard reads Ctrl-C at once, wherever it comes', () => {
    const { terminal, seen } = typing();
    terminal.emit('data', Buffer.from('\x03'));
    terminal.emit('data', Buffer.from('\x1b_G\x03'));
    expect(seen).toEqual(['interrupt', 'interrupt']);
  });

  it.each(SEQUENCES)(
    'the keyboard reads %j as no key, whole or in pieces, and the next key as one',
    async (sequence) => {
      const { sends, seen } = typing();
      await sends([sequence]);
      await sends([...sequence]);
      await sends([...sequence], 99);
      expect(seen).toEqual([]);
      await sends(['r']);
      expect(seen).toEqual(['repeat']);
    },
  );

  it('the keyboard reads no flow of sequences as keys, however it is cut', async () => {
    const pieces = fc.record({
      text: fc.array(fc.constantFrom(...SEQUENCES), { minLength: 1, maxLength: 8 }).map((all) => all.join('')),
      cuts: fc.array(fc.record({ at: fc.nat(80), pauseMs: fc.nat(99) }), { maxLength: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(pieces, async ({ text, cuts }) => {
        const { terminal, clock, seen, keyboard } = typing();
        let from = 0;
        for (const { at, pauseMs } of [...cuts].sort((a, b) => a.at - b.at)) {
          if (at <= from || at >= text.length) continue;
          terminal.sends(text.slice(from, at));
          await clock.advance(pauseMs);
          from = at;
        }
        terminal.sends(text.slice(from));
        await clock.advance(1_000);
        keyboard.close();
        expect(seen).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it('the keyboard reads what came during a stall before it reads an Esc as a key', async () => {
    const { terminal, clock, seen } = typing();
    terminal.sends('\x1b');
    await clock.advance(99);
    // What the kernel held back arrives in the very turn after the late wake-up.
    const late = clock.sleep(1).then(() => terminal.emit('data', Buffer.from('[A')));
    await clock.advance(1);
    await late;
    await clock.advance(1_000);
    expect(seen).toEqual([]);
  });

  it('the keyboard passes answers of the terminal to others', async () => {
    const { sends, keyboard } = typing();
    const heard: string[] = [];
    const stop = keyboard.onData((bytes) => heard.push(String(bytes)));
    await sends(['\x1b[?62;4c']);
    stop();
    await sends(['r']);
    expect(heard).toEqual(['\x1b[?62;4c']);
  });

  it('the keyboard gives the terminal back once when it is closed, and drops a key that has begun', async () => {
    const { terminal, clock, keyboard, seen } = typing();
    terminal.sends('r');
    await clock.advance(50);
    keyboard.close();
    keyboard.close();
    await clock.advance(1_000);
    expect(terminal.modes).toEqual([true, false]);
    expect(terminal.isPaused()).toBe(true);
    expect(terminal.eventNames().filter((name) => name === 'data' || name === 'error')).toEqual([]);
    expect([seen, clock.sleeping()]).toEqual([[], []]);
  });

  it('the keyboard gives the terminal back when its input ends', async () => {
    const { terminal, log } = typing();
    terminal.push(null);
    await eventually('the mode is restored', () => terminal.modes.at(-1) === false);
    expect(log()).toBe('');
  });

  it('the keyboard survives a terminal that is gone, and logs it', async () => {
    const { terminal, log } = typing();
    terminal.setRawMode = (raw) => {
      terminal.modes.push(raw);
      terminal.emit('error', new Error('setRawMode EIO'));
      return terminal;
    };
    terminal.emit('error', new Error('read EIO'));
    expect(terminal.modes).toEqual([true, false]);
    expect(log()).toMatch(/^\S+ warn {2}keyboard-lost reason="read EIO"\n$/);
  });
});

describe('the foreground', () => {
  it.each([
    ['in the foreground', '7 (node) S 1 7 5 34816 7 4194304', true],
    ['in the background', '7 (node) S 1 7 5 34816 5 4194304', false],
    ['without a terminal', '7 (node) S 1 7 5 0 -1 4194304', true],
    ['behind an odd name', '7 (a) b (c)) S 1 7 5 34816 5 4194304', false],
    ['without a /proc', '', true],
  ])('is told %s', (_, stat, expected) => {
    expect(isInForeground(stat)).toBe(expected);
  });
});

const socat = without(PROGRAMS.socat);

/** Runs a program of a few lines, with the keyboard at hand, on a terminal of its own. */
async function onTerminal(...body: string[]) {
  const folder = await temporaryFolder();
  const src = join(import.meta.dirname, '../../../src');
  const imports = [
    `import { spawnSync } from 'node:child_process';`,
    `import { isInForeground, watchKeyboard } from '${src}/device/agent/peripherals/keyboard.ts';`,
    `import { systemClock } from '${src}/lib/clock.ts';`,
    `import { createLogger } from '${src}/lib/log.ts';`,
    `const mode = () => spawnSync('stty', ['-a'], { stdio: ['inherit', 'pipe', 'inherit'] }).stdout.toString().match(/-?\\b(isig|icanon|echo)\\b/g);`,
  ];
  await writeFile(join(folder, 'program.ts'), [...imports, ...body].join('\n'));
  await writeFile(join(folder, 'start'), `exec ${process.execPath} ${folder}/program.ts\n`);
  await writeFile(join(folder, 'start-behind'), `set -m\n${process.execPath} ${folder}/program.ts &\nwait\n`);
  return (script: string) => {
    const child = spawn('socat', ['STDIO', `EXEC:sh ${folder}/${script},pty,setsid,ctty,stderr`], { stdio: 'pipe' });
    onTestFinished(() => void child.kill('SIGKILL'));
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
    return { type: (keys: string) => child.stdin.write(keys), screen: () => text };
  };
}

describe.skipIf(socat.missing)(`on a terminal${socat.note}`, () => {
  it('on a terminal, the agent reads keys but no arrow, and gives the terminal back at Ctrl-C', async () => {
    const run = await onTerminal(
      `const log = createLogger(process.stderr, systemClock, 'text');`,
      `const keyboard = watchKeyboard(process.stdin, { clock: systemClock, log }, (key) => console.log('<' + key + '>'), () => {`,
      `  keyboard.close();`,
      `  console.log('<' + mode() + '>');`,
      `  process.on('exit', () => console.log('<end>'));`,
      `});`,
      `console.log('<' + mode() + '>');`,
    );
    const { type, screen } = run('start');
    const marks = (): string[] => screen().match(/<[^<>]*>/g) ?? [];
    const seen = (mark: string) => eventually(`${mark} in ${screen()}`, () => marks().includes(mark));
    await seen('<-isig,-icanon,-echo>');
    type('r');
    await seen('<repeat>');
    type('\x1b');
    await seen('<dismiss>');
    type('\x1b[A');
    await eventually('a key after the arrow', async () => {
      type('h');
      return eventually('it is taken', () => marks().includes('<history>'), 1_000).catch(() => false);
    });
    type('\x03');
    await seen('<end>');
    const others = marks().filter((mark) => mark !== '<history>');
    expect(others).toEqual(['<-isig,-icanon,-echo>', '<repeat>', '<dismiss>', '<isig,icanon,echo>', '<end>']);
  });

  it('on a terminal, the agent tells a background job from one in the foreground', async () => {
    const run = await onTerminal(`console.log('<' + isInForeground() + '>');`);
    const [front, behind] = [run('start'), run('start-behind')];
    await eventually('an answer in front', () => front.screen().includes('<true>'));
    await eventually('an answer behind', () => behind.screen().includes('<false>'));
  });
});
