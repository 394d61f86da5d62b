import { spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { existsSync, readFileSync } from 'node:fs';
import { eventually } from './net.ts';
import { findProgram, PROGRAMS } from './programs.ts';
import type { Seeded } from './seeded.ts';

/** Conditions of the network path, for both directions. */
export interface Conditions {
  delayMs: number;
  /** Deviation up or down. */
  jitterMs: number;
  /** Share of packets that are not delayed and so overtake others. */
  reordered: number;
  lost: number;
}

export const FAIR: Conditions = { delayMs: 0, jitterMs: 0, reordered: 0, lost: 0 };

/** A network namespace with two paths to this one: an impaired path, and a clean path for observation. */
export interface RemoteNamespace {
  /** This machine's address in the namespace, over the impaired path. */
  readonly here: string;
  /** The namespace's address on this machine, over the clean path. */
  readonly there: string;
  /** Builds a command line that runs in the namespace. */
  command(program: string, args: readonly string[]): { command: string; args: string[] };
  setConditions(conditions: Conditions): void;
  /** Drops all packets silently from now on. */
  cut(): void;
  /** Packets carried and lost. */
  counts(): { carried: number; lost: number };
  close(): Promise<void>;
}

/** Why network namespaces cannot be used here; `undefined` when they can. */
export function whyNoNamespaces(): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  const missing = [PROGRAMS.ip, PROGRAMS.socat].filter((program) => findProgram(program) === undefined);
  if (missing.length > 0) return `not installed: ${missing.map(({ debianPackage }) => debianPackage).join(', ')}`;
  if (!existsSync('/dev/net/tun')) return 'no /dev/net/tun';
  return spawnSync('unshare', ['-n', 'true']).status === 0 ? undefined : 'namespaces are not permitted';
}

function ip(...args: string[]): void {
  const done = spawnSync(findProgram(PROGRAMS.ip) ?? '', args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`ip ${args.join(' ')}: ${done.stderr}`);
}

/**
 * Makes a namespace. Its packets leave through a TUN device at each end, which socat converts to datagrams. A relay in this process
 * delays, reorders and drops them: this needs no kernel module, and a seed repeats it.
 */
export async function openNamespace(chance: Seeded): Promise<RemoteNamespace> {
  // A run that was killed has left its device behind.
  const isFree = (at: number) => !existsSync(`/sys/class/net/pbc${at}`);
  const number = Array.from({ length: 250 }, (_, i) => (process.pid + i) % 250).find(isFree) ?? 0;
  const name = `paybox${process.pid}`;
  const [here, far, cleanHere, there] = [
    `10.213.${number}.1`,
    `10.213.${number}.2`,
    `10.214.${number}.1`,
    `10.214.${number}.2`,
  ];
  const closers: (() => unknown)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    ip('netns', 'add', name);
    closers.push(() => ip('netns', 'delete', name));
    const relay = await startRelay(chance);
    closers.push(relay.close);
    const [nearTun, farTun, nearEnd, farEnd] = [`pbn${number}`, `pbf${number}`, `pbc${number}`, `pbd${number}`];
    closers.push(await startTun(nearTun, relay.near), await startTun(farTun, relay.far));
    ip('link', 'set', farTun, 'netns', name);
    ip('link', 'add', nearEnd, 'type', 'veth', 'peer', 'name', farEnd, 'netns', name);
    closers.push(() => ip('link', 'delete', nearEnd));
    ip('address', 'add', `${here}/30`, 'dev', nearTun);
    ip('-n', name, 'address', 'add', `${far}/30`, 'dev', farTun);
    ip('address', 'add', `${cleanHere}/30`, 'dev', nearEnd);
    ip('-n', name, 'address', 'add', `${there}/30`, 'dev', farEnd);
    for (const device of [nearTun, nearEnd]) ip('link', 'set', device, 'up');
    for (const device of [farTun, farEnd, 'lo']) ip('-n', name, 'link', 'set', device, 'up');
    return {
      here,
      there,
      command: (program, args) => ({
        command: findProgram(PROGRAMS.ip) ?? '',
        args: ['netns', 'exec', name, program, ...args],
      }),
      setConditions: relay.setConditions,
      cut: () => relay.setConditions({ ...FAIR, lost: 1 }),
      counts: relay.counts,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens a TUN device whose packets are the datagrams of one end of the relay; returns its close function. */
async function startTun(device: string, { port, peerPort }: End): Promise<() => Promise<void>> {
  const tun = `TUN,tun-name=${device},iff-no-pi,tun-type=tun`;
  const datagrams = `UDP4:127.0.0.1:${port},bind=127.0.0.1:${peerPort}`;
  const child = spawn(findProgram(PROGRAMS.socat) ?? '', [tun, datagrams], { stdio: ['ignore', 'ignore', 'pipe'] });
  let told = '';
  child.stderr.on('data', (chunk: Buffer) => {
    told += String(chunk);
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  // The device comes first, and goes with the program when that finds its port taken.
  await eventually(`the device ${device} and port ${peerPort}`, () => {
    if (child.exitCode !== null) throw new Error(`socat ended: ${told}`);
    return existsSync(`/sys/class/net/${device}`) && isBound(peerPort);
  });
  return async () => {
    child.kill('SIGKILL');
    await ended;
  };
}

/** Whether a program has this UDP port of 127.0.0.1. */
function isBound(port: number): boolean {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/udp', 'utf8').includes(` ${address} `);
}

/** Relays datagrams between two ports under the current conditions. */
async function startRelay(chance: Seeded) {
  let conditions = FAIR;
  const counts = { carried: 0, lost: 0 };
  const timers = new Set<NodeJS.Timeout>();
  const [near, far] = [await startEnd(), await startEnd()];
  const carry = (bytes: Buffer, to: End) => {
    if (chance.chance(conditions.lost)) {
      counts.lost += 1;
      return;
    }
    counts.carried += 1;
    const { delayMs, jitterMs, reordered } = conditions;
    const waitMs = chance.chance(reordered) ? 0 : Math.max(0, delayMs + (2 * chance.fraction() - 1) * jitterMs);
    const timer = setTimeout(() => {
      timers.delete(timer);
      to.socket.send(bytes, to.peerPort, '127.0.0.1');
    }, waitMs);
    timers.add(timer);
  };
  near.socket.on('message', (bytes) => carry(bytes, far));
  far.socket.on('message', (bytes) => carry(bytes, near));
  return {
    near,
    far,
    setConditions: (next: Conditions) => {
      conditions = next;
    },
    counts: () => ({ ...counts }),
    close: () => {
      for (const timer of timers) clearTimeout(timer);
      for (const { socket } of [near, far]) socket.close();
    },
  };
}

interface End {
  socket: Socket;
  port: number;
  /** Port of the peer. */
  peerPort: number;
}

async function startEnd(): Promise<End> {
  const [socket, peer] = [await boundSocket(), await boundSocket()];
  const peerPort = peer.address().port;
  await new Promise<void>((resolve) => peer.close(resolve));
  return { socket, port: socket.address().port, peerPort };
}

async function boundSocket(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return socket;
}
