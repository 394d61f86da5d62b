import { createHash, randomUUID } from 'node:crypto';
import { Cd5220Emulator } from '../../../src/bench/panels/cd5220.ts';
import { DqrEmulator } from '../../../src/bench/panels/dqr.ts';
import { DwinEmulator } from '../../../src/bench/panels/dwin.ts';
import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import { EscposEmulator } from '../../../src/bench/panels/escpos.ts';
import { MatrixOrbitalEmulator } from '../../../src/bench/panels/matrix-orbital.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { OpenLcdEmulator } from '../../../src/bench/panels/openlcd.ts';
import type { Display, DisplayIo, SerialLine } from '../../../src/device/display/contract.ts';
import { askTerminal } from '../../../src/device/display/drivers/terminal-graphics.ts';
import { DISPLAY_DRIVERS } from '../../../src/device/display/registry.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { PayboxError } from '../../../src/lib/errors.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { shownQr } from '../../display/emulators/hardware.ts';
import type { Seeded } from '../../support/seeded.ts';
import { mutated } from '../bytes.ts';
import { ACCOUNT, QR_CODE } from '../corpus.ts';
import { listeningLog } from '../logs.ts';
import { Broken, hold, holdNamed, type Stage, type Target, type World } from '../target.ts';
import { settled } from '../virtual.ts';

type Make = (send: (bytes: Uint8Array) => void) => PanelEmulator;

const HEAD = { online: true, amount: 50_000, content: 'DH001', holder: ACCOUNT } as const;
/** Never the same, because printers remember what they have printed. */
const payment = (): Scene => ({ kind: 'payment', pushId: randomUUID(), qrCode: QR_CODE, secondsLeft: 60, ...HEAD });
const paid = (): Scene => ({ kind: 'paid', transactionId: randomUUID(), ...HEAD });

/** What panels say, and what their answers look like. */
const ANSWERS = [
  '01ffffff',
  '1affffff',
  '03ffffff',
  '24ffffff',
  '000000ffffff88ffffff',
  '65000100ffffff',
  '5aa503824f4b',
]
  .concat([
    '5aa5068300814f0001',
    '5aa506834f00015042',
    '5aa506834f00010000',
    '5aa5ff83',
    '5aa5',
    '12',
    '72',
    '16',
    'ffff',
    '',
  ])
  .map((hex) => Buffer.from(`0300${hex}`, 'hex'));

/** The first two bytes of an input say when the panel speaks, and how; the others are what it says. */
const WRITES = 32;

/**
 * A cable to an emulated panel. At one of the driver's writes, the bytes of the input come in place of the panel's own
 * answer, before it, or after it, in one or two pieces.
 */
function cable(make: Make, input: Buffer) {
  const [at = 0, how = 0] = input;
  const said = input.subarray(2);
  let listeners: ((bytes: Uint8Array) => void)[] = [];
  let writes = 0;
  let mute = false;
  const hear = (bytes: Uint8Array) => {
    for (const listener of listeners) listener(bytes);
  };
  const speak = () => {
    const half = how & 4 ? Math.floor(said.length / 2) : said.length;
    hear(said.subarray(0, half));
    if (half < said.length) hear(said.subarray(half));
  };
  const emulator = make((bytes) => {
    if (!mute) hear(bytes);
  });
  const line: SerialLine = {
    lost: new Promise(() => {}),
    onData: (listener) => {
      listeners.push(listener);
      return () => {
        listeners = listeners.filter((it) => it !== listener);
      };
    },
    write: async (bytes) => {
      const isNow = writes === at % WRITES;
      writes += 1;
      if (isNow && how % 3 === 1) speak();
      mute = isNow && how % 3 === 0;
      emulator.receive(bytes);
      mute = false;
      if (isNow && how % 3 !== 1) speak();
    },
    close: async () => {
      listeners = [];
    },
  };
  return { line, emulator, speak, listeners: () => listeners.length };
}

/** A driver whose panel says anything: it draws what it should or fails by name, and never shows another QR. */
function panel(name: string, make: Make, change: object = {}) {
  return async (world: World): Promise<Stage> => {
    const driver = DISPLAY_DRIVERS.get(name);
    if (driver === undefined) throw new Error(`no driver ${name}`);
    const cacheDir = await world.folder();
    const configured = driver.configure({ ...(driver.example as object), ...change });
    const signal = new AbortController().signal;
    const shownOn = rememberingReader();
    return {
      feed: async (input) => {
        const clock = new VirtualClock();
        const { line, emulator, speak, listeners } = cable(make, input);
        const { log } = listeningLog(clock);
        const io: DisplayIo = {
          ...{ clock, log, terminal: undefined, terminalInput: undefined, cacheDir },
          openSerial: async () => line,
          requestDraw: () => undefined,
        };
        const opened = await named(clock, configured.open(io, signal));
        if (opened === undefined) return closedWell(listeners(), true);
        const drew = await drawAll(clock, opened, () => shownOn(emulator), speak);
        await settled(clock, opened.close());
        return closedWell(listeners(), !drew);
      },
    };
  };
}

function closedWell(listeners: number, failed: boolean): boolean {
  hold(listeners === 0, () => `${listeners} listeners are left on the line`);
  return !failed;
}

/** What a phone reads from a screen. Each picture is read once: reading takes longer than everything else, and most are alike. */
function rememberingReader(): (emulator: PanelEmulator) => string | undefined {
  const known = new Map<string, string | undefined>();
  return (emulator) => {
    const picture = emulator.code();
    if (picture === undefined) return undefined;
    const key = `${picture.width} ${createHash('sha1').update(picture.data).digest('hex')}`;
    if (!known.has(key)) known.set(key, shownQr(emulator));
    return known.get(key);
  };
}

async function drawAll(clock: VirtualClock, display: Display, onScreen: () => string | undefined, speak: () => void) {
  const renderer = await openRenderer(display.surface, { cacheDir: '' });
  const draw = (scene: Scene) =>
    named(
      clock,
      display.draw(renderer.render(scene), scene).then(() => true),
    );
  if (!(await draw(payment()))) return false;
  const drawsQr = display.surface.kind === 'panel';
  const shown = () => (drawsQr ? onScreen() : undefined);
  hold(!drawsQr || shown() === QR_CODE, () => `drawn, but the panel shows ${shown()}`);
  speak();
  if (!(await draw(paid()))) return false;
  hold(shown() === undefined, () => `the QR is still there beside what was paid: ${shown()}`);
  return true;
}

/** What comes of it; undefined after a failure that has a name. */
async function named<T>(clock: VirtualClock, work: Promise<T>): Promise<T | undefined> {
  const result = await settled(clock, work);
  if (result.status === 'fulfilled') return result.value;
  const { reason } = result;
  if (!(reason instanceof PayboxError)) throw new Broken(`failed without a name: ${reason}`);
  hold(reason.code === 'DISPLAY_FAULT' && reason.severity === 'retryable', () => `${reason.code}: ${reason.message}`);
  holdNamed(reason.message);
  return undefined;
}

function spoken(chance: Seeded): Buffer {
  const input = mutated(ANSWERS, chance);
  const head = Buffer.of(chance.below(WRITES), chance.below(8));
  return Buffer.concat([head, input.subarray(chance.chance(0.9) ? 2 : 0)]);
}

const REPLIES = [
  '\x1b_Gi=7261;OK\x1b\\\x1b[6;20;10t\x1b[?62;4c',
  '\x1b[?1;2c',
  '\x1b[6;999;0t',
  '\x1b_Gi=7261;ENOENT\x1b\\',
  'q',
].map((reply) => Buffer.from(reply));

/** A terminal that answers anything: it is known for what it is in time, and nobody listens on. */
const terminal: Target['open'] = () => ({
  feed: async (input) => {
    const clock = new VirtualClock();
    const listeners = new Set<(bytes: Uint8Array) => void>();
    const terminalInput = {
      onData: (listener: (bytes: Uint8Array) => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    const write = async () => {
      const half = Math.floor(input.length / 2);
      for (const part of [input.subarray(0, half), input.subarray(half)]) for (const hear of listeners) hear(part);
    };
    const result = await settled(clock, askTerminal(write, terminalInput, clock));
    if (result.status === 'rejected') throw new Broken(`failed: ${result.reason}`);
    const { graphics, cell } = result.value;
    hold(listeners.size === 0, () => 'somebody listens on');
    hold(
      cell === undefined || (cell.width > 0 && cell.height > 0 && cell.width < 1_000 && cell.height < 1_000),
      () => 'cell',
    );
    return graphics !== 'blocks';
  },
});

/** What only listens on the line, and is told something all the same. */
const LISTENERS: readonly (readonly [string, Make])[] = [
  ['dqr', () => new DqrEmulator()],
  ['cd5220', () => new Cd5220Emulator()],
  ['matrix-orbital', () => new MatrixOrbitalEmulator()],
  ['openlcd', () => new OpenLcdEmulator()],
];

export const PANELS: Target[] = [
  { name: 'nextion', inputs: 400, make: spoken, open: panel('nextion', (send) => new NextionEmulator(send)) },
  { name: 'dwin', inputs: 400, make: spoken, open: panel('dwin', (send) => new DwinEmulator(send)) },
  {
    name: 'escpos',
    inputs: 250,
    make: spoken,
    open: panel('escpos', (send) => new EscposEmulator(send), { charsMax: 400 }),
  },
  ...LISTENERS.map(([name, make]) => ({ name, inputs: 60, make: spoken, open: panel(name, make) })),
  { name: 'terminal replies', inputs: 1_000, make: (chance) => mutated(REPLIES, chance), open: terminal },
];
