import type { Clock } from '../../../lib/clock.ts';
import { PayboxError } from '../../../lib/errors.ts';
import type { Display, DisplayIo, SerialLine } from '../../display/contract.ts';
import type { ConfiguredDisplay } from '../screen/screen.ts';
import type { BoxFaults, Stream } from './box-faults.ts';

/** A slow display takes this much longer for each picture. */
const SLOW_MS = 1_000;
/** A noisy line changes this share of the bytes. */
const NOISE_SHARE = 0.01;
const BYTE_VALUES = 256;

/** Returns a display that is unplugged, slow or on a noisy line while the faults of these names are active. */
export function faultyDisplay(display: ConfiguredDisplay, faults: BoxFaults, clock: Clock): ConfiguredDisplay {
  return {
    driver: display.driver,
    open: async (io, signal) => {
      throwIfGone(faults);
      const openSerial: DisplayIo['openSerial'] = async (settings, opening) =>
        noisyLine(await io.openSerial(settings, opening), faults);
      return faultyOpened(await display.open({ ...io, openSerial }, signal), io, faults, clock);
    },
  };
}

function faultyOpened(display: Display, io: DisplayIo, faults: BoxFaults, clock: Clock): Display {
  // The agent notices a loss only when it draws.
  const forget = faults.onOrder((fault) => {
    if (fault === 'display-gone') io.requestDraw();
  });
  const { refresh } = display;
  return {
    get surface() {
      return display.surface;
    },
    refresh: refresh && {
      everyMs: refresh.everyMs,
      run: async (frame, scene) => {
        throwIfGone(faults);
        await refresh.run(frame, scene);
      },
    },
    draw: async (frame, scene) => {
      throwIfGone(faults);
      if (faults.happens('display-slow')) await clock.sleep(SLOW_MS);
      await display.draw(frame, scene);
    },
    close: () => {
      forget();
      return display.close();
    },
  };
}

function throwIfGone(faults: BoxFaults): void {
  if (faults.happens('display-gone') === undefined) return;
  throw new PayboxError('DISPLAY_FAULT', 'the display is unplugged by the fault display-gone', {
    severity: 'retryable',
    fix: 'wait for the end of the fault, or end it with DELETE /_mock/faults',
  });
}

function noisyLine(line: SerialLine, faults: BoxFaults): SerialLine {
  const listeners = new Set<(bytes: Uint8Array) => void>();
  // One listener serves all, because each must get the same bytes.
  line.onData((bytes) => {
    const heard = noisy(bytes, faults, 'back');
    for (const listener of listeners) listener(heard);
  });
  return {
    write: (bytes, timeoutMs) => line.write(noisy(bytes, faults, 'away'), timeoutMs),
    onData: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    lost: line.lost,
    close: () => line.close(),
  };
}

function noisy(bytes: Uint8Array, faults: BoxFaults, stream: Stream): Uint8Array {
  return bytes.map((byte) => {
    const random = faults.happens('serial-noise', { share: NOISE_SHARE, stream });
    if (random === undefined) return byte;
    return (byte + 1 + Math.floor(random.fraction() * (BYTE_VALUES - 1))) % BYTE_VALUES;
  });
}
