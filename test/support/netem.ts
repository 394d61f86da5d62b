import { spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { eventually, freePort } from './net.ts';
import { findProgram, PROGRAMS } from './programs.ts';
import type { Seeded } from './seeded.ts';

/** How IP packets fare on their way, both ways alike. */
export interface Weather {
  delayMs: number;
  /** Give or take. */
  jitterMs: number;
  /** The share of packets that overtake the others: they are not delayed. */
  reordered: number;
  lost: number;
}

export const FAIR: Weather = { delayMs: 0, jitterMs: 0, reordered: 0, lost: 0 };

/** A network namespace that this one reaches in two ways: through bad weather, and by a clean cable to look at it. */
export interface FarPlace {
  /** Where programs in the namespace find this machine, through the weather. */
  readonly here: string;
  /** Where this machine finds them, by the clean cable. */
  readonly there: string;
  /** A command line that runs there. */
  command(program: string, args: readonly string[]): { command: string; args: string[] };
  weather(weather: Weather): void;
  /** Nothing passes any more, and nobody is told. */
  cut(): void;
  /** Packets that were carried, and that were lost. */
  counts(): { carried: number; lost: number };
  close(): Promise<void>;
}

/** Why there can be no namespaces with bad weather here; `undefined` where there can. */
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
 * Makes a namespace. Its packets leave through a TUN device at each end, which socat turns into datagrams; a relay in
 * this process delays, reorders and loses them, so that no kernel needs a module for it and a seed repeats it.
 */
export async function openFarPlace(chance: Seeded): Promise<FarPlace> {
  const number = process.pid % 250;
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
      weather: relay.weather,
      cut: () => relay.weather({ ...FAIR, lost: 1 }),
      counts: relay.counts,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A TUN device whose packets are the datagrams of an end of the relay; what takes it away again. */
async function startTun(device: string, { port, peerPort }: End): Promise<() => Promise<void>> {
  const tun = `TUN,tun-name=${device},iff-no-pi,tun-type=tun`;
  const datagrams = `UDP4:127.0.0.1:${port},bind=127.0.0.1:${peerPort}`;
  const child = spawn(findProgram(PROGRAMS.socat) ?? '', [tun, datagrams], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await eventually(`the device ${device}`, () => existsSync(`/sys/class/net/${device}`));
  return async () => {
    child.kill('SIGKILL');
    await ended;
  };
}

/** Carries datagrams between two ports as the weather allows. */
async function startRelay(chance: Seeded) {
  let weather = FAIR;
  const counts = { carried: 0, lost: 0 };
  const timers = new Set<NodeJS.Timeout>();
  const [near, far] = [await startEnd(), await startEnd()];
  const carry = (bytes: Buffer, to: End) => {
    if (chance.chance(weather.lost)) {
      counts.lost += 1;
      return;
    }
    counts.carried += 1;
    const { delayMs, jitterMs, reordered } = weather;
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
    weather: (next: Weather) => {
      weather = next;
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
  /** Where its packets come from and go to. */
  peerPort: number;
}

async function startEnd(): Promise<End> {
  const socket = createSocket('udp4');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { socket, port: socket.address().port, peerPort: await freePort() };
}
