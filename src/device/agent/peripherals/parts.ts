import type { Clock } from '../../../lib/clock.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Ends } from '../../../lib/shutdown.ts';
import type { Payment } from '../../box/entry.ts';
import type { PageAnnouncement } from '../../voice/contract.ts';
import { type Light, type LightOptions, openLight } from '../../voice/light.ts';
import type { VoiceOptions } from '../../voice/registry.ts';
import { openVoice, type Voice } from '../../voice/voice.ts';
import type { Key, PageSound } from '../contract.ts';
import { type ButtonOptions, type Buttons, watchButtons } from './buttons.ts';

/** The options of attached devices. An undefined one is not attached. */
export interface PeripheralOptions {
  voice?: VoiceOptions | undefined;
  light?: LightOptions | undefined;
  buttons?: ButtonOptions | undefined;
}

export interface PeripheralsIo {
  clock: Clock;
  log: Logger;
  press(key: Key): void;
  /** Returns the calendar time; undefined while the box has received none. */
  toldMs(): number | undefined;
  /** Reports that the page has a new sound to play. */
  changed(): void;
}

/** Owns voice, light and buttons of a box. None of them can block the box or make it fail. */
export class Peripherals {
  readonly #voice: Voice | undefined;
  readonly #light: Light | undefined;
  readonly #buttons: Buttons | undefined;
  #sound: PageSound | undefined;

  constructor({ voice, light, buttons }: PeripheralOptions, io: PeripheralsIo) {
    const onPage = (said: PageAnnouncement) => {
      this.#sound = { ...said, number: (this.#sound?.number ?? 0) + 1 };
      io.changed();
    };
    this.#voice = voice && openVoice(voice, { clock: io.clock, log: io.log, toldMs: io.toldMs, onPage });
    this.#light = light && openLight(light, io);
    this.#buttons = buttons && watchButtons(buttons, io, io.press);
  }

  announce(payments: readonly Payment[]): void {
    for (const payment of payments) this.#voice?.announce(payment);
    if (payments.length > 0) this.#light?.flash();
  }

  /** Repeats payments aloud. The light does not blink, because it is for new payments. */
  repeat(payments: readonly Payment[]): void {
    for (const payment of payments) this.#voice?.repeat(payment);
  }

  /** Returns the last announcement for the page to play. */
  sound(): PageSound | undefined {
    return this.#sound;
  }

  status() {
    return {
      voice: this.#voice?.status() ?? null,
      light: this.#light?.status() ?? null,
      buttons: this.#buttons?.status() ?? null,
    };
  }

  /** Returns functions that end the attached devices. */
  ends(): Ends {
    const parts = { voice: this.#voice, light: this.#light, buttons: this.#buttons };
    return Object.fromEntries(
      Object.entries(parts).flatMap(([name, part]) => (part ? [[name, () => part.close()]] : [])),
    );
  }
}
