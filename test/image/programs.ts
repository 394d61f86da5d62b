import { existsSync } from 'node:fs';
import { findProgram, type Program } from '../support/programs.ts';

/** What builds the image and starts it, beyond npm. */
export const IMAGE_PROGRAMS = {
  mmdebstrap: { command: 'mmdebstrap', debianPackage: 'mmdebstrap' },
  qemu: { command: 'qemu-system-aarch64', debianPackage: 'qemu-system-arm' },
  mtools: { command: 'mcopy', debianPackage: 'mtools' },
} as const satisfies Record<string, Program>;

/** Why no image can be built here, for the name of a skipped test; empty where one can. */
export function lacking(): string {
  if (!existsSync('/etc/debian_version')) return ' (needs Debian)';
  if (process.getuid?.() !== 0) return ' (needs root: sudo npm run test:image)';
  const missing = Object.values(IMAGE_PROGRAMS).filter((program) => findProgram(program) === undefined);
  const packages = missing.map((program) => program.debianPackage).join(' ');
  return packages === '' ? '' : ` (sudo apt-get install ${packages})`;
}
