import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PayboxError, reasonOf } from '../../../../lib/errors.ts';
import { readFileBytes, readFileNow } from '../../../../lib/files.ts';
import { CHARSET, FIGURES } from '../../charset.ts';
import type { Face, FaceSpec } from './faces.ts';
import { decodeSheets, SHEET_FILE_VERSION, type SheetRequest } from './sheet-file.ts';

const FONT_PACKAGE = '@expo-google-fonts/be-vietnam-pro';
/** `imports` of package.json maps this name: in a checkout to a package, in a build to a folder. */
const FONT_FOLDER = `#assets/${FONT_PACKAGE}`;
const FONT_FILES = {
  400: `${FONT_FOLDER}/400Regular/BeVietnamPro_400Regular.ttf`,
  600: `${FONT_FOLDER}/600SemiBold/BeVietnamPro_600SemiBold.ttf`,
  700: `${FONT_FOLDER}/700Bold/BeVietnamPro_700Bold.ttf`,
} as const satisfies Record<FaceSpec['weight'], string>;

const CHILD = fileURLToPath(new URL('./glyph-sheets.child.ts', import.meta.url));
/** This is about ten times as long as drawing takes on the slowest board. */
const DRAWING_TIMEOUT_MS = 60_000;
const CHILD_OUTPUT_BYTES_MAX = 1 << 20;

export interface FaceSource {
  /**
   * The folder of the drawn sheets, made if missing. PAYBOX_GLYPH_CACHE names another folder, for many boxes on one
   * machine.
   */
  cacheDir: string;
  signal?: AbortSignal;
}

/**
 * Returns the faces of `specs`, in their order. It reads them from the cache, and a child process draws missing or
 * damaged ones once. If the cache cannot be written, they are drawn for this run only. Throws a PayboxError
 * `FONT_MISSING` when they cannot be drawn.
 */
export async function openFaces(specs: readonly FaceSpec[], source: FaceSource): Promise<Face[]> {
  const fontFiles = locateFonts();
  const name = `glyphs-${cacheKey(specs)}.bin`;
  const cacheDir = process.env.PAYBOX_GLYPH_CACHE || source.cacheDir;
  const cached = await readSheets(join(cacheDir, name), specs);
  if (cached !== undefined) return cached;
  const drawIn = (folder: string) =>
    drawSheets({ specs: [...specs], fontFiles, target: join(folder, name) }, source.signal);
  try {
    await mkdir(cacheDir, { recursive: true });
    return await drawIn(cacheDir);
  } catch (error) {
    if (source.signal?.aborted) throw error;
    const folder = await mkdtemp(join(tmpdir(), 'paybox-letters-')).catch((reason: unknown) => {
      throw drawingFailed(`neither ${cacheDir} nor ${tmpdir()} can be written`, reason);
    });
    return await drawIn(folder).finally(() => rm(folder, { recursive: true, force: true }));
  }
}

async function readSheets(path: string, specs: readonly FaceSpec[]): Promise<Face[] | undefined> {
  try {
    return decodeSheets(await readFileBytes(path), specs);
  } catch {
    return undefined;
  }
}

async function drawSheets(request: SheetRequest, signal: AbortSignal | undefined): Promise<Face[]> {
  await runChild(JSON.stringify(request), signal);
  const drawn = await readSheets(request.target, request.specs);
  if (drawn === undefined) throw drawingFailed(`${request.target} is not readable after it was drawn`);
  return drawn;
}

function runChild(request: string, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const limits = { timeout: DRAWING_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: CHILD_OUTPUT_BYTES_MAX } as const;
    const child = execFile(
      process.execPath,
      [CHILD],
      { ...limits, ...(signal && { signal }) },
      (error, _output, complaint) => {
        if (error === null) resolve();
        else reject(drawingFailed(lastLineOf(complaint) ?? reasonOf(error), error));
      },
    );
    // A child that ends early breaks the pipe. The program reports its exit instead.
    child.stdin?.on('error', () => {});
    child.stdin?.end(request);
  });
}

function lastLineOf(complaint: string): string | undefined {
  return complaint.split('\n').find((line) => /\w*Error: /.test(line));
}

function locateFonts(): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(FONT_FILES).map(([weight, path]) => [weight, locate(path)]));
  } catch (error) {
    throw drawingFailed(`the package ${FONT_PACKAGE} is not installed`, error);
  }
}

function locate(path: string): string {
  return fileURLToPath(import.meta.resolve(path));
}

/**
 * Returns a key of everything that the sheets depend on. The path of a font file is enough, because its bytes do not
 * change within an installation.
 */
function cacheKey(specs: readonly FaceSpec[]): string {
  const manifest = readFileNow(locate(`${FONT_FOLDER}/package.json`)).toString();
  const { version } = JSON.parse(manifest) as { version: string };
  const parts = JSON.stringify([SHEET_FILE_VERSION, version, FONT_FILES, CHARSET, FIGURES, specs]);
  return createHash('sha256').update(parts).digest('hex').slice(0, 24);
}

function drawingFailed(what: string, cause?: unknown): PayboxError {
  return new PayboxError('FONT_MISSING', `the letters for the screen cannot be drawn: ${what}`, {
    severity: 'fatal',
    fix: 'run npm ci in the installation folder, and see that the cache folder is writable and its disk not full',
    cause,
  });
}
