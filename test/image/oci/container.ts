import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Running, run } from '../../support/processes.ts';

interface Descriptor {
  digest: string;
}

/** The configuration of an image, as far as an engine runs it by that. */
export interface ImageConfig {
  architecture: string;
  config: {
    User: string;
    Env: string[];
    Entrypoint: string[];
    Cmd: string[];
    Labels: Record<string, string>;
    Healthcheck: { Test: string[] };
    Volumes: Record<string, object>;
  };
}

export interface ContainerOptions {
  /** A folder for `/data`; without one it is that of the image, below a root that is read-only. */
  data?: string;
  dataReadOnly?: boolean;
  /** Number of another user than the image's. */
  user?: number;
  env?: Readonly<Record<string, string>>;
  /** A folder on this machine → its path in the container, read-only. */
  mounts?: Readonly<Record<string, string>>;
}

/** Mounts as an engine does with --read-only, for this process and its children only, and becomes the program. */
const START = `set -e
root=$1 data=$2 access=$3 user=$4 mounts=$5; shift 5
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
while IFS='|' read -r from to; do [ -z "$from" ] || mount --bind "$from" "$root$to"; done <<<"$mounts"
mount -o remount,bind,ro "$root"
if [ -n "$data" ]; then mount --bind "$data" "$root/data"; mount -o "remount,bind,$access" "$root/data"; fi
exec /usr/sbin/chroot --userspec="$user:$user" "$root" "$@"`;

/**
 * A process that becomes another user is no longer killed with its parent, so the program has one above it that stays
 * root, is killed with the test's own, and is the first of a namespace: with it the kernel ends all that is in there.
 */
const ENDS_WITH_TEST = ['--pid', '--fork', '--kill-child=KILL', 'unshare'];
const ISOLATED = ['--mount', '--pid', '--fork', '--kill-child=KILL'];

/** An image whose layers are unpacked into a folder, and run there without an engine: read-only, as its user, with its environment. */
export class Container {
  readonly #root: string;
  readonly image: ImageConfig;

  /** Unpacks `archive` below `folder`. */
  constructor(archive: string, folder: string) {
    const layout = join(folder, 'layout');
    this.#root = join(folder, 'root');
    for (const made of [layout, this.#root]) mkdirSync(made, { recursive: true });
    tool('tar', '-xf', archive, '-C', layout);
    const blob = ({ digest }: Descriptor) => join(layout, 'blobs/sha256', digest.replace('sha256:', ''));
    const read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
    const index = read(join(layout, 'index.json')) as { manifests: [Descriptor] };
    const manifest = read(blob(index.manifests[0])) as { config: Descriptor; layers: Descriptor[] };
    this.image = read(blob(manifest.config)) as ImageConfig;
    for (const layer of manifest.layers) tool('tar', '--same-owner', '-xpzf', blob(layer), '-C', this.#root);
  }

  /** A file of the image. */
  path(name: string): string {
    return join(this.#root, name);
  }

  /** Makes a folder that belongs to the image's user, as an engine makes a volume. */
  volume(folder: string): string {
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    const user = Number(this.image.config.User.split(':')[0]);
    chownSync(folder, user, user);
    return folder;
  }

  /** Starts the image's program with these arguments; with none, with those of the image. */
  start(args: readonly string[], options: ContainerOptions = {}): Running {
    const { Entrypoint, Cmd } = this.image.config;
    return this.#run([...Entrypoint, ...(args.length === 0 ? Cmd : args)], options);
  }

  /** Runs the image's health check. Returns its exit code and words. */
  async healthy(env: Readonly<Record<string, string>>): Promise<{ code: number | null; output: string }> {
    const [, ...command] = this.image.config.Healthcheck.Test;
    return await toEnd(this.#run(command, { env }));
  }

  #run(command: readonly string[], { data = '', dataReadOnly = false, user, env = {}, mounts = {} }: ContainerOptions) {
    const own = Number(this.image.config.User.split(':')[0]);
    const variables = [...this.image.config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
    for (const to of Object.values(mounts)) mkdirSync(this.path(to), { recursive: true });
    const bound = Object.entries(mounts).map(([from, to]) => `${from}|${to}`);
    const args = [this.#root, data, dataReadOnly ? 'ro' : 'rw', String(user ?? own), bound.join('\n'), ...command];
    return run('unshare', [
      ...ENDS_WITH_TEST,
      ...ISOLATED,
      'env',
      '-i',
      ...variables,
      '/bin/bash',
      '-c',
      START,
      'container',
      ...args,
    ]);
  }
}

/** Waits for the end of a program that ends by itself. */
export async function toEnd(running: Running): Promise<{ code: number | null; output: string }> {
  if (running.child.exitCode === null) await new Promise((done) => running.child.once('close', done));
  return { code: running.child.exitCode, output: running.output() };
}

/** The first process of a container: what an engine sends its signals to. */
export function firstProcess(running: Running): number {
  const childOf = (pid = 0) => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
  return childOf(childOf(running.child.pid));
}

function tool(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}
