/**
 * This script makes the package paybox-led-matrix: the addon for LED panels, compiled for the target, with its sources.
 */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { LED_MATRIX_PACKAGE } from '../../src/device/display/drivers/led-matrix.options.ts';
import { papersOf } from '../bundle-notices.ts';
import { installPackages } from '../bundle-packages.ts';
import { type Architecture, runTool, TARGETS_OF_DEBIAN } from '../tools.ts';
import { copyright, debianVersion, pack, put, ROOT } from './deb.ts';

/** Debian's names for compilers, and the packages that have them. */
const TRIPLETS = { arm64: 'aarch64-linux-gnu', amd64: 'x86_64-linux-gnu' } as const;
const COMPILER_PACKAGES = { arm64: 'g++-aarch64-linux-gnu', amd64: 'g++' } as const;

const MODULE = 'node_modules/rpi-led-matrix';
const HEADERS_OF_CPP = 'node_modules/node-addon-api';
/** Node's interface for addons, which is the same in all its versions. */
const HEADERS_OF_NODE = ['node_api.h', 'node_api_types.h', 'js_native_api.h', 'js_native_api_types.h'];
const SOURCE = /\.(cc|c|h|ts)$|^COPYING$/;
const BUILT = 'build/Release/rpi-led-matrix.node';
/** The package's dependencies name a libstdc++ with these newest symbols: those of GCC 11. */
const GLIBCXX_PATCH_MAX = 29;

export interface LedMatrixOptions {
  architecture: Architecture;
  /** An existing folder for the package. */
  out: string;
  quick: boolean;
}

/**
 * Builds `paybox-led-matrix_VERSION_ARCH.deb`. Returns its path. The same sources and compiler give the same bytes.
 * @throws if npm, the compiler for the architecture or Debian's tools are missing or fail.
 */
export async function buildLedMatrix({ architecture, out, quick }: LedMatrixOptions): Promise<string> {
  const stage = await mkdtemp(join(tmpdir(), 'paybox-led-matrix-'));
  try {
    await installPackages(ROOT, stage, TARGETS_OF_DEBIAN[architecture]);
    const work = join(stage, 'work');
    const sources = join(work, 'usr/src', LED_MATRIX_PACKAGE);
    await copySources(stage, architecture, sources);
    const home = join(work, 'usr/lib', LED_MATRIX_PACKAGE);
    const addon = join(home, BUILT);
    await mkdir(join(addon, '..'), { recursive: true });
    compile(architecture, sources, addon);
    // Nobody starts it as a program.
    await chmod(addon, 0o644);
    await put(join(home, 'package.json'), await readFile(join(stage, MODULE, 'package.json')));
    await put(join(home, 'dist/index.js'), await readFile(join(stage, MODULE, 'dist/index.js')));
    const { sbom } = await papersOf(stage, [MODULE, HEADERS_OF_CPP]);
    await put(join(home, 'sbom.json'), `${JSON.stringify(sbom, null, 2)}\n`);
    const unit = 'usr/lib/systemd/system/paybox-agent.service.d/led-matrix.conf';
    await put(join(work, unit), await readFile(join(ROOT, 'systemd/led-matrix.conf')));
    const papers = await copyright(join(import.meta.dirname, LED_MATRIX_PACKAGE, 'copyright'), LED_MATRIX_PACKAGE);
    await put(join(work, 'usr/share/doc', LED_MATRIX_PACKAGE, 'copyright'), papers);
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    const words = { LIBC: libcOf(await readFile(addon, 'latin1')) };
    const debian = { name: LED_MATRIX_PACKAGE, version: debianVersion(version), architecture, words };
    return await pack({ ...debian, work, out, quick });
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

/**
 * Copies everything that the addon is compiled from, with the script that compiles it. The addon's licence requires us
 * to hand this out with it.
 */
async function copySources(stage: string, architecture: Architecture, to: string): Promise<void> {
  const copy = async (folder: string, name: string) => {
    for (const entry of await readdir(join(stage, folder), { withFileTypes: true })) {
      if (!entry.isFile() || !SOURCE.test(entry.name)) continue;
      await put(join(to, name, entry.name), await readFile(join(stage, folder, entry.name)));
    }
  };
  for (const part of ['src', 'vendor', 'vendor/lib', 'vendor/include']) {
    await copy(join(MODULE, part), join(basename(MODULE), part));
  }
  await copy(HEADERS_OF_CPP, basename(HEADERS_OF_CPP));
  await put(
    join(to, basename(HEADERS_OF_CPP), 'LICENSE.md'),
    await readFile(join(stage, HEADERS_OF_CPP, 'LICENSE.md')),
  );
  const node = join(stage, `node_modules/node-${TARGETS_OF_DEBIAN[architecture]}/include/node`);
  for (const name of HEADERS_OF_NODE) await put(join(to, 'node', name), await readFile(join(node, name)));
  await put(join(to, 'build'), await readFile(join(import.meta.dirname, LED_MATRIX_PACKAGE, 'build')), 0o755);
}

function compile(architecture: Architecture, sources: string, addon: string): void {
  const triplet = TRIPLETS[architecture];
  try {
    runTool(`${triplet}-g++`, ['--version']);
  } catch (cause) {
    throw new Error(`${triplet}-g++ is needed: sudo apt-get install ${COMPILER_PACKAGES[architecture]}`, { cause });
  }
  runTool(join(sources, 'build'), [triplet, addon]);
}

/**
 * Returns the oldest libc that has all symbols of a program.
 * @throws if it needs a newer libstdc++ than the package asks for.
 */
function libcOf(program: string): string {
  const newest = (pattern: RegExp) => Math.max(0, ...[...program.matchAll(pattern)].map(([, minor]) => Number(minor)));
  const patch = newest(/GLIBCXX_3\.4\.(\d+)/g);
  if (patch > GLIBCXX_PATCH_MAX) throw new Error(`the compiler is too new: the addon needs GLIBCXX_3.4.${patch}`);
  return `2.${newest(/GLIBC_2\.(\d+)/g)}`;
}
