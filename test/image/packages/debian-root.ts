import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { eventually } from '../../support/net.ts';

const STAND_IN = join(import.meta.dirname, 'systemctl-stand-in');
const MAKE_TIMEOUT_MS = 240_000;
const RUN_TIMEOUT_MS = 120_000;
const ENVIRONMENT = {
  PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  DEBIAN_FRONTEND: 'noninteractive',
  LC_ALL: 'C.UTF-8',
};

/** What it started in its own process: adopts and buries the others, as the first process of a machine does. */
const FIRST_PROCESS = `
mount -t proc proc "$1/proc"
ip link set lo up
exec chroot "$1" /bin/bash -c 'trap : TERM; while :; do sleep 1000 & wait; done'`;

/** In the order in which systemd starts them at boot. */
const UNITS_AT_BOOT = [
  'paybox-update-recover.service',
  'paybox-gateway.service',
  'paybox-agent.service',
  'paybox-update.service',
];

export interface Result {
  status: number | null;
  output: string;
}

/** Makes a minimal Debian with systemd and udev, of the release that this machine runs, in `folder`. */
export function makeDebian(folder: string): void {
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  if (release === undefined) throw new Error('/etc/os-release names no Debian release');
  tool('mmdebstrap', '--quiet', '--variant=apt', '--include=systemd,udev,libstdc++6', release, folder);
  copyFileSync(STAND_IN, join(folder, 'usr/local/bin/systemctl'));
}

function tool(command: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', timeout: MAKE_TIMEOUT_MS });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
  return stdout;
}

/**
 * A machine made of a folder: a Debian with processes and a network of its own, in which systemctl is a stand-in. All
 * its processes end with the test.
 */
export class Machine {
  readonly folder: string;
  #first: ChildProcess | undefined;

  /** A copy of the Debian at `template`, in `folder`, which is not there yet. */
  constructor(template: string, folder: string) {
    tool('cp', '-a', '--reflink=auto', template, folder);
    this.folder = folder;
    onTestFinished(() => this.powerCut());
  }

  /** Starts the units that are installed and enabled. `wait` is false for a boot that is to be watched. */
  async boot({ wait = true } = {}): Promise<void> {
    rmSync(join(this.folder, 'run'), { recursive: true, force: true });
    mkdirSync(join(this.folder, 'run/systemd/system'), { recursive: true });
    const args = ['--mount', '--pid', '--net', '--fork', '--kill-child', 'bash', '-ec', FIRST_PROCESS, '-'];
    const first = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...args, this.folder], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    this.#first = first;
    // Before that a command would run outside, on this machine.
    await eventually('the machine runs', () => this.#root() === realpathSync(this.folder));
    const enabled = UNITS_AT_BOOT.filter(
      (unit) => globSync(`etc/systemd/system/*.wants/${unit}`, { cwd: this.folder }).length > 0,
    );
    const start = enabled.map((unit) => `systemctl start ${unit}`).join('; ');
    if (wait) this.run(start);
    else this.runAside(start);
  }

  /** Every process ends at once, with nothing said to any. */
  async powerCut(): Promise<void> {
    const first = this.#first;
    if (first === undefined || first.exitCode !== null || first.signalCode !== null) return;
    const gone = new Promise((resolve) => first.once('exit', resolve));
    first.kill('SIGKILL');
    await gone;
  }

  /** Runs a shell command inside, to its end. */
  run(command: string): Result {
    const { status, stdout, stderr } = spawnSync('nsenter', this.#inside(command), {
      env: ENVIRONMENT,
      encoding: 'utf8',
      timeout: RUN_TIMEOUT_MS,
    });
    return { status, output: `${stdout}${stderr}` };
  }

  /** As `run`; throws with the output and the logs of the units when the command fails. */
  must(command: string): string {
    const { status, output } = this.run(command);
    if (status === 0) return output;
    throw new Error(`${command}: exit code ${status}\n${output}\n${this.logs()}`);
  }

  /** Starts a shell command inside, and does not wait for it. */
  runAside(command: string): void {
    spawn('nsenter', this.#inside(command), { env: ENVIRONMENT, stdio: 'ignore' }).unref();
  }

  /** Puts a file of this machine into /root; its path there. */
  take(file: string): string {
    copyFileSync(file, join(this.folder, 'root', basename(file)));
    return `/root/${basename(file)}`;
  }

  has(path: string): boolean {
    return existsSync(join(this.folder, path));
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), 'utf8');
  }

  write(path: string, content: string): void {
    writeFileSync(join(this.folder, path), content);
  }

  logs(): string {
    return globSync('var/log/paybox*.log', { cwd: this.folder })
      .map((log) => `— ${log}\n${this.read(log).slice(-4000)}`)
      .join('\n');
  }

  /** The root folder of its first process, once that has one. */
  #root(): string | undefined {
    const inner = this.#firstInside();
    return inner === '' ? undefined : readlinkSync(`/proc/${inner}/root`);
  }

  #firstInside(): string {
    const pid = this.#first?.pid ?? 0;
    const children = `/proc/${pid}/task/${pid}/children`;
    return existsSync(children) ? readFileSync(children, 'utf8').trim() : '';
  }

  #inside(command: string): string[] {
    return ['-t', this.#firstInside(), '--mount', '--pid', '--net', '--root', '--wd', '/bin/bash', '-c', command];
  }
}

/**
 * Another version of a package: the same files, with `change` made to the folder that holds them (and `DEBIAN`).
 * Packed without compression, because it is only installed once.
 */
export function anotherVersion(deb: string, version: string, out: string, change: (folder: string) => void): string {
  const folder = join(out, `unpacked-${version}`);
  tool('dpkg-deb', '-R', deb, folder);
  const control = join(folder, 'DEBIAN/control');
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, `Version: ${version}`));
  const home = join(folder, 'usr/lib/paybox-agent');
  writeFileSync(join(home, 'VERSION'), `${version}\n`);
  const manifest = join(home, 'lib/package.json');
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(/"version": ".*"/, `"version": "${version}"`));
  change(folder);
  const file = join(out, `paybox-agent_${version}_amd64.deb`);
  tool('dpkg-deb', '--root-owner-group', '-Znone', '-b', folder, file);
  rmSync(folder, { recursive: true });
  return file;
}
