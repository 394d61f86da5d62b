import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { reasonOf } from '../../lib/errors.ts';
import { comparePictures } from '../picture.ts';
import { decodePicture, encodePicture } from '../picture-file.ts';
import { boxOf, type StepContext } from './context.ts';

const TOLERANCE = 0.001;

/** How the screen does not look like a golden picture; the difference goes into the evidence. Writes it when asked to. */
export async function goldenProblem(
  { golden, tolerance = TOLERANCE }: { golden: string; tolerance: number | undefined },
  { scenario, target, evidence, updateGoldens, ...context }: StepContext,
): Promise<string | undefined> {
  const box = boxOf({ scenario, target, evidence, updateGoldens, ...context });
  const seen = await target.probe.see(box);
  if (seen === undefined) return `${box.terminalCode}: golden: there is no picture of the screen yet`;
  const path = resolve(scenario.folder, golden);
  if (updateGoldens) {
    await writeFile(path, await encodePicture(seen.picture));
    return undefined;
  }
  const file = await readFile(path).catch((error: unknown) => reasonOf(error));
  if (typeof file === 'string') return `golden: ${golden} cannot be read (${file}); --update-goldens writes it`;
  const expected = await decodePicture(file).catch((error: unknown) => reasonOf(error));
  if (typeof expected === 'string') return `golden: ${golden}: ${expected}; --update-goldens writes it`;
  const { share, picture } = comparePictures(seen.picture, expected);
  if (share <= tolerance) return undefined;
  evidence.addScreen(`${box.terminalCode}, difference to ${golden}`, await encodePicture(picture), undefined);
  const size = `${seen.picture.width}x${seen.picture.height}`;
  const percent = (part: number) => `${(part * 100).toFixed(2)} %`;
  return `${box.terminalCode}: golden: ${percent(share)} of ${size} differ from ${golden}, at most ${percent(tolerance)} may`;
}
