import { createHash } from 'node:crypto';
import { chmod, cp, lstat, lutimes, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { runTool, sourceDateEpoch } from '../tools.ts';
import { manualOfCommand } from './manual.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const SYSTEMD = join(ROOT, 'systemd');
const MAINTAINER = 'paybox maintainers <maintainers@paybox.invalid>';

/** Contents of a package beside the program folder and the common files. */
interface PackageKind {
  name: string;
  /** Priority of its /usr/bin/paybox over that of the other package. */
  priority: number;
  /** Units that the installation enables. */
  enabledUnits: readonly string[];
  /** File or folder of the sources → path and mode in the package. */
  files: readonly (readonly [from: string, to: string, mode?: number])[];
  /** Man pages in `scripts/debian/man`. */
  manuals: readonly string[];
}

export const PACKAGES: readonly PackageKind[] = [
  {
    name: 'paybox-agent',
    priority: 60,
    enabledUnits: ['paybox-agent.service', 'paybox-update.service', 'paybox-update-recover.service'],
    files: [
      [join(SYSTEMD, 'paybox-agent.service'), 'usr/lib/systemd/system/paybox-agent.service'],
      [join(SYSTEMD, 'paybox-first-boot.service'), 'usr/lib/systemd/system/paybox-first-boot.service'],
      [join(SYSTEMD, 'paybox-update.service'), 'usr/lib/systemd/system/paybox-update.service'],
      [join(SYSTEMD, 'paybox-update-recover.service'), 'usr/lib/systemd/system/paybox-update-recover.service'],
      [join(SYSTEMD, 'paybox-console-off.service'), 'usr/lib/systemd/system/paybox-console-off.service'],
      [join(SYSTEMD, 'led-matrix.conf'), 'usr/share/doc/paybox-agent/systemd/led-matrix.conf'],
      [join(SYSTEMD, 'hardware-watchdog.conf'), 'usr/share/doc/paybox-agent/systemd/hardware-watchdog.conf'],
      [join(SYSTEMD, 'journal-limits.conf'), 'usr/share/doc/paybox-agent/systemd/journal-limits.conf'],
      ['udev.rules', 'usr/lib/udev/rules.d/60-paybox-agent.rules'],
      ['console-off', 'usr/lib/paybox-agent/console-off', 0o755],
      ['paybox-update', 'usr/sbin/paybox-update', 0o755],
      ['agent.example.yaml', 'etc/paybox/agent.example.yaml'],
    ],
    manuals: ['paybox-agent.8', 'paybox-update.8'],
  },
  {
    name: 'paybox-gateway',
    priority: 50,
    enabledUnits: ['paybox-gateway.service'],
    files: [
      [join(SYSTEMD, 'paybox-gateway.service'), 'usr/lib/systemd/system/paybox-gateway.service'],
      ['gateway.example.yaml', 'etc/paybox-gateway/gateway.example.yaml'],
    ],
    manuals: ['paybox-gateway.8'],
  },
];

const MAINTAINER_SCRIPTS = ['postinst', 'prerm', 'postrm'];
/** Slow and small, or fast, for tests. */
const COMPRESSION = { small: ['-Zxz', '-z6'], quick: ['-Zgzip', '-z1'] };

export interface BuildOptions {
  kind: PackageKind;
  /** Debian's name: arm64 or amd64. */
  architecture: string;
  /** A program folder made by `scripts/bundle.ts`. */
  program: string;
  /** Path for a new work folder. */
  work: string;
  /** An existing folder for the package. */
  out: string;
  quick: boolean;
}

/**
 * Builds `NAME_VERSION_ARCH.deb` from a program folder; returns its path. Throws if Debian's tools are missing or fail.
 */
export async function buildPackage({ kind, architecture, program, work, out, quick }: BuildOptions): Promise<string> {
  const version = debianVersion((await readFile(join(program, 'VERSION'), 'utf8')).trim());
  const epochSeconds = sourceDateEpoch();
  const home = `usr/lib/${kind.name}`;
  await cp(program, join(work, home), { recursive: true });
  await place(kind, work, version, epochSeconds);
  const installedKib = Math.ceil((await sizeBytes(work)) / 1024);
  const words = {
    VERSION: version,
    ARCHITECTURE: architecture,
    INSTALLED_SIZE: String(installedKib),
    UNITS: kind.enabledUnits.join(' '),
    PRIORITY: String(kind.priority),
  };
  await writeControl(kind, work, words);
  await settleTimes(work, epochSeconds);
  const file = join(out, `${kind.name}_${version}_${architecture}.deb`);
  const compression = quick ? COMPRESSION.quick : COMPRESSION.small;
  runTool('dpkg-deb', ['--root-owner-group', ...compression, '--build', work, file], {
    SOURCE_DATE_EPOCH: String(epochSeconds),
  });
  return file;
}

/** Makes a prerelease sort before its release, as in semantic versions. */
export function debianVersion(version: string): string {
  return version.replace('-', '~');
}

async function place(kind: PackageKind, work: string, version: string, epochSeconds: number): Promise<void> {
  const own = join(import.meta.dirname, kind.name);
  const put = async (to: string, content: string | Uint8Array, mode = 0o644) => {
    const path = join(work, to);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    await chmod(path, mode);
  };
  for (const [from, to, mode] of kind.files) await put(to, await readFile(resolve(own, from)), mode);
  await put(`usr/lib/sysusers.d/${kind.name}.conf`, await readFile(join(own, 'sysusers.conf')));
  await put(`usr/lib/tmpfiles.d/${kind.name}.conf`, await readFile(join(own, 'tmpfiles.conf')));
  await put(`usr/share/lintian/overrides/${kind.name}`, await readFile(join(own, 'lintian-overrides')));
  for (const page of kind.manuals) {
    const text = await readFile(join(import.meta.dirname, 'man', page), 'utf8');
    await put(`usr/share/man/man${page.at(-1)}/${page}.gz`, packed(text.replaceAll('@VERSION@', version)));
  }
  // Both packages have this page, so it is in the program folder; update-alternatives links to it.
  await put(`usr/lib/${kind.name}/paybox.1.gz`, packed(manualOfCommand(ROOT, version)));
  const doc = `usr/share/doc/${kind.name}`;
  await put(`${doc}/copyright`, await copyright(kind.name));
  await put(`${doc}/changelog.gz`, packed(changelog(kind.name, version, epochSeconds)));
  await symlink(`../../../lib/${kind.name}/device-config`, join(work, doc, 'examples'));
}

/** Contains no time, as the Debian policy requires. */
function packed(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}

async function copyright(name: string): Promise<string> {
  const [, holder = '', ...terms] = (await readFile(join(ROOT, 'LICENSE'), 'utf8')).trim().split('\n\n');
  const paragraphs = terms.map((text) => text.replaceAll(/^/gm, ' '));
  const words = {
    PACKAGE: name,
    COPYRIGHT: holder.replace(/^Copyright \(c\) /, ''),
    LICENSE: paragraphs.join('\n .\n'),
  };
  return filled(await readFile(join(import.meta.dirname, 'copyright'), 'utf8'), words);
}

function changelog(name: string, version: string, epochSeconds: number): string {
  const date = new Date(epochSeconds * 1000).toUTCString().replace('GMT', '+0000');
  return `${name} (${version}) unstable; urgency=medium

  * Version ${version}; the changes of each version are told in the README.

 -- ${MAINTAINER}  ${date}
`;
}

async function writeControl(kind: PackageKind, work: string, words: Record<string, string>): Promise<void> {
  const own = join(import.meta.dirname, kind.name);
  const debian = join(work, 'DEBIAN');
  const sums = await md5Sums(work);
  await mkdir(debian);
  await writeFile(join(debian, 'control'), filled(await readFile(join(own, 'control'), 'utf8'), words));
  await writeFile(join(debian, 'md5sums'), sums);
  const conffiles = kind.files.map(([, to]) => to).filter((to) => to.startsWith('etc/'));
  await writeFile(join(debian, 'conffiles'), conffiles.map((path) => `/${path}\n`).join(''));
  for (const name of MAINTAINER_SCRIPTS) {
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

async function md5Sums(work: string): Promise<string> {
  const lines: string[] = [];
  for (const file of await filesOf(work)) {
    const path = relative(work, file);
    // dpkg keeps the checksums of conffiles itself.
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
