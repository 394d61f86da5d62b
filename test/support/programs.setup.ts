import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { findProgram, PROGRAMS, type Program } from './programs.ts';

export default function setup(): void {
  installPrograms(Object.values(PROGRAMS));
}

/** Installs missing programs for tests when run as root on Debian. Elsewhere tests without their program are skipped by name. */
export function installPrograms(programs: readonly Program[]): void {
  const missing = programs.filter((program) => findProgram(program) === undefined);
  const canInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (missing.length === 0 || !canInstall) return;
  const packages = missing.map((program) => program.debianPackage);
  process.stdout.write(`installing for the tests: ${packages.join(' ')}\n`);
  const apt = (...args: string[]) =>
    spawnSync('apt-get', ['-q', '-y', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      encoding: 'utf8',
      timeout: 600_000,
    });
  apt('update');
  const installed = apt('install', '--no-install-recommends', ...packages);
  if (installed.status !== 0) process.stdout.write(`${installed.stdout}${installed.stderr}\n`);
}
