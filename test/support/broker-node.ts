import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { generate, type IConnectPacket } from 'mqtt-packet';
import { eventually } from './net.ts';

/** Output that is kept for the message of a failing test. */
const OUTPUT_CHARS_MAX = 20_000;
/** A NATS that looks for the others of its cluster takes as long to answer. */
const CLUSTER_ANSWER_MS = 5_000;
const CONNACK = 0x20;

export interface Login {
  username: string;
  password: string;
}

/** One node of a broker, killable and startable alone. */
export interface BrokerNode {
  /** Of MQTT on loopback, the same in every run. */
  readonly port: number;
  output(): string;
  /** Starts it if it does not run; settles once it answers. */
  start(): Promise<void>;
  /** Sends the signal to all its processes, and waits for its end where that is one. */
  signal(signal: NodeJS.Signals): Promise<void>;
}

/** Brokers of MQTT that share their messages. */
export interface BrokerCluster {
  readonly nodes: readonly BrokerNode[];
  /** Kills all and deletes their files. */
  close(): Promise<void>;
}

/** A node that this command starts, in a process group of its own. Not started yet. */
export function brokerNode(
  port: number,
  name: string,
  command: readonly [string, ...string[]],
  isReady: () => Promise<boolean>,
  env: NodeJS.ProcessEnv = {},
): BrokerNode {
  let child: ChildProcess | undefined;
  let output = '';
  const isOver = () => child === undefined || child.exitCode !== null || child.signalCode !== null;
  const start = async () => {
    if (!isOver()) return;
    const [program, ...args] = command;
    const started = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    child = started;
    for (const stream of [started.stdout, started.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output = `${output}${chunk}`.slice(-OUTPUT_CHARS_MAX);
      });
    }
    await eventually(
      `${name} on port ${port}`,
      () => {
        if (isOver()) throw new Error(`${name} ended: ${output}`);
        return isReady();
      },
      120_000,
    );
  };
  const signal = async (kind: NodeJS.Signals) => {
    if (child?.pid === undefined || isOver()) return;
    const ended = once(child, 'exit');
    process.kill(-child.pid, kind);
    if (kind !== 'SIGSTOP' && kind !== 'SIGCONT') await ended;
  };
  return { port, output: () => output, start, signal };
}

/** Whether a broker on this port says anything to a login without a name. */
export function answersMqtt(port: number): Promise<boolean> {
  return connackOf(port, undefined).then((it) => it !== undefined);
}

/** Whether the broker on this port accepts this login. */
export async function acceptsMqtt(port: number, login: Login): Promise<boolean> {
  return (await connackOf(port, login)) === 0;
}

/** The return code of a login; undefined if there is no answer. */
async function connackOf(port: number, login: Login | undefined): Promise<number | undefined> {
  const socket = connect(port, '127.0.0.1');
  const names = login && { username: login.username, password: Buffer.from(login.password) };
  const client = { clientId: `probe-${port}`, protocolId: 'MQTT', protocolVersion: 4, clean: true } as const;
  const packet: IConnectPacket = { cmd: 'connect', ...client, ...names };
  try {
    return await new Promise<number | undefined>((resolve) => {
      socket.setTimeout(CLUSTER_ANSWER_MS, () => resolve(undefined));
      socket.once('error', () => resolve(undefined));
      socket.once('close', () => resolve(undefined));
      socket.once('data', (bytes: Buffer) => resolve(bytes[0] === CONNACK ? bytes[3] : undefined));
      socket.write(generate(packet));
    });
  } finally {
    socket.destroy();
  }
}
