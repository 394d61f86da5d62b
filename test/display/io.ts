import type { DisplayIo } from '../../src/device/display/contract.ts';
import { openSerial } from '../../src/device/display/io/serial.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { quietLog } from '../support/kept-log.ts';
import type { TerminalEmulator } from './terminal-emulator.ts';

/** What a driver gets in a test: no device but the emulated terminal, if any. */
export function testIo(cacheDir: string, terminal?: TerminalEmulator, requestDraw: () => void = () => {}): DisplayIo {
  return {
    clock: systemClock,
    log: quietLog(),
    // The emulator has what the driver uses of a terminal stream, and throws on the rest.
    terminal: terminal as unknown as NodeJS.WriteStream | undefined,
    terminalInput: undefined,
    openSerial: (settings, signal) => openSerial(settings, signal, systemClock),
    cacheDir,
    requestDraw,
  };
}
