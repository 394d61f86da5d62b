import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { eventually } from '../../support/net.ts';
import { type Running, run } from '../../support/processes.ts';
import { findProgram } from '../../support/programs.ts';
import { monitor } from '../../support/qmp.ts';
import { FRAMEBUFFER_PROGRAMS } from '../programs.ts';
import type { Kernel } from './debian-kernel.ts';

const PROJECT = resolve(import.meta.dirname, '../../..');
const MEMORY_MIB = 768;
const BOOT_TIMEOUT_MS = 300_000;

export interface GuestSettings {
  kernel: Kernel;
  /** Of the screen. */
  modules: readonly string[];
  /** Added to the kernel's command line. */
  kernelArgs: string;
  /** The agent's configuration. */
  config: object;
  /** A folder whose files the agent finds in its data folder. */
  dataDir: string;
  /** The port of this machine at which the box's own pages are to be found. */
  boxPort: number;
}

/** A virtual machine that boots Debian's kernel straight into this project's agent. */
export interface Guest {
  /** Settles when its serial console has said this. */
  says(text: string): Promise<void>;
  output(): string;
  /** What is on its screen, as a PNG file. */
  screen(): Promise<Uint8Array>;
  stop(): Promise<void>;
}

/**
 * Boots. The agent's source and packages are shared with the guest, read-only; the rest is in its initial memory.
 * Emulated instruction by instruction (tcg), because a test machine may have no virtualisation.
 */
export async function bootGuest(folder: string, settings: GuestSettings): Promise<Guest> {
  const qmp = join(folder, 'qmp');
  const share = (tag: string) => [
    ['-fsdev', `local,id=${tag},path=${join(PROJECT, tag)},security_model=none,readonly=on`],
    ['-device', `virtio-9p-pci,fsdev=${tag},mount_tag=${tag}`],
  ];
  const args = [
    ['-M', 'q35', '-accel', 'tcg', '-m', String(MEMORY_MIB), '-smp', '1', '-nodefaults', '-no-reboot'],
    // QEMU 7.2 emulates cmpxchg16b in a way that stops Debian's kernel.
    ['-cpu', 'Nehalem,cx16=off'],
    ['-display', 'none', '-serial', 'stdio', '-qmp', `unix:${qmp},server=on,wait=off`],
    ['-device', 'VGA,xres=800,yres=480,edid=on'],
    ['-nic', `user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:${settings.boxPort}-:8810`],
    ['-kernel', settings.kernel.image, '-initrd', packInitrd(folder, settings)],
    ['-append', `console=ttyS0 quiet panic=-1 ${settings.kernelArgs}`],
    ...share('src'),
    ...share('node_modules'),
  ];
  const machine = run(findProgram(FRAMEBUFFER_PROGRAMS.qemu) ?? '', args.flat());
  const says = async (text: string) => {
    await eventually(
      `the guest says ${text}`,
      () => endedOr(machine) ?? machine.output().includes(text),
      BOOT_TIMEOUT_MS,
    );
  };
  return {
    says,
    output: machine.output,
    screen: async () => {
      const filename = join(folder, 'screen.png');
      await monitor(qmp, 'screendump', { filename, format: 'png' });
      return readFileSync(filename);
    },
    stop: async () => {
      await machine.stop('SIGKILL');
    },
  };
}

function endedOr(machine: Running): undefined {
  if (machine.child.exitCode !== null) throw new Error(`the guest has ended:\n${machine.output()}`);
  return undefined;
}

/** The guest's first file system: busybox, modules, the libraries that Node asks for, and the configuration. */
function packInitrd(folder: string, { kernel, modules, config, dataDir }: GuestSettings): string {
  const root = join(folder, 'root');
  const copy = (from: string, to: string) => cpSync(from, join(root, to), { recursive: true, dereference: true });
  for (const empty of ['dev', 'proc', 'sys', 'tmp', 'etc', 'paybox/src', 'paybox/node_modules']) {
    mkdirSync(join(root, empty), { recursive: true });
  }
  const busybox = findProgram(FRAMEBUFFER_PROGRAMS.busybox) ?? '';
  copy(busybox, 'bin/busybox');
  copy(join(import.meta.dirname, 'guest-init.sh'), 'init');
  copy(join(PROJECT, 'package.json'), 'paybox/package.json');
  copy(dataDir, 'data');
  for (const program of [busybox, process.execPath]) {
    for (const library of librariesOf(program)) {
      mkdirSync(join(root, dirname(library)), { recursive: true });
      copy(library, library);
    }
  }
  const common = ['virtio_pci', '9pnet_virtio', '9p', 'virtio_net'];
  for (const [index, path] of kernel.modules(...common, ...modules).entries()) {
    copy(path, `modules/${String(index).padStart(2, '0')}.ko`);
  }
  writeFileSync(join(root, 'etc/agent.yaml'), JSON.stringify(config));
  const packed = spawnSync('sh', ['-c', 'chmod +x init && busybox find . | busybox cpio -o -H newc > ../initrd'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (packed.status !== 0) throw new Error(`no initrd: ${packed.stderr}`);
  return join(folder, 'initrd');
}

function librariesOf(program: string): string[] {
  const told = spawnSync('ldd', [program], { encoding: 'utf8' }).stdout;
  return [...told.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path ?? '');
}
