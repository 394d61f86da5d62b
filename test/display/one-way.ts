import type { SerialLine } from '../../src/display/contract.ts';
import { openSerial } from '../../src/display/io/serial.ts';
import type { RegisteredDriver } from '../../src/display/registry.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/net.ts';
import type { Hardware } from './emulators/hardware.ts';
import { type Opened, openOn } from './opened.ts';

/**
 * As `openOn`, for a device that answers nothing: opening, `show` and closing settle once every byte has arrived at the
 * far end of the cable, which is later than the port's word that they have left.
 */
export async function openOneWay(
  driver: RegisteredDriver | undefined,
  hardware: Hardware,
  more: object = {},
  world: Parameters<typeof openOn>[3] = {},
): Promise<Opened & { sent(): number }> {
  let sent = 0;
  const counted = (line: SerialLine): SerialLine => ({
    lost: line.lost,
    onData: (listener) => line.onData(listener),
    close: () => line.close(),
    write: async (bytes, timeoutMs) => {
      sent += bytes.length;
      await line.write(bytes, timeoutMs);
    },
  });
  const arrived = async (work: () => Promise<unknown>) => {
    const before = { sent, received: hardware.received().length };
    await work();
    await eventually('the bytes arrive', () => hardware.received().length - before.received === sent - before.sent);
  };
  let opened: Opened | undefined;
  await arrived(async () => {
    opened = await openOn(driver, hardware, more, {
      ...world,
      openSerial: async (settings, signal) => counted(await openSerial(settings, signal, systemClock)),
    });
  });
  if (opened === undefined) throw new Error('not opened');
  const { display, show, asked } = opened;
  return {
    asked,
    sent: () => sent,
    show: (scene) => arrived(() => show(scene)),
    display: {
      get surface() {
        return display.surface;
      },
      draw: (frame, scene) => arrived(() => display.draw(frame, scene)),
      close: () => arrived(() => display.close()),
    },
  };
}
