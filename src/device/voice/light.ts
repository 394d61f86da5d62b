import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { reasonAndFix, voiceFault } from './fault.ts';
import { holdProgram, type Program, runProgram } from './program.ts';

/**
 * The options of a light on a GPIO line, which `gpioset` of the libgpiod tools sets. `gpioinfo` lists `chip` and
 * `line`. The light blinks for `durationMs`, with a complete last blink. With `offMs` 0 it is steady.
 */
export const lightOptions = z.strictObject({
  chip: z
    .string()
    .regex(/^[\w/][\w/.-]{0,99}$/, 'a GPIO chip, as gpiochip0')
    .default('gpiochip0'),
  line: z.int().min(0).max(1023),
  activeLow: z.boolean().default(false),
  onMs: z.int().min(50).max(60_000).default(300),
  offMs: z.int().min(0).max(60_000).default(200),
  durationMs: z.int().min(50).max(60_000).default(3_000),
  command: z.string().min(1).default('gpioset'),
});

export type LightOptions = z.infer<typeof lightOptions>;

export interface LightIo {
  clock: Clock;
  log: Logger;
}

export interface LightStatus {
  ok: boolean;
  /** The problem and the advice; null if there is none. */
  reason: string | null;
}

/** A light for payments. No method throws or waits. */
export interface Light {
  /** Blinks for the configured time from now, even if it is already blinking. */
  flash(): void;
  status(): LightStatus;
  /** Puts the light out. */
  close(): Promise<void>;
}

const VERSION_TIMEOUT_MS = 5_000;
/** The shortest time that a line is driven. After that its state depends on the board. */
const HELD_MIN_MS = 50;

/** Returns a light that is off, and starts no program, until `flash` is called. */
export function openLight(options: LightOptions, io: LightIo): Light {
  return new GpioLight(options, io);
}

class GpioLight implements Light {
  readonly #options: LightOptions;
  readonly #io: LightIo;
  readonly #stop = new AbortController();
  #blinking: Promise<void> | undefined;
  #untilMs = 0;
  #major: number | undefined;
  #failure: string | undefined;

  constructor(options: LightOptions, io: LightIo) {
    this.#options = options;
    this.#io = io;
  }

  flash(): void {
    if (this.#stop.signal.aborted) return;
    this.#untilMs = this.#io.clock.monotonicMs() + this.#options.durationMs;
    this.#blinking ??= this.#blink();
  }

  status(): LightStatus {
    return { ok: this.#failure === undefined, reason: this.#failure ?? null };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#blinking;
  }

  async #blink(): Promise<void> {
    const { clock } = this.#io;
    const { signal } = this.#stop;
    const { onMs, offMs } = this.#options;
    try {
      this.#major ??= await this.#majorVersion();
      for (let leftMs = this.#leftMs(); leftMs > 0 && !signal.aborted; leftMs = this.#leftMs()) {
        await holdProgram(this.#program(1), clock, offMs === 0 ? Math.max(leftMs, HELD_MIN_MS) : onMs, signal);
        this.#settle(undefined);
        await holdProgram(this.#program(0), clock, Math.max(offMs, HELD_MIN_MS), signal);
      }
      if (signal.aborted) await holdProgram(this.#program(0), clock, HELD_MIN_MS, new AbortController().signal);
    } catch (error) {
      this.#settle(reasonAndFix(error));
    }
    this.#blinking = undefined;
  }

  #settle(failure: string | undefined): void {
    if (this.#stop.signal.aborted || failure === this.#failure) return;
    this.#failure = failure;
    if (failure !== undefined) this.#io.log.error('light-failed', { reason: failure });
    else this.#io.log.info('light-recovered');
  }

  #leftMs(): number {
    return this.#untilMs - this.#io.clock.monotonicMs();
  }

  /**
   * Returns the command line of gpioset, which holds the line until it is killed. It differs between libgpiod 1 and 2.
   */
  #program(value: 0 | 1): Program {
    const { chip, line, activeLow } = this.#options;
    const low = activeLow ? ['--active-low'] : [];
    return this.#gpioset(
      this.#major === 1
        ? ['--mode=signal', ...low, chip, `${line}=${value}`]
        : [...low, `--chip=${chip}`, `${line}=${value}`],
    );
  }

  #gpioset(args: readonly string[]): Program {
    const { command } = this.#options;
    const advice = 'see `gpioinfo` for chips and lines, and that this user is in the group gpio';
    return { command, args, debianPackage: 'gpiod', advice };
  }

  async #majorVersion(): Promise<number> {
    const { clock } = this.#io;
    const text = String(await runProgram(this.#gpioset(['--version']), clock, VERSION_TIMEOUT_MS, this.#stop.signal));
    const major = Number(/\bv(\d+)\./.exec(text)?.[1]);
    if (major !== 1 && major !== 2) {
      const [line = ''] = text.split('\n');
      throw voiceFault(`gpioset has an unknown version: ${line}`, 'install libgpiod 1 or 2');
    }
    return major;
  }
}
