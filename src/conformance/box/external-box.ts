import { spawn } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { BoxClient } from '../../bench/clients/box.ts';
import type { Probe } from '../../bench/probes.ts';
import { waitUntilRight } from '../../bench/steps/waiting.ts';
import { realTime } from '../../bench/test-time.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { isExposed } from '../../lib/tls.ts';
import { PreconditionFailed } from '../check.ts';
import type { JudgedIdentity } from './gateway/endpoint.ts';
import { type GatewayPlace, ScriptedGateway } from './gateway/scripted-gateway.ts';
import type { TlsIdentities } from './gateway/tls-listener.ts';
import { awaitHello, type BoxHands, type BoxSubject } from './subject.ts';

const FIRST_PICTURE_MS = 30_000;
const COMMAND_TIMEOUT_MS = 120_000;

export interface AwaitedBoxOptions {
  identity: JudgedIdentity;
  /** Where the box has to connect; port 0 takes a free one. */
  place: GatewayPlace;
  /** The origin of the box's own pages, where it has some. */
  url?: string | undefined;
  /** Its `http.token`. */
  token?: string | undefined;
  /** Where its screen is seen; undefined where nobody sees it. */
  probe?: Probe | undefined;
  /** A shell command that turns the box off and on again, and ends once that is done. */
  restartCommand?: string | undefined;
  /** With them, the box has to speak TLS. */
  faces?: TlsIdentities | undefined;
  /** How long the box may take to come. */
  withinMs: number;
  random: Random;
  signal: AbortSignal;
  /** Told, line by line, what a person has to do for the box to come. */
  onListening(lines: string[]): void;
  onProgress(told: string): void;
}

/**
 * Waits for a box of whatever maker to connect, in everybody's time. Throws ConfigError when a port cannot be had,
 * MissingPeerError when no box comes.
 */
export async function openAwaitedBox(options: AwaitedBoxOptions): Promise<BoxSubject> {
  const { identity, place, faces, withinMs, random, signal, onProgress } = options;
  const time = realTime;
  const gateway = await ScriptedGateway.open(place, identity, { clock: time.clock, random, tls: faces });
  try {
    options.onListening(whereToConnect(gateway, place.host));
    await awaitHello(gateway, { time, withinMs, signal, onProgress });
    const hands = { ...(await handsOf(options)), close: () => gateway.close() };
    const { see } = hands;
    // A screen that has yet to be opened refuses pushes, as it should.
    const look = async () => ((await see?.()) === undefined ? 'nothing on its screen' : undefined);
    if (see !== undefined && gateway.session !== undefined) await waitUntilRight(time, FIRST_PICTURE_MS, look, signal);
    return { identity, time, gateway, hands };
  } catch (error) {
    await gateway.close();
    throw error;
  }
}

async function handsOf({
  identity,
  url,
  token,
  probe,
  restartCommand,
  signal,
}: AwaitedBoxOptions): Promise<Omit<BoxHands, 'close'>> {
  const at = new BoxClient(url ?? '', identity, token);
  return {
    see: probe && (() => probe.capture(at)),
    pages: url === undefined ? undefined : at,
    hasFaults: url !== undefined && (await canFail(at)),
    restart: restartCommand === undefined ? undefined : () => runCommand(restartCommand, signal),
  };
}

/** Whether faults can be ordered at its pages; a box whose pages do not answer takes none either. */
async function canFail(at: BoxClient): Promise<boolean> {
  return (await at.faults().catch(() => undefined)) !== undefined;
}

/** What has to be set in the box. */
function whereToConnect({ identity, mqtt, http, tls: faces }: ScriptedGateway, host: string): string[] {
  const name = isAnyHost(host) ? ownAddress() : host;
  const at = name.includes(':') ? `[${name}]` : name;
  const isPlain = faces === undefined;
  const mqttUrl = `${isPlain ? 'mqtt' : 'mqtts'}://${at}:${mqtt.port}`;
  const plain = isExposed(mqttUrl) ? ['without TLS: an agent of paybox wants link.allowPlain: true for that'] : [];
  return [
    `waiting for ${identity.terminalCode} (serial number ${identity.serialNumber}) at one of`,
    `  ${mqttUrl}`,
    `  ${isPlain ? 'http' : 'https'}://${at}:${http.port}`,
    `user name ${identity.terminalCode}; password: base64url of HMAC-SHA256(secret, "paybox/v1 login"), clause TOP-2`,
    ...plain,
  ];
}

/** Whether a server there is at every address of this machine. */
export function isAnyHost(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** The first address of this machine that others can reach. */
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
