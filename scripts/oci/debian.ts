/**
 * This script makes the part of a container image below the program. This machine's apt fetches Debian's packages for
 * any architecture, and the script unpacks them without root.
 */
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { type Architecture, runTool } from '../tools.ts';
import type { TarEntry } from './tar.ts';

/**
 * Libraries of Node and of the native parts, a shell for the launcher, and the files by which a scanner recognizes a
 * Debian.
 */
const WANTED = ['base-files', 'dash', 'libc6', 'libgcc-s1', 'libstdc++6'];
/** This package has the licence of the two libraries of GCC. */
const GCC_BASE = /\bgcc-\d+-base\b/;

/** These folders at the root are links into /usr. Packages of older releases name the links. */
const MERGED = ['bin', 'lib', 'lib64', 'sbin'];
/** The image keeps these files of base-files, which has a whole tree of folders. */
const KEPT_OF_BASE = /^(etc\/(os-release|debian_version)|usr\/lib\/os-release|usr\/share\/(common-licenses|doc)\/.*)$/;
/** The image does without documentation, translations, and tables of character sets that Node does not use. */
const DROPPED =
  /^(usr\/share\/(man|locale|lintian|info|menu|bug|gdb|gcc|debianutils)|usr\/lib\/[^/]+\/gconv|DEBIAN)(\/|$)/;
const DROPPED_DOC = /^usr\/share\/doc\/.*\/(?!copyright$)[^/]+$/;

/** A Debian package in the image. */
export interface DebianPackage {
  name: string;
  version: string;
  architecture: string;
}

/**
 * Fetches the packages for `architecture` into `folder`, as the apt of this machine offers and verifies them. It uses
 * those that are there, without a network. Returns their files.
 * @throws if apt is missing, fails, or knows no Debian servers.
 */
export async function fetchPackages(architecture: Architecture, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  if ((await debsOf(folder)).length === 0) {
    const work = await mkdtemp(join(tmpdir(), 'paybox-apt-'));
    try {
      const apt = await privateApt(architecture, work);
      runTool('apt-get', [...apt, '-qq', 'update']);
      const gcc = GCC_BASE.exec(runTool('apt-cache', [...apt, 'show', 'libgcc-s1']))?.[0];
      if (gcc === undefined)
        throw new Error('libgcc-s1 depends on no gcc-…-base, of which the image needs the licence');
      runTool('sh', ['-c', 'cd "$0" && exec apt-get "$@"', folder, ...apt, '-qq', 'download', ...WANTED, gcc]);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
  return await debsOf(folder);
}

async function debsOf(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.deb')).sort();
  return names.map((name) => join(folder, name));
}

/**
 * Returns the options of an apt with lists of its own for another architecture. The servers and keys are those of this
 * machine.
 */
async function privateApt(architecture: Architecture, work: string): Promise<string[]> {
  const format = ['--format', 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)|$(LABEL)', 'Identifier: Packages'];
  const lines = runTool('apt-get', ['indextargets', ...format]).split('\n');
  const debian = lines.filter((line) => /\|Debian(-Security)?$/.test(line)).map((line) => line.replace(/\|.*/, ''));
  if (debian.length === 0) throw new Error("this machine's apt knows no Debian servers: run apt-get update first");
  await mkdir(join(work, 'lists/partial'), { recursive: true });
  await mkdir(join(work, 'cache/archives/partial'), { recursive: true });
  await writeFile(join(work, 'status'), '');
  await writeFile(join(work, 'sources.list'), `${[...new Set(debian)].sort().join('\n')}\n`);
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Dir::State': work,
    'Dir::State::lists': join(work, 'lists'),
    'Dir::State::status': join(work, 'status'),
    'Dir::Cache': join(work, 'cache'),
    'Dir::Etc::sourcelist': join(work, 'sources.list'),
    'Dir::Etc::sourceparts': '-',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/**
 * Unpacks packages into `work`, an empty folder. Returns the files that the image needs, and descriptions of the
 * packages.
 */
export async function unpackPackages(
  files: readonly string[],
  work: string,
): Promise<{ entries: TarEntry[]; packages: DebianPackage[] }> {
  const entries = new Map<string, TarEntry>();
  const packages: DebianPackage[] = [];
  for (const file of files) {
    const folder = join(work, basename(file));
    runTool('dpkg-deb', ['--extract', file, folder]);
    const field = (name: string) => runTool('dpkg-deb', ['--field', file, name]);
    const name = field('Package');
    packages.push({ name, version: field('Version'), architecture: field('Architecture') });
    for (const entry of await entriesOf(folder)) {
      const path = mergedPath(entry.path);
      if (DROPPED.test(path) || DROPPED_DOC.test(path)) continue;
      if (name === 'base-files' && !KEPT_OF_BASE.test(path)) continue;
      entries.set(path, { ...entry, path });
    }
    // Image scanners look here for the packages of an image without dpkg.
    const status = `var/lib/dpkg/status.d/${name}`;
    entries.set(status, { path: status, mode: 0o644, content: Buffer.from(`${runTool('dpkg-deb', ['-f', file])}\n`) });
  }
  return { entries: [...entries.values()], packages };
}

/**
 * Returns the files and links below a folder, as they go into an archive. The archive makes folders from their paths.
 */
export async function entriesOf(folder: string, prefix = ''): Promise<TarEntry[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const made = found.map(async (one): Promise<TarEntry | undefined> => {
    const file = join(one.parentPath, one.name);
    const path = join(prefix, relative(folder, file));
    if (one.isSymbolicLink()) return { path, mode: 0o777, target: await readlink(file) };
    if (!one.isFile()) return undefined;
    const { mode } = await lstat(file);
    return { path, mode: mode & 0o777, content: await readFile(file) };
  });
  return (await Promise.all(made)).filter((entry) => entry !== undefined);
}

function mergedPath(path: string): string {
  const first = path.split('/')[0] ?? '';
  return MERGED.includes(first) && dirname(path) !== '.' ? `usr/${path}` : path;
}
