/**
 * This script makes the packages of a bundle: npm installs them for the target, and the script keeps what a device
 * needs.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { ASSETS } from './bundle-code.ts';

/** The platforms of a bundle, with npm's names for them. */
export const TARGETS = {
  'linux-arm64': { os: 'linux', cpu: 'arm64', libc: 'glibc' },
  'linux-x64': { os: 'linux', cpu: 'x64', libc: 'glibc' },
} as const;
export type Target = keyof typeof TARGETS;

const STDOUT_MAX_BYTES = 16 * 1024 * 1024;

const Manifest = z.object({
  dependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});

/** Only compiling a package needs these. */
const BUILD_ONLY = ['node-addon-api'];
const KEPT_FILE = /\.(c?js|mjs|json|node|so(\.[\d.]+)?)$|^(licen[cs]e|copying|notice)/i;

/**
 * Installs the production packages of `root`'s lockfile for `target` into `<stage>/node_modules`: exact versions,
 * checked against the lockfile's integrity. It runs no scripts of packages.
 * @throws if npm fails.
 */
export async function installPackages(root: string, stage: string, target: Target): Promise<void> {
  for (const name of ['package.json', 'package-lock.json', '.npmrc']) await cp(join(root, name), join(stage, name));
  const { os, cpu, libc } = TARGETS[target];
  const platform = [`--os=${os}`, `--cpu=${cpu}`, `--libc=${libc}`];
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await promisify(execFile)('npm', ['ci', '--omit=dev', ...platform, ...quiet], {
    cwd: stage,
    maxBuffer: STDOUT_MAX_BYTES,
  });
}

/**
 * Copies packages and their run-time dependencies from `<stage>` to `<out>`, without sources, types, documentation and
 * native code of other platforms. Returns their folders, relative to `stage`, sorted.
 */
export async function keepPackages(
  stage: string,
  out: string,
  names: readonly string[],
  target: Target,
): Promise<string[]> {
  const folders = new Set<string>();
  const waiting = names.map((name) => ({ name, from: '' }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const folder = await resolvePackage(stage, next.from, next.name);
    if (folder === undefined || folders.has(folder)) continue;
    folders.add(folder);
    const manifest = Manifest.parse(JSON.parse(await readFile(join(stage, folder, 'package.json'), 'utf8')));
    const needed = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
    waiting.push(...needed.filter((name) => !BUILD_ONLY.includes(name)).map((name) => ({ name, from: folder })));
  }
  for (const folder of folders) await keepFiles(stage, out, folder, target);
  return [...folders].sort();
}

/** Copies single files of packages beside the code in `lib`, which finds them there. */
export async function keepAssets(stage: string, lib: string): Promise<void> {
  for (const [name, files] of Object.entries(ASSETS)) {
    const from = join(stage, 'node_modules', name);
    const to = join(lib, 'assets', name);
    for (const file of files) {
      await mkdir(dirname(join(to, file)), { recursive: true });
      await cp(join(from, file), join(to, file));
    }
    const { version, license } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8')) as Record<
      string,
      string
    >;
    await writeFile(join(to, 'package.json'), `${JSON.stringify({ name, version, license }, null, 2)}\n`);
  }
}

/**
 * Resolves a package like Node: the nearest `node_modules` with it; undefined for one that the target does not need.
 */
async function resolvePackage(stage: string, from: string, name: string): Promise<string | undefined> {
  for (let folder = from; ; folder = dirname(folder)) {
    const here = folder === '.' ? '' : folder;
    const path = join(here, 'node_modules', name);
    if (basename(here) !== 'node_modules' && (await isThere(join(stage, path, 'package.json')))) return path;
    if (here === '') return undefined;
  }
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function keepFiles(stage: string, out: string, folder: string, target: Target): Promise<void> {
  const prebuilds = `/prebuilds/`;
  const from = join(stage, folder);
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const inside = file.slice(from.length);
    if (!entry.isFile() || !KEPT_FILE.test(entry.name) || inside.includes('/node_modules/')) continue;
    const isOther = inside.startsWith(prebuilds) && !inside.startsWith(`${prebuilds}${target}/`);
    if (isOther || entry.name.includes('.musl.')) continue;
    await mkdir(dirname(join(out, folder, inside)), { recursive: true });
    await cp(file, join(out, folder, inside));
  }
}
