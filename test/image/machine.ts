import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../support/net.ts';
import { type Running, run } from '../support/processes.ts';
import { monitor } from '../support/qmp.ts';

const BOOT_TIMEOUT_MS = 300_000;
const COMMAND_TIMEOUT_MS = 600_000;
const MEMORY_MIB = 1024;

/**
 * Serves commands from the test on a serial line of its own, and gives their exit code and output. The image itself lets
 * nobody in: this unit comes from outside, by the kernel's command line.
 */
const SERVE_COMMANDS = `
until [ -c /dev/virtio-ports/test ]; do sleep 1; done
exec 3<>/dev/virtio-ports/test
while true; do
  # Nothing comes while nobody is at the other end.
  read -r -u 3 line || { sleep 1; continue; }
  output=$(eval "$(base64 -d <<<"$line")" 2>&1) && code=0 || code=$?
  printf '%s %s\\n' "$code" "$(base64 -w0 <<<"$output")" >&3
done`;

const TEST_UNIT = `[Service]
ExecStart=/bin/bash -c 'eval "$$(base64 -d <<<${base64(SERVE_COMMANDS)})"'
`;

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** A virtual machine that runs from an image file, which it writes as a box writes its card. */
export class Machine {
  readonly #running: Running;
  readonly #folder: string;
  readonly #startedMs = performance.now();
  #commands: { socket: Socket; lines: AsyncIterator<string> } | undefined;

  private constructor(running: Running, folder: string) {
    this.#running = running;
    this.#folder = folder;
  }

  /**
   * Starts it with the kernel and first programs that are in the image; `folder` is for its sockets and pictures. The
   * bytes of `files` are those of its further disks, /dev/vdb and on.
   */
  static start(image: string, folder: string, files: readonly string[] = []): Machine {
    for (const file of ['vmlinuz', 'initrd.img', 'cmdline.txt']) {
      bootPartition(image, 'mcopy', '-n', '-o', `::${file}`, join(folder, file));
    }
    const credential = `systemd.set_credential_binary=systemd.extra-unit.test.service:${base64(TEST_UNIT)}`;
    const line = readFileSync(join(folder, 'cmdline.txt'), 'utf8').trim();
    const args = [
      ['-M', 'virt', '-cpu', 'cortex-a72', '-accel', 'tcg,thread=multi', '-m', String(MEMORY_MIB), '-smp', '2'],
      ['-nodefaults', '-no-reboot', '-display', 'none', '-serial', 'stdio'],
      ['-qmp', `unix:${join(folder, 'qmp')},server=on,wait=off`],
      ['-kernel', join(folder, 'vmlinuz'), '-initrd', join(folder, 'initrd.img')],
      ['-append', `${line} console=ttyAMA0 systemd.wants=test.service ${credential}`],
      // What the guest has on its disk is on the host's: a cut of the power loses what was not flushed, and only that.
      ['-drive', `file=${image},format=raw,if=none,id=card,cache=none`, '-device', 'virtio-blk-pci,drive=card'],
      ...files.map((file, index) => [
        ...['-drive', `file=${file},format=raw,if=none,id=file${index},readonly=on`],
        ...['-device', `virtio-blk-pci,drive=file${index}`],
      ]),
      ['-nic', 'user,model=virtio-net-pci', '-device', 'virtio-gpu-pci,xres=800,yres=480'],
      ['-chardev', `socket,id=test,path=${join(folder, 'commands')},server=on,wait=off`],
      ['-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=test,name=test'],
    ];
    return new Machine(run('qemu-system-aarch64', args.flat()), folder);
  }

  /** All that its serial console has said. */
  get console(): string {
    return this.#running.output();
  }

  /** Settles when its serial console has said this; the seconds since it was switched on. */
  async says(text: string, timeoutMs = BOOT_TIMEOUT_MS): Promise<number> {
    await this.#until(`the machine says ${text}`, () => this.console.includes(text), timeoutMs);
    return (performance.now() - this.#startedMs) / 1000;
  }

  /** Waits for something that the machine is to bring about. */
  async #until(what: string, probe: () => boolean | Promise<boolean>, timeoutMs: number): Promise<void> {
    const attempt = async () => {
      if (this.#running.child.exitCode !== null) throw new Error('the machine has ended');
      return probe();
    };
    await eventually(what, attempt, timeoutMs).catch((error: unknown) => {
      throw new Error(`${error}\n${this.console.slice(-10_000)}`);
    });
  }

  /** Waits until what is on its screen, as a PNG file, satisfies; that picture. */
  async shows(what: string, satisfies: (png: Uint8Array) => boolean, timeoutMs = BOOT_TIMEOUT_MS): Promise<Uint8Array> {
    let picture = new Uint8Array();
    const probe = async () => {
      picture = await this.screen();
      return satisfies(picture);
    };
    await this.#until(`the screen shows ${what}`, probe, timeoutMs);
    return picture;
  }

  /** What is on its screen, as a PNG file. */
  async screen(): Promise<Uint8Array<ArrayBuffer>> {
    const filename = join(this.#folder, 'screen.png');
    await monitor(join(this.#folder, 'qmp'), 'screendump', { filename, format: 'png' });
    return new Uint8Array(readFileSync(filename));
  }

  /** Stops its processors, so that nothing that comes reaches it. */
  async freeze(): Promise<void> {
    await monitor(join(this.#folder, 'qmp'), 'stop', {});
  }

  /** Runs a command as root inside; its output. Throws where it fails, unless told to give the exit code as well. */
  async command(script: string): Promise<string> {
    const { code, output } = await this.tryCommand(script);
    if (code !== 0) throw new Error(`${script}: exit code ${code}: ${output}`);
    return output;
  }

  async tryCommand(script: string): Promise<{ code: number; output: string }> {
    this.#commands ??= await this.#openCommands();
    const { socket, lines } = this.#commands;
    socket.write(`${base64(script)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error(`the machine has ended in ${script}`);
    const [code = '', output = ''] = value.split(' ');
    return { code: Number(code), output: Buffer.from(output, 'base64').toString().trim() };
  }

  async #openCommands() {
    const socket = connect(join(this.#folder, 'commands'));
    await once(socket, 'connect');
    socket.setTimeout(COMMAND_TIMEOUT_MS, () => socket.destroy(new Error('a command takes too long')));
    return { socket, lines: createInterface({ input: socket })[Symbol.asyncIterator]() };
  }

  /** Cuts the power. */
  async cutPower(): Promise<void> {
    await this.#running.stop('SIGKILL');
    this.#commands?.socket.destroy();
  }
}

/** Puts a file on the first partition of an image, as a person does with a card. */
export function putOnBootPartition(image: string, file: string, name: string): void {
  bootPartition(image, 'mcopy', '-o', file, `::${name}`);
}

/** Copies an image to where it is written to; what is empty in it takes no room. */
export function writeCard(image: string, to: string): void {
  runToEnd('cp', '--sparse=always', image, to);
}

/** Where the first partition of an image begins. */
const BOOT_OFFSET = '4M';

function bootPartition(image: string, command: string, ...args: string[]): void {
  runToEnd(command, '-i', `${image}@@${BOOT_OFFSET}`, ...args);
}

function runToEnd(command: string, ...args: string[]): void {
  const env = { ...process.env, MTOOLS_SKIP_CHECK: '1' };
  const { status, stderr, error } = spawnSync(command, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`, { cause: error });
}
