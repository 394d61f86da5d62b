import { type Hardware, onPty } from './hardware.ts';
import { NextionEmulator } from './nextion.ts';

/** The device of each driver that needs one, by the driver's name. */
export const HARDWARE: ReadonlyMap<string, () => Promise<Hardware>> = new Map<string, () => Promise<Hardware>>([
  ['nextion', () => onPty((send) => new NextionEmulator(send))],
]);
