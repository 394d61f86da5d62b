import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import type { SerialLine } from '../../../src/display/contract.ts';
import { displayFault } from '../../../src/display/fault.ts';

/** Bytes on their way, as they come out. */
export type Garble = (bytes: Uint8Array) => Uint8Array;

export const clean: Garble = (bytes) => bytes;

/** A cable without delay, and the panel at its end. */
export class Cable<P extends PanelEmulator> {
  readonly panel: P;
  readonly #away: Garble;
  readonly #listeners = new Set<(bytes: Uint8Array) => void>();
  #isPlugged = true;
  readonly #written: Uint8Array[] = [];
  #lose: (reason: string) => void = () => {};

  /** `away` changes what the panel is sent, `back` what it answers. */
  constructor(make: (send: (bytes: Uint8Array) => void) => P, { away = clean, back = clean } = {}) {
    this.#away = away;
    this.panel = make((bytes) => {
      const heard = back(bytes);
      queueMicrotask(() => {
        for (const listener of this.#listeners) listener(heard);
      });
    });
  }

  async open(): Promise<SerialLine> {
    if (!this.#isPlugged) throw displayFault('no such port', 'plug the device in');
    const { promise: lost, resolve } = Promise.withResolvers<string>();
    this.#lose = resolve;
    return {
      lost,
      write: async (bytes) => {
        if (!this.#isPlugged) throw displayFault('the port is lost', 'plug the device in');
        this.#written.push(bytes);
        this.panel.receive(this.#away(bytes));
      },
      onData: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      close: async () => {
        this.#listeners.clear();
        resolve('closed');
      },
    };
  }

  /** What the port was given since the last call. */
  written(): Buffer {
    return Buffer.concat(this.#written.splice(0));
  }

  unplug(): void {
    this.#isPlugged = false;
    this.#lose('unplugged');
  }

  plug(): void {
    this.#isPlugged = true;
  }
}
