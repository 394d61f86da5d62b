import { readQr } from '../decode.ts';
import { encodePicture } from '../picture-file.ts';
import type { Probe } from '../probes.ts';
import type { Panel } from './panel.ts';

/** Looks at the pictures that emulated panels draw of what came over their wires. */
export function panelProbe(panels: ReadonlyMap<string, Panel>): Probe {
  return {
    name: 'panel',
    capture: async ({ terminalCode }) => {
      const panel = panels.get(terminalCode);
      if (panel === undefined) return undefined;
      const picture = panel.picture();
      const seen = { file: await encodePicture(picture), picture };
      if (panel.drawsQr) return { ...seen, qr: await readQr(picture) };
      return { ...seen, qr: undefined, noQrReason: `${panel.name} shows no QR: expect text or state of this box` };
    },
  };
}
