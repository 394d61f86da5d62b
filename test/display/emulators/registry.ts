import { Cd5220Emulator } from './cd5220.ts';
import { DqrEmulator } from './dqr.ts';
import { DwinEmulator } from './dwin.ts';
import { EscposEmulator } from './escpos.ts';
import { type Hardware, onPty } from './hardware.ts';
import { MatrixOrbitalEmulator } from './matrix-orbital.ts';
import { NextionEmulator } from './nextion.ts';
import { OpenLcdEmulator } from './openlcd.ts';
import { UsbBitmapEmulator } from './usb-bitmap.ts';

/** The device of each driver that needs one, by the driver's name. */
export const HARDWARE: ReadonlyMap<string, () => Promise<Hardware>> = new Map<string, () => Promise<Hardware>>([
  ['nextion', () => onPty((send) => new NextionEmulator(send))],
  ['dwin', () => onPty((send) => new DwinEmulator(send))],
  ['dqr', () => onPty(() => new DqrEmulator())],
  ['cd5220', () => onPty(() => new Cd5220Emulator())],
  ['matrix-orbital', () => onPty(() => new MatrixOrbitalEmulator())],
  ['openlcd', () => onPty(() => new OpenLcdEmulator())],
  ['usb-bitmap', () => onPty(() => new UsbBitmapEmulator())],
  ['escpos', () => onPty((send) => new EscposEmulator(send))],
]);
