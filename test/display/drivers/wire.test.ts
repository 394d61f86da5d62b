import { describe, it } from 'vitest';
import type { PanelEmulator, PanelName } from '../../../src/bench/panels/emulator.ts';
import { EscposEmulator } from '../../../src/bench/panels/escpos.ts';
import { MatrixOrbitalEmulator } from '../../../src/bench/panels/matrix-orbital.ts';
import { OpenLcdEmulator } from '../../../src/bench/panels/openlcd.ts';
import { EMULATORS } from '../../../src/bench/panels/panel.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { temporaryFolder } from '../../support/net.ts';
import type { Make } from '../emulators/hardware.ts';
import { cabled, scene } from '../opened.ts';
import { expectGolden } from '../pictures.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';

const AT_NOON: Clock = { ...systemClock, wallMs: () => Date.UTC(2026, 0, 2, 5) };
const BYTES_A_LINE = 32;

type Steps = Readonly<Record<string, Scene | 'open' | 'close'>>;

const idle = scene('idle');
const paid = scene('paid');
const repeat = scene('repeat');
const secondLater = { ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 };
const CHARACTERS: Steps = {
  opening: 'open',
  ...{ idle, payment: PAYMENT, 'a second later': secondLater, paid, repeat },
  closing: 'close',
};
const DQR_SCENES = ['starting', 'unlinked', 'idle', 'payment', 'payment, everything long', 'paid', 'repeat', 'expired'];

interface Wire {
  golden: string;
  name: PanelName;
  make?: Make<PanelEmulator>;
  options?: object;
  steps: Steps;
}

const WIRES: readonly Wire[] = [
  {
    golden: 'nextion',
    name: 'nextion',
    steps: {
      ...{ starting: scene('starting'), idle, payment: PAYMENT, 'a second later': secondLater },
      'another payment': { ...PAYMENT, qrCode: payloadOf(220), amount: 1_180_000, secondsLeft: 300 },
      ...{ paid, repeat, 'idle again': idle },
    },
  },
  {
    golden: 'dwin',
    name: 'dwin',
    options: { pages: { payment: 1, paid: 2 } },
    steps: {
      ...{ idle, payment: PAYMENT, 'a second later': secondLater },
      'another payment, of two frames': { ...PAYMENT, qrCode: payloadOf(280), amount: 1_180_000 },
      ...{ paid, repeat },
    },
  },
  {
    golden: 'dqr',
    name: 'dqr',
    steps: Object.fromEntries([...DQR_SCENES, 'too dense', 'cancelled', 'fault'].map((each) => [each, scene(each)])),
  },
  {
    golden: 'escpos-print',
    name: 'escpos',
    steps: {
      idle,
      payment: PAYMENT,
      'a second later': { ...PAYMENT, secondsLeft: 1 },
      paid,
      repeat,
      'idle again': idle,
    },
  },
  {
    golden: 'escpos-show',
    name: 'escpos',
    make: (send) => new EscposEmulator(send, 320),
    options: { mode: 'show', dots: 320 },
    steps: { idle, payment: PAYMENT, 'a second later': { ...PAYMENT, secondsLeft: 1 }, paid, repeat, closing: 'close' },
  },
  { golden: 'cd5220', name: 'cd5220', steps: CHARACTERS },
  { golden: 'matrix-orbital', name: 'matrix-orbital', steps: CHARACTERS },
  {
    golden: 'matrix-orbital-16x2',
    name: 'matrix-orbital',
    make: () => new MatrixOrbitalEmulator(16, 2),
    options: { columns: 16, rows: 2 },
    steps: CHARACTERS,
  },
  { golden: 'openlcd', name: 'openlcd', steps: CHARACTERS },
  {
    golden: 'openlcd-16x2',
    name: 'openlcd',
    make: () => new OpenLcdEmulator(16, 2),
    options: { size: '16x2' },
    steps: CHARACTERS,
  },
];

/** Bytes as lines of hex and, where they are ASCII, letters. */
function hexText(bytes: Uint8Array): string {
  const lines = Array.from({ length: Math.ceil(bytes.length / BYTES_A_LINE) }, (_, index) => {
    const part = Buffer.from(bytes.slice(index * BYTES_A_LINE, (index + 1) * BYTES_A_LINE));
    const letters = part.toString('latin1').replaceAll(/[^ -~]/g, '.');
    return `${part.toString('hex').padEnd(2 * BYTES_A_LINE)}  ${letters}\n`;
  });
  return lines.join('');
}

describe('the wire', () => {
  it.each(WIRES)('the wire of $golden has exactly these bytes', async ({ golden, name, make, options, steps }) => {
    const { cable, open } = cabled(name, make ?? EMULATORS[name]);
    const { show, display } = await open(options, { clock: AT_NOON, cacheDir: await temporaryFolder() });
    const opening = cable.written();
    let text = '';
    for (const [title, step] of Object.entries(steps)) {
      if (step === 'close') await display.close();
      else if (step !== 'open') await show(step);
      text += `# ${title}\n${hexText(step === 'open' ? opening : cable.written())}`;
    }
    await expectGolden(`${golden}-wire`, text);
  });
});
