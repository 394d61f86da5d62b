import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../../lib/random.ts';
import { BoxClient } from '../../engine/clients/box.ts';
import { freePorts } from '../../engine/free-ports.ts';
import type { Probe } from '../../engine/target.ts';
import {
  agentConfigFor,
  type GeneratedBox,
  generateBoxes,
  type TargetLayout,
  type Transport,
} from '../../engine/targets/config.ts';
import type { AgentStarter, Part } from '../../engine/targets/managed.ts';
import { PART_BYTES, waitUntilReady } from '../../engine/targets/managed.ts';
import { makeWorkFolder, memoryFolder } from '../../engine/work-folder.ts';
import type { TlsIdentities } from './gateway/endpoint.ts';
import { ScriptedGateway } from './gateway/scripted-gateway.ts';
import { type BoxControls, type BoxSubject, waitForHello } from './subject.ts';

/** The driver gives the words to the pages, and nobody needs the sound. */
const VOICE = { driver: 'page', options: { speech: { kind: 'none' } } };
/** Each look paints, encodes and decodes a picture: this one has 0.4 of the pixels of a box's usual one. */
const SCREEN = { driver: 'browser', width: 480, height: 320 };
/** Long enough on a busy machine. */
const START_MS = 60_000;

export interface EmulatedBoxOptions {
  transport: Transport;
  probe: Probe;
  random: Random;
  /** If set, box and gateway use TLS. */
  tls?: TlsIdentities | undefined;
  signal: AbortSignal;
}

/** Starts a box of the bench with a scripted gateway. Throws MissingPeerError when the box does not connect. */
export async function openEmulatedBox(
  starter: AgentStarter,
  { transport, probe, random, tls, signal }: EmulatedBoxOptions,
): Promise<BoxSubject> {
  const { time } = starter;
  const [made] = generateBoxes(1, true, random);
  if (made?.secret === undefined) throw new Error('a box without a secret cannot be judged');
  const identity = { ...made, secret: made.secret };
  const loopback = { host: '127.0.0.1', mqttPort: 0, httpPort: 0 };
  const gateway = await ScriptedGateway.open(loopback, identity, { clock: time.clock, random, tls });
  const configIn = async (folder: string, boxPort: number) => {
    const place = { mqttPort: gateway.mqtt.port, httpPort: gateway.http.port, transport, folder };
    const plain = agentConfigFor(place, made, boxPort, SCREEN);
    return tls === undefined ? plain : { ...plain, link: await linkOverTls(place, tls) };
  };
  const arrived = async (at: BoxClient) => {
    await waitForHello(gateway, { time, withinMs: START_MS, signal });
    if (gateway.session !== undefined) await time.inRealTime(() => waitUntilReady(at, time));
  };
  const controls = await emulatedControls(starter, { made, probe, configIn, arrived, gateway });
  return { identity, time, gateway, controls };
}

interface EmulatedParts {
  made: GeneratedBox;
  probe: Probe;
  /** Its configuration, with a folder for its files and a port for its pages. */
  configIn(folder: string, boxPort: number): Promise<object>;
  /** Waits until the box is there. */
  arrived(at: BoxClient): Promise<void>;
  /** Closed after the box. */
  gateway: { close(): Promise<void> };
}

/** Starts a box of the bench, and waits until it is there. Throws what `arrived` does, with nothing left behind. */
export async function emulatedControls(
  { time, agent }: AgentStarter,
  { made, probe, configIn, arrived, gateway }: EmulatedParts,
): Promise<BoxControls> {
  const folder = await makeWorkFolder('bench-box', () => memoryFolder(PART_BYTES));
  const [boxPort = 0] = await freePorts(1);
  const config = { ...(await configIn(folder, boxPort)), voice: VOICE };
  const at = new BoxClient(`http://127.0.0.1:${boxPort}`, made);
  let part: Part | undefined;
  const start = async () => {
    part = await time.inRealTime(() => agent(config, made.terminalCode));
  };
  const end = async () => {
    await time.inRealTime(async () => part?.end('killed'));
    part = undefined;
  };
  const close = async () => {
    await end();
    await gateway.close();
    time.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const controls = {
    see: () => probe.capture(at),
    pages: at,
    hasFaults: true,
    isFirstStart: true,
    restart: async () => {
      controls.isFirstStart = false;
      await end();
      await start();
    },
    close,
  };
  try {
    await start();
    await arrived(at);
    return controls;
  } catch (error) {
    await close();
    throw error;
  }
}

async function linkOverTls(
  { mqttPort, httpPort, transport, folder }: TargetLayout,
  { ca }: TlsIdentities,
): Promise<object> {
  const file = join(folder, 'ca.pem');
  await writeFile(file, ca);
  const url = transport.name === 'mqtt' ? `mqtts://127.0.0.1:${mqttPort}` : `https://127.0.0.1:${httpPort}`;
  return { transport: transport.name, url, tls: { ca: file } };
}
