import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import type { SerialLine } from '../../../src/device/display/contract.ts';
import { displayFault } from '../../../src/device/display/fault.ts';

/** Bytes on their way, as they come out. */
export type Garble = (bytes: Uint8Array) => Uint8Array;

export const clean: Garble = (bytes) => bytes;

/** The port while it is open. */
interface OpenPort {
  listeners: Set<(bytes: Uint8Array) => void>;
  lose(reason: string): void;
}

/** A cable without delay, and the panel at its end. Like a serial port, it is opened by one at a time. */
export class Cable<P extends PanelEmulator> {
  readonly panel: P;
  readonly #away: Garble;
  #isPlugged = true;
  /** A line that is lost or closed is no longer the open one, and can do nothing. */
  #port: OpenPort | undefined;
  readonly #written: Uint8Array[] = [];

  /** `away` changes what the panel is sent, `back` what it answers. */
  constructor(make: (send: (bytes: Uint8Array) => void) => P, { away = clean, back = clean } = {}) {
    this.#away = away;
    this.panel = make((bytes) => {
      const heard = back(bytes);
      queueMicrotask(() => {
        for (const listener of this.#port?.listeners ?? []) listener(heard);
      });
    });
  }

  async open(): Promise<SerialLine> {
    if (!this.#isPlugged) throw displayFault('no such port', 'plug the device in');
    if (this.#port !== undefined) throw displayFault('cannot lock port', 'another program has it open: stop that one');
    const { promise: lost, resolve: lose } = Promise.withResolvers<string>();
    const port: OpenPort = { listeners: new Set(), lose };
    this.#port = port;
    return {
      lost,
      write: async (bytes) => {
        if (this.#port !== port) throw displayFault(`the port is lost: ${await lost}`, 'plug the device in again');
        this.#written.push(bytes);
        this.panel.receive(this.#away(bytes));
      },
      onData: (listener) => {
        port.listeners.add(listener);
        return () => port.listeners.delete(listener);
      },
      close: async () => {
        if (this.#port === port) this.#end('closed');
      },
    };
  }

  /** What the port was given since the last call. */
  written(): Buffer {
    return Buffer.concat(this.#written.splice(0));
  }

  unplug(): void {
    this.#isPlugged = false;
    this.#end('unplugged');
  }

  plug(): void {
    this.#isPlugged = true;
  }

  #end(reason: string): void {
    this.#port?.lose(reason);
    this.#port = undefined;
  }
}
