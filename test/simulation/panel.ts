import type { Display, DisplayIo, Frame } from '../../src/device/display/contract.ts';
import { layoutPanel } from '../../src/device/display/layout/panel.ts';
import type { Renderer } from '../../src/device/display/render.ts';
import type { Scene } from '../../src/device/scene.ts';
import { PayboxError } from '../../src/lib/errors.ts';
import type { Chance } from './chance.ts';
import { never, type Run } from './machine.ts';

const SURFACE = { kind: 'panel', qr: { sidePixels: 480, charsMax: 512 }, accents: true } as const;
/** A code of 45 modules, whatever the payload: how it is drawn is not what is simulated. */
const FIT = { version: 7, ecc: 'L', modules: 45, modulePixels: 9, quietModules: 4, polarity: 'dark on light' } as const;

/** What people see at one place, told with every change. */
export type Sight = (scene: Scene | undefined) => void;

/** The glass of a box: it goes dark when it fails or loses its power, and shows a picture once it has it whole. */
export class Panel {
  readonly #chance: Chance;
  readonly #see: Sight;
  /** While this is set, it neither opens nor draws. */
  failing = false;
  /** It went dark, and no attempt to draw has told its box of that. */
  isDarkUnnoticed = false;
  drawMs: readonly [number, number] = [0.5, 20];

  constructor(chance: Chance, see: Sight) {
    this.#chance = chance;
    this.#see = see;
  }

  fail(): void {
    this.failing = true;
    this.isDarkUnnoticed = true;
    this.#see(undefined);
  }

  powerOff(): void {
    this.#see(undefined);
  }

  async open(run: Run, _io: DisplayIo): Promise<Display> {
    await run.sleep(this.#chance.timeMs(0.5, 30));
    this.#check(run);
    let closed = false;
    return {
      surface: SURFACE,
      draw: async (frame, scene) => {
        if (!run.alive) return never();
        if (closed) throw new Error('drawn on a closed display');
        await run.sleep(this.#chance.timeMs(...this.drawMs));
        if (!run.alive) return never();
        this.#check(run);
        assertSame(frame, scene);
        this.#see(scene);
      },
      close: async () => {
        closed = true;
        if (run.alive) this.#see(undefined);
      },
    };
  }

  #check(run: Run): void {
    this.isDarkUnnoticed = false;
    if (this.failing && run.alive) throw new PayboxError('DISPLAY_FAULT', 'no answer', { severity: 'retryable' });
  }
}

/** Lays out as production does, but for the size of the code. */
export async function panelRenderer(): Promise<Renderer> {
  const fit = { ok: true, qr: { ...FIT, side: 477, dark: new Uint8Array() } } as const;
  return {
    checkQr: () => ({ ok: true, ...FIT }),
    render: (scene) => layoutPanel(scene, scene.kind === 'payment' ? fit : undefined, SURFACE),
  };
}

function assertSame(frame: Frame, scene: Scene): void {
  const told = scene.kind === 'payment' ? scene.qrCode : null;
  if (frame.kind !== 'panel' || frame.screen !== scene.kind || frame.qrCode !== told) {
    throw new Error(`the frame of another scene than ${scene.kind}`);
  }
}
