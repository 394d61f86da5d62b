import type { Display, Frame, PanelSurface } from '../../display/contract.ts';
import type { Scene } from '../../scene.ts';

/** A square and a payload as common smart panels have them: every VietQR payload fits. */
const SURFACE: PanelSurface = { kind: 'panel', qr: { sidePixels: 400, charsMax: 512 }, accents: true };

/** What a box of the fleet has on its display: the frame as the panel was told, and the scene that it came from. */
export type OnScreen = (frame: Frame, scene: Scene) => void;

/** A smart panel in memory: it draws no pixels, so that hundreds of whole boxes have room in one process. */
export function fleetPanel(onScreen: OnScreen): Display {
  return {
    surface: SURFACE,
    draw: async (frame, scene) => onScreen(frame, scene),
    close: async () => undefined,
  };
}
