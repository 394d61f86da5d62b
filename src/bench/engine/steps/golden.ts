import { lstat, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { reasonOf } from '../../../lib/errors.ts';
import { assertFile, readFileBytes } from '../../../lib/files.ts';
import { comparePictures, decodePicture, encodePicture } from '../pictures.ts';
import { boxOf, type StepContext } from './context.ts';

const TOLERANCE = 0.001;

/**
 * Returns why the screen differs from a golden picture, and adds the difference to the transcript. Writes the picture
 * instead if the caller wants that.
 */
export async function goldenProblem(
  { golden, tolerance = TOLERANCE }: { golden: string; tolerance: number | undefined },
  context: StepContext,
): Promise<string | undefined> {
  const { source, target, transcript, updateGoldens } = context;
  const box = boxOf(context);
  const seen = await target.probe.capture(box);
  if (seen === undefined) return `${box.terminalCode}: golden: there is no picture of the screen yet`;
  const path = await placeIn(source.folder, golden);
  if (path === undefined)
    return `golden: ${golden} is not a file in the folder of the scenario: name one there, and no link`;
  if (updateGoldens) {
    assertFile(path);
    await writeFile(path, await encodePicture(seen.picture));
    return undefined;
  }
  const file = await readFileBytes(path).catch((error: unknown) => reasonOf(error));
  if (typeof file === 'string') return `golden: ${golden} cannot be read (${file}); --update-goldens writes it`;
  const expected = await decodePicture(file).catch((error: unknown) => reasonOf(error));
  if (typeof expected === 'string') return `golden: ${golden}: ${expected}; --update-goldens writes it`;
  const { share, picture } = comparePictures(seen.picture, expected);
  if (share <= tolerance) return undefined;
  transcript.addScreen(`${box.terminalCode}, difference to ${golden}`, await encodePicture(picture), undefined);
  const size = `${seen.picture.width}x${seen.picture.height}`;
  const percent = (part: number) => `${(part * 100).toFixed(2)} %`;
  return `${box.terminalCode}: golden: ${percent(share)} of ${size} differ from ${golden}, at most ${percent(tolerance)} may`;
}

/**
 * Returns the path of a picture; undefined when its name or a link leads outside the folder, so that a stranger's
 * scenario cannot read other files. The caller notices a missing folder when it opens the path.
 */
async function placeIn(folder: string, golden: string): Promise<string | undefined> {
  const home = await realpath(folder);
  const named = resolve(home, golden);
  const path = join(await realpath(dirname(named)).catch(() => dirname(named)), basename(named));
  const within = relative(home, path);
  if (within === '' || within === '..' || within.startsWith(`..${sep}`) || isAbsolute(within)) return undefined;
  const isLink = await lstat(path).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
  return isLink ? undefined : path;
}
