import type { Payment } from '../../box/entry.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Ends } from '../../lib/shutdown.ts';
import type { VoiceOptions } from '../../voice/config.ts';
import { type Light, type LightOptions, openLight } from '../../voice/light.ts';
import { openVoice, type Voice } from '../../voice/voice.ts';
import type { BoxStatus, Key, PageSound } from '../contract.ts';
import { type ButtonOptions, type Buttons, watchButtons } from './buttons.ts';

/** What may be attached to a box beside its displays; what is absent is not there. */
export interface PeripheralOptions {
  voice?: VoiceOptions | undefined;
  light?: LightOptions | undefined;
  buttons?: ButtonOptions | undefined;
}

export interface PeripheralsIo {
  clock: Clock;
  log: Logger;
  press(key: Key): void;
  /** Called when there is something new for the page to play. */
  changed(): void;
}

/** Voice, light and buttons of a box. None of them can make the box wait or fail. */
export class Peripherals {
  readonly #voice: Voice | undefined;
  readonly #light: Light | undefined;
  readonly #buttons: Buttons | undefined;
  #sound: PageSound | undefined;

  constructor({ voice, light, buttons }: PeripheralOptions, io: PeripheralsIo) {
    const onPage = (said: Omit<PageSound, 'number'>) => {
      this.#sound = { ...said, number: (this.#sound?.number ?? 0) + 1 };
      io.changed();
    };
    this.#voice = voice && openVoice(voice, { clock: io.clock, log: io.log, onPage });
    this.#light = light && openLight(light, io);
    this.#buttons = buttons && watchButtons(buttons, io, io.press);
  }

  announce(payments: readonly Payment[]): void {
    for (const payment of payments) this.#voice?.announce(payment);
    if (payments.length > 0) this.#light?.flash();
  }

  repeat(payment: Payment | undefined): void {
    if (payment !== undefined) this.#voice?.repeat(payment);
  }

  /** What was last said through the page. */
  sound(): PageSound | undefined {
    return this.#sound;
  }

  status(): Pick<BoxStatus, 'voice' | 'light' | 'buttons'> {
    return {
      voice: this.#voice?.status() ?? null,
      light: this.#light?.status() ?? null,
      buttons: this.#buttons?.status() ?? null,
    };
  }

  /** What ends each part that there is. */
  ends(): Ends {
    const parts = { voice: this.#voice, light: this.#light, buttons: this.#buttons };
    return Object.fromEntries(
      Object.entries(parts).flatMap(([name, part]) => (part ? [[name, () => part.close()]] : [])),
    );
  }
}
