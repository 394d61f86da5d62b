import type { Display, Frame, PanelSurface } from '../../display/contract.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Scene } from '../../scene.ts';

/** A square and a payload as common smart panels have them: every VietQR payload fits. */
const SURFACE: PanelSurface = { kind: 'panel', qr: { sidePixels: 400, charsMax: 512 }, accents: true };

/** What a box of the fleet has on its display: the frame as the panel was told, and the scene that it came from. */
export type OnScreen = (frame: Frame, scene: Scene) => void;

/**
 * What 300 bytes take at 115,200 baud. One that draws in no time could not tell a box that confirms a QR before it is on
 * the screen.
 */
const DRAW_MS = 26;

/** A smart panel in memory: it draws no pixels, so that hundreds of whole boxes have room in one process. */
export function fleetPanel(onScreen: OnScreen, clock: Clock): Display {
  return {
    surface: SURFACE,
    draw: async (frame, scene) => {
      await clock.sleep(DRAW_MS);
      onScreen(frame, scene);
    },
    close: async () => undefined,
  };
}
