/** This is the common part of all Debian packages: control data, checksums, times, and the archive itself. */
import { createHash } from 'node:crypto';
import { chmod, lstat, lutimes, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { runTool, sourceDateEpoch } from '../tools.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
const MAINTAINER = 'paybox maintainers <maintainers@paybox.invalid>';
const MAINTAINER_SCRIPTS = ['postinst', 'prerm', 'postrm'];
/** The compression is slow and small, or fast for tests. */
const COMPRESSION = { small: ['-Zxz', '-z6'], quick: ['-Zgzip', '-z1'] };

export interface Deb {
  name: string;
  version: string;
  /** The architecture by Debian's name: arm64 or amd64. */
  architecture: string;
  /** The folder whose content is installed. The script makes its folder DEBIAN. */
  work: string;
  /** An existing folder for the package. */
  out: string;
  quick: boolean;
  /** The values for the templates of its control data, beside VERSION, ARCHITECTURE and INSTALLED_SIZE. */
  words?: Readonly<Record<string, string>>;
}

/**
 * Packs the folder `work` as `NAME_VERSION_ARCH.deb`, with the control data in the folder of its name beside this file.
 * Returns its path. An upgrade keeps a file below `etc` that a person changed.
 * @throws if Debian's tools are missing or fail.
 */
export async function pack({ name, version, architecture, work, out, quick, words = {} }: Deb): Promise<string> {
  const epochSeconds = sourceDateEpoch();
  const doc = join(work, 'usr/share/doc', name);
  await put(join(doc, 'changelog.gz'), packed(changelog(name, version, epochSeconds)));
  const own = join(import.meta.dirname, name);
  if ((await readdir(own)).includes('lintian-overrides')) {
    await put(join(work, 'usr/share/lintian/overrides', name), await readFile(join(own, 'lintian-overrides')));
  }
  const installedKib = Math.ceil((await sizeBytes(work)) / 1024);
  const all = { ...words, VERSION: version, ARCHITECTURE: architecture, INSTALLED_SIZE: String(installedKib) };
  await writeControl(own, work, all);
  await settleTimes(work, epochSeconds);
  const file = join(out, `${name}_${version}_${architecture}.deb`);
  const compression = quick ? COMPRESSION.quick : COMPRESSION.small;
  runTool('dpkg-deb', ['--root-owner-group', ...compression, '--build', work, file], {
    SOURCE_DATE_EPOCH: String(epochSeconds),
  });
  return file;
}

/** Returns the version in Debian's form, in which a prerelease sorts before its release, as in semantic versions. */
export function debianVersion(version: string): string {
  return version.replace('-', '~');
}

/** Writes a file of a package, with the folders above it. */
export async function put(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  await chmod(path, mode);
}

/** Compresses a text by gzip without a time, as the Debian policy requires. */
export function packed(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}

/** Returns the text of a copyright file, from a template that asks for COPYRIGHT and LICENSE of this project. */
export async function copyright(template: string, name: string): Promise<string> {
  const [, holder = '', ...terms] = (await readFile(join(ROOT, 'LICENSE'), 'utf8')).trim().split('\n\n');
  const paragraphs = terms.map((text) => text.replaceAll(/^/gm, ' '));
  const words = {
    PACKAGE: name,
    COPYRIGHT: holder.replace(/^Copyright \(c\) /, ''),
    LICENSE: paragraphs.join('\n .\n'),
  };
  return filled(await readFile(template, 'utf8'), words);
}

function changelog(name: string, version: string, epochSeconds: number): string {
  const date = new Date(epochSeconds * 1000).toUTCString().replace('GMT', '+0000');
  return `${name} (${version}) unstable; urgency=medium

  * Version ${version}; CHANGELOG.md has the changes of each version.

 -- ${MAINTAINER}  ${date}
`;
}

async function writeControl(own: string, work: string, words: Record<string, string>): Promise<void> {
  const debian = join(work, 'DEBIAN');
  const files = await filesOf(work);
  const sums = await md5Sums(work, files);
  await mkdir(debian);
  await writeFile(join(debian, 'control'), filled(await readFile(join(own, 'control'), 'utf8'), words));
  await writeFile(join(debian, 'md5sums'), sums);
  const conffiles = files.map((file) => relative(work, file)).filter((path) => path.startsWith('etc/'));
  if (conffiles.length > 0) await writeFile(join(debian, 'conffiles'), conffiles.map((path) => `/${path}\n`).join(''));
  const scripts = (await readdir(own)).filter((name) => MAINTAINER_SCRIPTS.includes(name));
  for (const name of scripts) {
    const path = join(debian, name);
    await writeFile(path, filled(await readFile(join(own, name), 'utf8'), words));
    await chmod(path, 0o755);
  }
}

function filled(template: string, words: Readonly<Record<string, string>>): string {
  return template.replaceAll(/@([A-Z_]+)@/g, (_, name: string) => {
    const word = words[name];
    if (word === undefined) throw new Error(`a template asks for @${name}@, which has no value`);
    return word;
  });
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

async function sizeBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const file of await filesOf(folder)) bytes += (await lstat(file)).size;
  return bytes;
}

async function md5Sums(work: string, files: readonly string[]): Promise<string> {
  const lines: string[] = [];
  for (const file of files) {
    const path = relative(work, file);
    // Debian's dpkg has the checksums of conffiles itself.
    if (path.startsWith('etc/')) continue;
    const sum = createHash('md5').update(await readFile(file));
    lines.push(`${sum.digest('hex')}  ${path}\n`);
  }
  return lines.join('');
}

async function settleTimes(work: string, epochSeconds: number): Promise<void> {
  const entries = await readdir(work, { recursive: true });
  for (const entry of entries) await lutimes(join(work, entry), epochSeconds, epochSeconds);
}
