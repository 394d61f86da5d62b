import { access, constants, mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { withDeadline } from '../../../lib/clock.ts';
import { reasonOf } from '../../../lib/errors.ts';
import { assertReplaceable, replaceInSharedFolder } from '../../../lib/files.ts';
import { mayHoldQr, type Scene } from '../../scene.ts';
import { type DisplayDriver, GOODBYE_TIMEOUT_MS } from '../contract.ts';
import { closedFault, displayFault } from '../fault.ts';
import { encodePng } from '../pixels/png.ts';
import { rotated } from '../pixels/rotate.ts';
import { expectPixels, rotation, sidePx } from './pixel-options.ts';

/** A countdown writes a file at most this often, in seconds. */
const COUNTDOWN_STEP_S = 10;

const options = z.strictObject({
  path: z.string().min(1),
  width: sidePx.default(800),
  height: sidePx.default(480),
  rotation,
});

/**
 * Writes a picture file that is always complete, by writing another file and renaming it. At the end black replaces a
 * QR. The driver does not delete the file, because viewers keep showing the last picture of a deleted one.
 */
export const png: DisplayDriver<z.infer<typeof options>> = {
  name: 'png',
  summary: 'a PNG file, replaced whenever the screen changes',
  options,
  example: { path: '/tmp/paybox-screen.png', width: 800, height: 480, rotation: 0 },
  open: async ({ path, width, height, rotation }, io) => {
    const { surface, turn } = rotated({ width, height }, rotation);
    const target = resolve(path);
    const fix = `see that the folder ${dirname(target)} may be written and its disk is not full, or set another path`;
    await tried(`${dirname(target)} cannot be written`, fix, async () => {
      await mkdir(dirname(target), { recursive: true });
      await access(dirname(target), constants.W_OK);
      assertReplaceable(target);
    });
    let open = true;
    let qrMayShow = false;
    /** The countdown in the file; undefined if there is none or it is unknown. */
    let written: string | undefined;
    const write = (file: Uint8Array) =>
      tried(`the screen picture ${target} cannot be written`, fix, () =>
        replaceInSharedFolder(target, file, { isPublic: true }),
      );
    return {
      surface,
      draw: async (frame, scene) => {
        if (!open) throw closedFault();
        const pixels = turn(expectPixels(frame, surface));
        const content = contentOf(scene);
        if (content !== undefined && content === written) return;
        const file = encodePng(pixels);
        qrMayShow ||= mayHoldQr(scene);
        written = undefined;
        await write(file);
        written = content;
        qrMayShow = mayHoldQr(scene);
      },
      close: async () => {
        if (!open) return;
        open = false;
        if (!qrMayShow) return;
        const data = new Uint8Array(width * height * 4);
        const blanked = write(encodePng({ kind: 'pixels', width, height, data })).catch(() => {});
        await withDeadline(io.clock, GOODBYE_TIMEOUT_MS, blanked);
      },
    };
  },
};

/**
 * Returns the content of a scene that counts down, with coarser seconds, because a new file each second would wear a
 * card out.
 */
function contentOf(scene: Scene): string | undefined {
  if (!('secondsLeft' in scene)) return undefined;
  return JSON.stringify({ ...scene, secondsLeft: Math.ceil(scene.secondsLeft / COUNTDOWN_STEP_S) });
}

async function tried(what: string, fix: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw displayFault(`${what}: ${reasonOf(error)}`, fix, error);
  }
}
