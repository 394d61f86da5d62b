import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import type { Make } from '../emulators/hardware.ts';
import { scene } from '../opened.ts';

export const idle = scene('idle');

export interface Row {
  title: string;
  name: 'nextion' | 'dwin';
  make: Make<NextionEmulator | DwinEmulator>;
  options?: object;
  /** Bytes beside the payload from idle to payment, and those by which a drawing is checked that changes nothing. */
  bytesMax: number;
  checkBytes: number;
  /** What is told of two kinds of touches, or of one. */
  told: readonly object[];
}
export const event = 'panel-event-ignored';
export const DWIN = { name: 'dwin', checkBytes: 7, told: [{ event }] } as const;

export const ROWS: readonly Row[] = [
  {
    title: 'nextion',
    name: 'nextion',
    make: (send) => new NextionEmulator(send),
    bytesMax: 200,
    checkBytes: 0,
    told: ['0x65', '0x86'].map((code) => ({ event, code })),
  },
  { ...DWIN, title: 'dwin', make: (send) => new DwinEmulator(send), bytesMax: 200 },
  {
    ...DWIN,
    title: 'dwin with a page for payments',
    make: (send) => new DwinEmulator(send),
    options: { pages: { payment: 1 } },
    bytesMax: 220,
  },
  {
    ...DWIN,
    title: 'dwin with a CRC',
    make: (send) => new DwinEmulator(send, { ...PROJECT, crc: true }),
    options: { crc: true },
    bytesMax: 230,
    checkBytes: 9,
  },
];
