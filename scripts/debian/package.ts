/** This script makes the packages of agent and gateway: the program folder, and the units that start it. */
import { cp, readFile, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { copyright, debianVersion, pack, packed, put, ROOT } from './deb.ts';
import { manualOfCommand } from './manual.ts';

const SYSTEMD = join(ROOT, 'systemd');

/** The contents of a package beside the program folder and the common files. */
interface PackageKind {
  name: string;
  /** The priority of its /usr/bin/paybox over that of the other package. */
  priority: number;
  /** Units that the installation enables. */
  enabledUnits: readonly string[];
  /** A file or folder of the sources → path and mode in the package. */
  files: readonly (readonly [from: string, to: string, mode?: number])[];
  /** The man pages in `scripts/debian/man`. */
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

export interface BuildOptions {
  kind: PackageKind;
  /** The architecture by Debian's name: arm64 or amd64. */
  architecture: string;
  /** A program folder made by `scripts/bundle.ts`. */
  program: string;
  /** The path for a new work folder. */
  work: string;
  /** An existing folder for the package. */
  out: string;
  quick: boolean;
}

/**
 * Builds `NAME_VERSION_ARCH.deb` from a program folder. Returns its path. Throws if Debian's tools are missing or fail.
 */
export async function buildPackage({ kind, architecture, program, work, out, quick }: BuildOptions): Promise<string> {
  const { name } = kind;
  const version = debianVersion((await readFile(join(program, 'VERSION'), 'utf8')).trim());
  await cp(program, join(work, 'usr/lib', name), { recursive: true });
  await place(kind, work, version);
  const words = { UNITS: kind.enabledUnits.join(' '), PRIORITY: String(kind.priority) };
  return await pack({ name, version, architecture, work, out, quick, words });
}

async function place(kind: PackageKind, work: string, version: string): Promise<void> {
  const own = join(import.meta.dirname, kind.name);
  const add = (to: string, content: string | Uint8Array, mode?: number) => put(join(work, to), content, mode);
  for (const [from, to, mode] of kind.files) await add(to, await readFile(resolve(own, from)), mode);
  await add(`usr/lib/sysusers.d/${kind.name}.conf`, await readFile(join(own, 'sysusers.conf')));
  await add(`usr/lib/tmpfiles.d/${kind.name}.conf`, await readFile(join(own, 'tmpfiles.conf')));
  for (const page of kind.manuals) {
    const text = await readFile(join(import.meta.dirname, 'man', page), 'utf8');
    await add(`usr/share/man/man${page.at(-1)}/${page}.gz`, packed(text.replaceAll('@VERSION@', version)));
  }
  // Both packages have this page, so it is in the program folder. update-alternatives links to it.
  await add(`usr/lib/${kind.name}/paybox.1.gz`, packed(manualOfCommand(ROOT, version)));
  const doc = `usr/share/doc/${kind.name}`;
  await add(`${doc}/copyright`, await copyright(join(import.meta.dirname, 'copyright'), kind.name));
  await symlink(`../../../lib/${kind.name}/device-config`, join(work, doc, 'examples'));
}
