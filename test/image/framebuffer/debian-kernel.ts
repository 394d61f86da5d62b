import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';

const KERNEL_PACKAGE = 'linux-image-amd64';
const DOWNLOAD_TIMEOUT_MS = 300_000;

/** A kernel with its modules, as its Debian package has them. */
export interface Kernel {
  image: string;
  /** Their paths with those of the modules that they need, in the order to load them. */
  modules(...names: string[]): string[];
}

/**
 * Debian's kernel, downloaded once into the user's cache and unpacked there: nothing is installed, so that the machine
 * keeps booting as it did. Otherwise the reason why there is none.
 */
export function debianKernel(): Kernel | { missing: string } {
  if (process.arch !== 'x64') return { missing: 'needs an x86-64 machine' };
  const depends = spawnSync('apt-cache', ['depends', KERNEL_PACKAGE], { encoding: 'utf8' }).stdout ?? '';
  const [, version] = /Depends: linux-image-(\S+)/.exec(depends) ?? [];
  if (version === undefined) return { missing: `no ${KERNEL_PACKAGE} in the package lists: sudo apt-get update` };
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'paybox-tests');
  const folder = join(cache, `linux-image-${version}`);
  if (!existsSync(folder) && !download(`linux-image-${version}`, cache, folder)) {
    return { missing: `apt-get download linux-image-${version} failed` };
  }
  const modulesDir = join(folder, 'lib/modules', version);
  return {
    image: join(folder, `boot/vmlinuz-${version}`),
    modules: (...names) => loadOrder(modulesDir, names).map((path) => join(modulesDir, path)),
  };
}

function download(name: string, cache: string, folder: string): boolean {
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, 'download-'));
  try {
    const run = (command: string, ...args: string[]) =>
      spawnSync(command, args, { cwd: work, timeout: DOWNLOAD_TIMEOUT_MS }).status === 0;
    if (!run('apt-get', '-q', 'download', name)) return false;
    const [file] = readdirSync(work).filter((entry) => entry.endsWith('.deb'));
    const unpacked = join(work, 'unpacked');
    if (file === undefined || !run('dpkg-deb', '-x', file, unpacked)) return false;
    const version = name.replace('linux-image-', '');
    if (!run('busybox', 'depmod', '-b', unpacked, version)) return false;
    renameSync(unpacked, folder);
    return true;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function loadOrder(modulesDir: string, names: readonly string[]): string[] {
  const needs = new Map<string, string[]>();
  for (const line of readFileSync(join(modulesDir, 'modules.dep'), 'utf8').trim().split('\n')) {
    const [path = '', needed = ''] = line.split(':');
    needs.set(path, needed.split(' ').filter(Boolean));
  }
  const order = new Set<string>();
  const load = (path: string) => {
    for (const needed of needs.get(path) ?? []) load(needed);
    order.add(path);
  };
  for (const name of names) {
    const path = [...needs.keys()].find((it) => basename(it).replace(/\.ko(\.xz)?$/, '') === name);
    if (path === undefined) throw new Error(`the kernel has no module ${name}`);
    load(path);
  }
  return [...order];
}
