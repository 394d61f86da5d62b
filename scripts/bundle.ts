/** `npm run bundle` makes one folder with all that a box or a gateway runs, for a device without npm. */
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { systemCodeOf } from '../src/lib/errors.ts';
import { argumentsOf } from './arguments.ts';
import { ASSETS, bundleCode, NATIVE_PACKAGES } from './bundle-code.ts';
import { papersOf } from './bundle-notices.ts';
import { installPackages, keepAssets, keepPackages, TARGETS, type Target } from './bundle-packages.ts';

const ROOT = resolve(import.meta.dirname, '..');

const USAGE = `usage: npm run bundle -- --target linux-arm64|linux-x64 --out DIR

Builds the program folder of a device: all code in a few files, the native parts that the target needs, and its own Node.
The device needs glibc and libstdc++, and neither npm nor Node. A folder that holds a bundle is replaced.

  DIR/bin/paybox      the command, from any folder and through symbolic links
  DIR/node            Node for the target
  DIR/lib             code, pages, tables and scenarios
  DIR/node_modules    native parts and fonts
  DIR/device-config   sample configurations
  DIR/VERSION, DIR/LICENSES.txt, DIR/sbom.json

The packages come from the registry by npm, as package-lock.json pins them. LED panels (HUB75) need the Debian package
paybox-led-matrix beside it: its licence keeps it apart.
`;

/**
 * These lines of shell become the program in the folder $home. With a small young generation a box at rest gives back
 * some 25 MB of memory that it would never give up otherwise. The programs that serve many boxes need their time more.
 * One malloc arena for all threads saves another 3 MB.
 */
export const LAUNCH = `export MALLOC_ARENA_MAX="\${MALLOC_ARENA_MAX:-1}"
case "$1" in
  gateway | fleet | bench | up) exec "$home/node" "$home/lib/cli.js" "$@" ;;
  *) exec "$home/node" --max-semi-space-size=2 "$home/lib/cli.js" "$@" ;;
esac
`;

/** Follows symbolic links, so that a link in /usr/bin works. */
const LAUNCHER = `#!/bin/sh
home=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
${LAUNCH}`;

/**
 * Builds the bundle for `target` into the folder `out`, which appears only when complete.
 * @throws if `out` contains something else, or npm or the bundler fails.
 */
export async function buildBundle(target: Target, out: string, progress: (text: string) => void): Promise<void> {
  await assertReplaceable(out);
  const stage = await mkdtemp(join(tmpdir(), 'paybox-bundle-'));
  const partial = `${out}.partial`;
  try {
    await rm(partial, { recursive: true, force: true });
    progress(`packages for ${target}`);
    await installPackages(ROOT, stage, target);
    await cp(join(ROOT, 'src'), join(stage, 'src'), { recursive: true });
    await cp(join(ROOT, 'scripts/bundle-entry.ts'), join(stage, 'scripts/bundle-entry.ts'));
    progress('code');
    const bundled = await bundleCode(stage, join(partial, 'lib'));
    progress('native parts, fonts and Node');
    const node = `node_modules/node-${target}`;
    const kept = await keepPackages(stage, partial, NATIVE_PACKAGES, target);
    await keepAssets(stage, join(partial, 'lib'));
    await cp(join(stage, node, 'bin/node'), join(partial, 'node'));
    await cp(join(ROOT, 'device-config'), join(partial, 'device-config'), { recursive: true });
    // The bench's code looks for them here, relative to its place in `src`.
    await cp(join(ROOT, 'test/scenarios'), join(partial, 'lib/test/scenarios'), {
      recursive: true,
      // Python and pytest create these files beside the examples.
      filter: (path) => !/\/(__pycache__|\.pytest_cache)$/.test(path),
    });
    progress('licences and bill of materials');
    const assets = Object.keys(ASSETS).map((name) => `node_modules/${name}`);
    const { sbom, licenses } = await papersOf(stage, [...new Set([node, ...bundled, ...kept, ...assets])].sort());
    const { name, version } = sbom.metadata.component;
    // This file marks the code as ES modules, and contains its name and version.
    const manifest = { name, version, private: true, type: 'module' };
    await mkdir(join(partial, 'bin'));
    await writeFile(join(partial, 'bin/paybox'), LAUNCHER);
    await writeFile(join(partial, 'lib/package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    await writeFile(join(partial, 'LICENSES.txt'), `${await readFile(join(ROOT, 'LICENSE'), 'utf8')}\n${licenses}`);
    await writeFile(join(partial, 'sbom.json'), `${JSON.stringify(sbom, null, 2)}\n`);
    await writeFile(join(partial, 'VERSION'), `${version}\n`);
    await settleModes(partial);
    await rm(out, { recursive: true, force: true });
    await rename(partial, out);
  } finally {
    await rm(stage, { recursive: true, force: true });
    await rm(partial, { recursive: true, force: true });
  }
}

async function assertReplaceable(out: string): Promise<void> {
  const names = await readdir(out).catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return [] as string[];
    throw error;
  });
  if (names.length === 0 || ['VERSION', 'node', 'lib'].every((name) => names.includes(name))) return;
  throw new Error(`${out} holds something that is not a bundle; name another folder`);
}

/** Makes file modes independent of the umask. */
async function settleModes(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isProgram = path === join(folder, 'node') || path === join(folder, 'bin/paybox');
    await chmod(path, entry.isDirectory() || isProgram ? 0o755 : 0o644);
  }
}

function isTarget(name: string | undefined): name is Target {
  return name !== undefined && Object.hasOwn(TARGETS, name);
}

if (import.meta.main) {
  const options = { target: { type: 'string' }, out: { type: 'string' }, help: { type: 'boolean' } } as const;
  const { values } = argumentsOf(USAGE, { options });
  if (values.help === true) {
    process.stdout.write(USAGE);
  } else if (!isTarget(values.target) || values.out === undefined) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
  } else {
    const out = resolve(values.out);
    await buildBundle(values.target, out, (text) => process.stderr.write(`… ${text}\n`));
    process.stdout.write(`${out}\n`);
  }
}
