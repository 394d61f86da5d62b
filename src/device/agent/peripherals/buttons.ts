import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { type Clock, withDeadline } from '../../../lib/clock.ts';
import { PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { runProgram } from '../../voice/program.ts';
import type { Key, PeripheralStatus } from '../contract.ts';

type Lines = { [key in Key]?: number | undefined };

const LINE_MAX = 1_023;
const line = z.int().min(0).max(LINE_MAX);

const lines = z
  .strictObject({ dismiss: line.optional(), repeat: line.optional(), history: line.optional() })
  .refine((it) => numbersOf(it).length > 0, 'expected a line for at least one of dismiss, repeat, history')
  .refine((it) => new Set(numbersOf(it)).size === numbersOf(it).length, 'expected a different line for each button');

/**
 * Push buttons on GPIO lines, watched by `gpiomon` of the libgpiod tools. `gpioinfo` lists the names for `chip` and
 * `lines`. The chip's internal pull resistors are on: a button needs only two wires.
 */
export const buttonOptions = z.strictObject({
  chip: z
    .string()
    .regex(/^[\w/][\w/.-]{0,99}$/, 'a GPIO chip, as gpiochip0')
    .default('gpiochip0'),
  lines: lines.describe('the GPIO line of each button'),
  activeLow: z.boolean().default(true).describe('buttons connect their line to ground; otherwise to 3.3 V'),
  debounceMs: z.int().min(1).max(5_000).default(150).describe('how long a line must be at rest between two presses'),
  command: z.string().min(1).default('gpiomon'),
});

export type ButtonOptions = z.infer<typeof buttonOptions>;

export interface ButtonIo {
  clock: Clock;
  log: Logger;
}

/** Represents the watched buttons. */
export interface Buttons {
  status(): PeripheralStatus;
  /** Releases the lines. No key press follows. */
  close(): Promise<void>;
}

const VERSION_TIMEOUT_MS = 5_000;
const RESTART_FIRST_MS = 1_000;
const RESTART_MAX_MS = 60_000;
/** A gpiomon that has run this long has its lines; one without permission ends at once. */
const STEADY_MS = 3_000;
/** No button bounces that much; an unconnected line may pick up more. */
const EDGES_PER_SECOND_MAX = 500;
const LINE_CHARS_MAX = 64;
const COMPLAINT_CHARS_MAX = 2_000;
/** How long to wait for a killed gpiomon; one that is stuck in the kernel must not block the box. */
const KILL_WAIT_MS = 1_500;

/** The fix for each error text of gpiomon or the system. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/permission denied|not permitted/i, 'add this user to the group that owns /dev/gpiochip0, mostly gpio'],
  [/busy/i, 'another program uses a line: see `gpioinfo`'],
  [/no such (file|device)|cannot find GPIO chip/i, 'see `gpiodetect` for the chips of this machine'],
  [/out of range|cannot find line|invalid argument/i, 'see `gpioinfo` for the lines of this chip'],
];
const OTHER_ADVICE = 'see `gpioinfo` for chips and lines';

/**
 * Watches buttons and calls `press` once for each press. Never throws. It shows errors in the status and the log, and
 * retries with backoff.
 */
export function watchButtons(options: ButtonOptions, io: ButtonIo, press: (key: Key) => void): Buttons {
  return new GpioButtons(options, io, press);
}

type Monitor = ChildProcessByStdio<null, Readable, Readable>;

class GpioButtons implements Buttons {
  readonly #options: ButtonOptions;
  readonly #io: ButtonIo;
  readonly #press: (key: Key) => void;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #failure: string | undefined;
  #waitMs = RESTART_FIRST_MS;
  #unknownSeen = false;

  constructor(options: ButtonOptions, io: ButtonIo, press: (key: Key) => void) {
    this.#options = options;
    this.#io = io;
    this.#press = press;
    this.#running = this.#run();
  }

  status(): PeripheralStatus {
    return { ok: this.#failure === undefined, reason: this.#failure ?? null };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#watch(await this.#majorVersion());
      } catch (error) {
        const fix = error instanceof PayboxError ? error.fix : OTHER_ADVICE;
        this.#settle(`${reasonOf(error)} (${fix})`);
      }
      await this.#io.clock.sleep(this.#waitMs, signal);
      this.#waitMs = Math.min(this.#waitMs * 2, RESTART_MAX_MS);
    }
  }

  #settle(failure: string | undefined): void {
    if (this.#stop.signal.aborted || failure === this.#failure) return;
    this.#failure = failure;
    if (failure !== undefined) this.#io.log.error('buttons-failed', { reason: failure });
    else this.#io.log.info('buttons-recovered');
  }

  /**
   * Returns the tool's version. It reads it before every start, so that an upgrade of the tools needs no restart of the
   * box.
   */
  async #majorVersion(): Promise<1 | 2> {
    const { command } = this.#options;
    const program = { command, args: ['--version'], debianPackage: 'gpiod', advice: 'install libgpiod 1 or 2' };
    const text = String(await runProgram(program, this.#io.clock, VERSION_TIMEOUT_MS, this.#stop.signal));
    const major = Number(/\bv(\d+)\./.exec(text)?.[1]);
    if (major === 1 || major === 2) return major;
    const [first = ''] = text.split('\n');
    throw buttonFault(`${command} has an unknown version: ${first}`, program.advice);
  }

  /** Runs one gpiomon. Throws when it ended by itself or the box had to stop it. It settles after `close`. */
  async #watch(major: 1 | 2): Promise<void> {
    const { clock } = this.#io;
    const stopped = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, stopped.signal]);
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    const child = spawn(this.#options.command, this.#args(major), { stdio: ['ignore', 'pipe', 'pipe'], env });
    const gone = goneOf(child);
    void clock.sleep(STEADY_MS, signal).then(() => {
      if (signal.aborted) return;
      this.#waitMs = RESTART_FIRST_MS;
      this.#settle(undefined);
    });
    try {
      await Promise.race([this.#ended(child), this.#read(child, major), aborted(signal)]);
    } finally {
      stopped.abort();
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await withDeadline(clock, KILL_WAIT_MS, gone);
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
    }
  }

  /**
   * Returns the command line of gpiomon 1 or 2: both edges of every line. With `--active-low`, event type 1 (rising)
   * means pressed for either wiring. Version 2 flushes its output by itself.
   */
  #args(major: 1 | 2): string[] {
    const { chip, activeLow, lines } = this.#options;
    const common = [...(activeLow ? ['--active-low'] : []), `--bias=${activeLow ? 'pull-up' : 'pull-down'}`];
    const numbers = numbersOf(lines).map(String);
    return major === 1
      ? ['--line-buffered', ...common, '--format=%o %e', chip, ...numbers]
      : [...common, '--edges=both', '--format=%o %e', `--chip=${chip}`, ...numbers];
  }

  /** Rejects with gpiomon's error text when it has ended. */
  #ended(child: Monitor): Promise<never> {
    const { command, chip } = this.#options;
    let complaint = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-COMPLAINT_CHARS_MAX);
    });
    return new Promise((_, reject) => {
      child.once('error', (error) => {
        const missing = systemCodeOf(error) === 'ENOENT';
        const what = missing ? 'is not installed' : `cannot be started: ${reasonOf(error)}`;
        reject(
          buttonFault(`${command} ${what}`, missing ? 'sudo apt-get install gpiod' : 'check that it may be run', error),
        );
      });
      child.once('close', (code, killedBy) => {
        const how = killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}`;
        // The last line of the output has the actual error.
        const last = complaint.trim().split('\n').at(-1)?.trim() ?? '';
        const advice = ADVICE.find(([words]) => words.test(last))?.[1] ?? OTHER_ADVICE;
        reject(buttonFault(`buttons on ${chip}: ${command} ${how}${last === '' ? '' : `: ${last}`}`, advice));
      });
    });
  }

  /** Turns edges into presses. Rejects when more edges come than a person can cause. */
  #read(child: Monitor, major: 1 | 2): Promise<never> {
    const { clock } = this.#io;
    const { debounceMs, chip } = this.#options;
    const contacts = new Map(
      keysOf(this.#options.lines).map(([key, number]) => [number, { key, contact: new Contact(debounceMs) }]),
    );
    const edge = major === 1 ? /^(\d{1,4}) ([01])$/ : /^(\d{1,4}) ([12])$/;
    let sinceMs = clock.monotonicMs();
    let edges = 0;
    let rest = '';
    return new Promise((_, reject) => {
      child.stdout.setEncoding('latin1').on('data', (text: string) => {
        const nowMs = clock.monotonicMs();
        if (nowMs - sinceMs >= 1_000) [sinceMs, edges] = [nowMs, 0];
        const complete = (rest + text).split('\n');
        rest = (complete.pop() ?? '').slice(0, LINE_CHARS_MAX);
        edges += complete.length;
        if (this.#stop.signal.aborted) return;
        if (edges > EDGES_PER_SECOND_MAX) {
          child.stdout.removeAllListeners('data').resume();
          const what = `buttons on ${chip}: more than ${EDGES_PER_SECOND_MAX} edges in a second`;
          reject(buttonFault(what, 'check the wiring, and that each button is on the line that is configured'));
          return;
        }
        for (const each of complete) {
          const [, number, type] = edge.exec(each) ?? [];
          const button = contacts.get(Number(number));
          if (button === undefined) this.#unknown(each);
          else if (button.contact.pressedBy(type === '1', nowMs)) this.#press(button.key);
        }
      });
    });
  }

  #unknown(text: string): void {
    if (this.#unknownSeen) return;
    this.#unknownSeen = true;
    this.#io.log.warn('buttons-output-unknown', { text: text.slice(0, LINE_CHARS_MAX) });
  }
}

/**
 * Debounces one button. A contact bounces on closing and on opening, and the kernel may report wrong directions
 * meanwhile; only the last edge before a rest is reliable.
 */
class Contact {
  readonly #restMs: number;
  #closed = false;
  #edgeAtMs = Number.NEGATIVE_INFINITY;
  /** True if a closing edge counts: the contact was open at its last rest, and no press was reported since. */
  #armed = true;

  constructor(restMs: number) {
    this.#restMs = restMs;
  }

  /** Processes an edge and returns whether it is a press. */
  pressedBy(closing: boolean, atMs: number): boolean {
    if (atMs - this.#edgeAtMs >= this.#restMs) this.#armed = !this.#closed;
    this.#edgeAtMs = atMs;
    this.#closed = closing;
    const pressed = closing && this.#armed;
    if (pressed) this.#armed = false;
    return pressed;
  }
}

function keysOf(given: Lines): [Key, number][] {
  const keys = ['dismiss', 'repeat', 'history'] as const;
  return keys.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]] satisfies [Key, number]]));
}

function numbersOf(given: Lines): number[] {
  return keysOf(given).map(([, number]) => number);
}

function buttonFault(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('BUTTON_FAULT', what, { severity: 'retryable', fix, cause });
}

function goneOf(child: Monitor): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
