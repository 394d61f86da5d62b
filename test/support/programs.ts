import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';

/** A program outside npm that a test needs, and its Debian package. */
export interface Program {
  command: string;
  debianPackage: string;
}

export const PROGRAMS = {
  mosquitto: { command: 'mosquitto', debianPackage: 'mosquitto' },
  rabbitmq: { command: 'rabbitmq-server', debianPackage: 'rabbitmq-server' },
  nats: { command: 'nats-server', debianPackage: 'nats-server' },
  haproxy: { command: 'haproxy', debianPackage: 'haproxy' },
  postgres: { command: 'postgres', debianPackage: 'postgresql' },
  zbar: { command: 'zbarimg', debianPackage: 'zbar-tools' },
  chromium: { command: 'chromium', debianPackage: 'chromium' },
  espeak: { command: 'espeak-ng', debianPackage: 'espeak-ng' },
  aplay: { command: 'aplay', debianPackage: 'alsa-utils' },
  systemdNotify: { command: 'systemd-notify', debianPackage: 'systemd' },
  python: { command: 'python3', debianPackage: 'python3' },
  pytest: { command: 'pytest-3', debianPackage: 'python3-pytest' },
  gcc: { command: 'gcc', debianPackage: 'gcc' },
  curl: { command: 'curl', debianPackage: 'curl' },
  perl: { command: 'perl', debianPackage: 'perl-base' },
  socat: { command: 'socat', debianPackage: 'socat' },
  ip: { command: 'ip', debianPackage: 'iproute2' },
  gpiomon: { command: 'gpiomon', debianPackage: 'gpiod' },
  openssl: { command: 'openssl', debianPackage: 'openssl' },
  xmllint: { command: 'xmllint', debianPackage: 'libxml2-utils' },
  systemd: { command: 'systemd-analyze', debianPackage: 'systemd' },
} as const satisfies Record<string, Program>;

/** Folders of daemons that may be missing in PATH; each PostgreSQL version has its own folder. */
const DAEMON_FOLDERS = ['/usr/sbin', '/sbin', '/usr/lib/postgresql/*/bin'];

/** Path of the program; `undefined` when it is not installed. */
export function findProgram(program: Program): string | undefined {
  const PATH = [process.env.PATH ?? '', ...globSync(DAEMON_FOLDERS)].join(':');
  const found = spawnSync('sh', ['-c', `command -v ${program.command}`], {
    env: { ...process.env, PATH },
    encoding: 'utf8',
  });
  return found.status === 0 ? found.stdout.trim() : undefined;
}

/** Whether to skip tests that need the program; `note` has the reason for the test's name. */
export function without(program: Program): { missing: boolean; note: string } {
  const missing = findProgram(program) === undefined;
  return {
    missing,
    note: missing ? ` (${program.command} is not installed: sudo apt-get install ${program.debianPackage})` : '',
  };
}
