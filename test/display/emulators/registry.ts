import { Cd5220Emulator } from '../../../src/bench/panels/cd5220.ts';
import { DqrEmulator } from '../../../src/bench/panels/dqr.ts';
import { DwinEmulator } from '../../../src/bench/panels/dwin.ts';
import { EscposEmulator } from '../../../src/bench/panels/escpos.ts';
import { MatrixOrbitalEmulator } from '../../../src/bench/panels/matrix-orbital.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { OpenLcdEmulator } from '../../../src/bench/panels/openlcd.ts';
import { UsbBitmapEmulator } from '../../../src/bench/panels/usb-bitmap.ts';
import { type Hardware, onPty } from './hardware.ts';

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
