import { spawn } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { reasonOf } from '../../../lib/errors.ts';
import type { Random } from '../../../lib/random.ts';
import { isExposed } from '../../../lib/tls.ts';
import { BROKER_SCHEMES } from '../../../protocol/packet-limit.ts';
import { BoxClient } from '../../engine/clients/box.ts';
import type { Probe } from '../../engine/target.ts';
import { realTime, waitUntilRight } from '../../engine/test-time.ts';
import { PreconditionFailed } from '../check.ts';
import type { JudgedIdentity, TlsIdentities } from './gateway/endpoint.ts';
import { type GatewayPlace, ScriptedGateway } from './gateway/scripted-gateway.ts';
import { type BoxControls, type BoxSubject, waitForHello } from './subject.ts';

const FIRST_PICTURE_MS = 30_000;
const COMMAND_TIMEOUT_MS = 120_000;

/** How the bench sees and restarts a box from outside. */
export interface BoxAccess {
  /** Origin of the box's own pages. */
  url?: string | undefined;
  /** Its `http.token`. */
  token?: string | undefined;
  /** If undefined, its screen cannot be seen. */
  probe?: Probe | undefined;
  /** A shell command that power-cycles the box, and then ends. */
  restartCommand?: string | undefined;
  signal: AbortSignal;
}

/** How a box from outside connects, and is seen. */
export interface ExternalBoxOptions<Identity = JudgedIdentity> extends BoxAccess {
  identity: Identity;
  /** Address to which the box connects; port 0 takes a free one. */
  place: GatewayPlace;
  /** If set, the box must use TLS. */
  tls?: TlsIdentities | undefined;
  /** Time within which the box must connect. */
  withinMs: number;
  random: Random;
  /** Called with the settings that a person must make in the box, line by line. */
  onListening(lines: string[]): void;
  onProgress(progress: string): void;
}

/**
 * Waits for a box of any maker, in real time. Throws ConfigError for a port in use, MissingPeerError when no box
 * connects.
 */
export async function openExternalBox(options: ExternalBoxOptions): Promise<BoxSubject> {
  const { identity, place, tls, withinMs, random, signal, onProgress } = options;
  const time = realTime;
  const gateway = await ScriptedGateway.open(place, identity, { clock: time.clock, random, tls });
  try {
    options.onListening(whereToConnect(gateway, place.host));
    await waitForHello(gateway, { time, withinMs, signal, onProgress });
    const controls = await controlsOf(options, identity, () => gateway.close());
    const { see } = controls;
    // While a screen is not open, a box correctly rejects pushes.
    const look = async () => ((await see?.()) === undefined ? 'nothing on its screen' : undefined);
    if (see !== undefined && gateway.session !== undefined) await waitUntilRight(time, FIRST_PICTURE_MS, look, signal);
    return { identity, time, gateway, controls };
  } catch (error) {
    await gateway.close();
    throw error;
  }
}

/** Returns the access to a box of any maker beside its messages. */
export async function controlsOf(
  { url, token, probe, restartCommand, signal }: BoxAccess,
  identity: { terminalCode: string; serialNumber: string },
  close: () => Promise<void>,
): Promise<BoxControls> {
  const at = new BoxClient(url ?? '', identity, token);
  return {
    see: probe && (() => probe.capture(at)),
    pages: url === undefined ? undefined : at,
    hasFaults: url !== undefined && (await takesFaults(at)),
    restart: restartCommand === undefined ? undefined : () => runCommand(restartCommand, signal),
    close,
  };
}

/** Returns true if faults can be injected at its pages; false if they do not answer. */
async function takesFaults(at: BoxClient): Promise<boolean> {
  return (await at.faults().catch(() => undefined)) !== undefined;
}

/** Returns instructions for a person who sets up the box. */
function whereToConnect({ identity, mqtt, http, tls }: ScriptedGateway, host: string): string[] {
  const isPlain = tls === undefined;
  const mqttUrl = urlAt(isPlain ? 'mqtt' : 'mqtts', host, mqtt.port);
  const plain = isExposed(mqttUrl, BROKER_SCHEMES)
    ? ['without TLS: an agent of paybox wants link.allowPlain: true for that']
    : [];
  return [
    `waiting for ${identity.terminalCode} (serial number ${identity.serialNumber}) at one of`,
    `  ${mqttUrl}`,
    `  ${urlAt(isPlain ? 'http' : 'https', host, http.port)}`,
    `user name ${identity.terminalCode}; password: base64url of HMAC-SHA256(secret, "paybox/v1 login"), clause TOP-2`,
    ...plain,
  ];
}

/** Returns the address, for a box, of a server that listens on this host. */
export function urlAt(scheme: string, host: string, port: number): string {
  const name = isAnyHost(host) ? ownAddress() : host;
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/** Returns true if the host means every address of this machine. */
export function isAnyHost(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Returns the first IPv4 address of this machine that others can reach. */
export function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((it) => it ?? []);
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}

function runCommand(command: string, signal: AbortSignal): Promise<void> {
  const failed = (why: string) =>
    new PreconditionFailed(`the box was not restarted: --restart-command ${why}: ${command}`);
  const child = spawn(command, { shell: true, stdio: 'ignore', signal, timeout: COMMAND_TIMEOUT_MS });
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(failed(reasonOf(error))));
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(failed(code === null ? `took longer than ${COMMAND_TIMEOUT_MS / 1000} s` : `ended with ${code}`));
    });
  });
}
