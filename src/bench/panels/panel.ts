import { DISPLAY_DRIVERS } from '../../device/display/registry.ts';
import type { Panel } from '../engine/target.ts';
import { Cd5220Emulator } from './cd5220.ts';
import { DqrEmulator } from './dqr.ts';
import { DwinEmulator } from './dwin.ts';
import type { PanelEmulator, PanelName } from './emulator.ts';
import { SwitchablePanel } from './emulator.ts';
import { EscposEmulator } from './escpos.ts';
import { MatrixOrbitalEmulator } from './matrix-orbital.ts';
import { NextionEmulator } from './nextion.ts';
import { OpenLcdEmulator } from './openlcd.ts';
import { openPty } from './pty.ts';
import { UsbBitmapEmulator } from './usb-bitmap.ts';

type MakeEmulator = (send: (bytes: Uint8Array) => void) => PanelEmulator;

/** The emulator of each panel. */
export const EMULATORS: Readonly<Record<PanelName, MakeEmulator>> = {
  nextion: (send) => new NextionEmulator(send),
  dwin: (send) => new DwinEmulator(send),
  dqr: () => new DqrEmulator(),
  'usb-bitmap': () => new UsbBitmapEmulator(),
  escpos: (send) => new EscposEmulator(send),
  cd5220: () => new Cd5220Emulator(),
  'matrix-orbital': () => new MatrixOrbitalEmulator(),
  openlcd: () => new OpenLcdEmulator(),
};

/** Opens a panel on a plugged cable. Throws MissingPeerError without socat. */
export async function openPanel(name: PanelName): Promise<Panel> {
  const start = () => new SwitchablePanel(EMULATORS[name], (bytes) => pty.send(bytes));
  let emulator: SwitchablePanel<PanelEmulator>;
  let isPlugged = true;
  const pty = await openPty((bytes) => emulator.receive(bytes));
  emulator = start();
  const unplug = async () => {
    isPlugged = false;
    emulator.cutPower();
    await pty.unplug();
  };
  const plug = async () => {
    if (isPlugged) return;
    emulator = start();
    await pty.plug();
    isPlugged = true;
    emulator.restart();
  };
  return {
    name,
    display: { ...(DISPLAY_DRIVERS.get(name)?.example as object), driver: name, path: pty.path },
    drawsQr: emulator.drawsQr,
    picture: () => emulator.picture(),
    texts: () => emulator.shownTexts(),
    violations: () => emulator.violations,
    unplug,
    plug,
    cutPower: async () => {
      if (emulator.isPoweredByPort) await unplug();
      else emulator.cutPower();
    },
    restorePower: async () => {
      if (emulator.isPoweredByPort) await plug();
      else emulator.restart();
    },
    close: () => pty.close(),
  };
}
