import { existsSync } from 'node:fs';
import { findProgram, PROGRAMS, type Program } from '../support/programs.ts';

const MMDEBSTRAP = { command: 'mmdebstrap', debianPackage: 'mmdebstrap' };

/** Builds the image and starts it. */
export const IMAGE_PROGRAMS = {
  mmdebstrap: MMDEBSTRAP,
  qemu: { command: 'qemu-system-aarch64', debianPackage: 'qemu-system-arm' },
  mtools: { command: 'mcopy', debianPackage: 'mtools' },
} as const satisfies Record<string, Program>;

/** Compiles the addon for LED panels, and what stands for their pins. */
export const ADDON_PROGRAMS = {
  arm64: { command: 'aarch64-linux-gnu-g++', debianPackage: 'g++-aarch64-linux-gnu' },
  amd64: { command: 'x86_64-linux-gnu-g++', debianPackage: 'g++' },
} as const satisfies Record<string, Program>;

/** Builds, checks and installs the Debian packages. */
export const PACKAGE_PROGRAMS = {
  mmdebstrap: MMDEBSTRAP,
  lintian: { command: 'lintian', debianPackage: 'lintian' },
  dpkg: { command: 'dpkg-deb', debianPackage: 'dpkg' },
  ip: PROGRAMS.ip,
} as const satisfies Record<string, Program>;

/** Runs the arm64 bundle on another processor. */
export const EMULATOR_PROGRAMS = {
  qemuUser: { command: 'qemu-aarch64-static', debianPackage: 'qemu-user-static' },
  arm64Libraries: { command: '/usr/aarch64-linux-gnu/lib/libstdc++.so.6', debianPackage: 'libstdc++6-arm64-cross' },
} as const satisfies Record<string, Program>;

/** Starts a Debian kernel with a framebuffer. */
export const FRAMEBUFFER_PROGRAMS = {
  qemu: { command: 'qemu-system-x86_64', debianPackage: 'qemu-system-x86' },
  busybox: { command: 'busybox', debianPackage: 'busybox-static' },
} as const satisfies Record<string, Program>;

/** Looks into a container image and runs it without an engine. */
export const OCI_PROGRAMS = {
  dpkg: { command: 'dpkg-deb', debianPackage: 'dpkg' },
  unshare: { command: 'unshare', debianPackage: 'util-linux' },
  skopeo: { command: 'skopeo', debianPackage: 'skopeo' },
} as const satisfies Record<string, Program>;

/** Signs a folder for apt and looks into it, and installs the wheel. */
export const RELEASE_PROGRAMS = {
  dpkg: { command: 'dpkg-deb', debianPackage: 'dpkg' },
  gpg: { command: 'gpg', debianPackage: 'gnupg' },
  gpgv: { command: 'gpgv', debianPackage: 'gpgv' },
  pip: { command: '/usr/bin/pip3', debianPackage: 'python3-pip' },
} as const satisfies Record<string, Program>;

/** Why no image can be built here, for the name of a skipped test; empty where one can. */
export function lacking(): string {
  return whyNot(Object.values(IMAGE_PROGRAMS));
}

/** Why a test that is root on Debian and needs these programs cannot run here; empty where it can. */
export function whyNot(programs: readonly Program[]): string {
  if (!existsSync('/etc/debian_version')) return ' (needs Debian)';
  if (process.getuid?.() !== 0) return ' (needs root: sudo npm run test:image)';
  const missing = programs.filter((program) => findProgram(program) === undefined);
  const packages = missing.map((program) => program.debianPackage).join(' ');
  return packages === '' ? '' : ` (sudo apt-get install ${packages})`;
}
