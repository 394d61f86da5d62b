import { onTestFinished } from 'vitest';
import { readQr } from '../../src/bench/engine/pictures.ts';
import { type PanelEmulator, SwitchablePanel } from '../../src/bench/panels/emulator.ts';
import { Screen, type ScreenOutcome } from '../../src/device/agent/screen/screen.ts';
import type { DisplayIo } from '../../src/device/display/contract.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import type { Scene } from '../../src/device/scene.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { eventually } from '../support/net.ts';
import { Cable } from './emulators/cable.ts';
import { testIo } from './io.ts';
import { openDriver } from './opened.ts';

const STEP_MS = 500;
/** While files are read and written, which takes real time. */
const FIRST_STEP_MS = 25;
/** Between two looks at the panel: decoding takes long. */
const LOOK_MS = 500;
const CLOSE_WITHIN_MS = 3_000;

/** A panel with a switch for its power, shown on by the agent's screen, in a time of its own. */
export interface OnSwitch<E extends PanelEmulator> {
  panel: SwitchablePanel<E>;
  screen: Screen;
  outcomes: readonly ScreenOutcome[];
  /** Bytes that the panel's port was given since the last call. */
  written(): number;
  /** Takes the power away; the port goes too where it comes through it. */
  cutPower(): void;
  restorePower(): void;
  /** Lets time pass. */
  pass(ms: number): Promise<void>;
  /** Lets time pass until the condition holds; fails with `what` after so long. */
  within(ms: number, what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
  /** What is read in a picture of the panel. */
  qr(): Promise<string | undefined>;
}

/** The driver's example with `options`, open on `make`'s panel, which has shown `scene`. */
export async function onSwitch<E extends PanelEmulator>(
  name: string,
  make: (send: (bytes: Uint8Array) => void) => E,
  scene: Scene,
  { cacheDir, options = {} }: { cacheDir: string; options?: object },
): Promise<OnSwitch<E>> {
  const clock = new VirtualClock();
  const cable = new Cable((send) => new SwitchablePanel(make, send));
  const { panel } = cable;
  const io: DisplayIo = { ...testIo(cacheDir), clock, openSerial: () => cable.open() };
  const outcomes: ScreenOutcome[] = [];
  const screen = new Screen(
    { driver: name, open: (world) => openDriver(name, world, options) },
    { clock, log: io.log, io, openRenderer: onceOpened(), onOutcome: (outcome) => outcomes.push(outcome) },
  );
  const pass = async (ms: number) => {
    for (let leftMs = ms; leftMs > 0; leftMs -= STEP_MS) await clock.advance(Math.min(STEP_MS, leftMs));
  };
  const within: OnSwitch<E>['within'] = async (ms, what, holds) => {
    for (let leftMs = ms; !(await holds()); leftMs -= LOOK_MS) {
      if (leftMs <= 0) throw new Error(`not within ${ms} ms: ${what}; ${JSON.stringify(screen.status())}`);
      await pass(LOOK_MS);
    }
  };
  onTestFinished(async () => {
    let isClosed = false;
    void screen.close('leave', CLOSE_WITHIN_MS).then(() => {
      isClosed = true;
    });
    await within(2 * CLOSE_WITHIN_MS, 'closed', () => isClosed);
  });
  void screen.start();
  screen.present(scene);
  await eventually('something is shown', async () => {
    await pass(FIRST_STEP_MS);
    return outcomes.length > 0;
  });
  if (outcomes[0]?.ok !== true) throw new Error(`not shown: ${screen.status().reason}`);
  return {
    panel,
    screen,
    outcomes,
    written: () => cable.written().length,
    cutPower: () => {
      panel.cutPower();
      if (panel.isPoweredByPort) cable.unplug();
    },
    restorePower: () => {
      cable.plug();
      panel.restart();
    },
    pass,
    within,
    qr: () => readQr(panel.picture()),
  };
}

/** Opens a renderer once for each surface, because its files take real time, of which there is none between two steps. */
function onceOpened(): typeof openRenderer {
  const opened = new Map<string, ReturnType<typeof openRenderer>>();
  return (surface, source) => {
    const key = JSON.stringify(surface);
    const renderer = opened.get(key) ?? openRenderer(surface, source);
    opened.set(key, renderer);
    return renderer;
  };
}
