import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { GatewayClient } from '../../bench/engine/clients/gateway.ts';
import { startPartnerServer } from '../../bench/engine/clients/partner-server.ts';
import { freePorts } from '../../bench/engine/free-ports.ts';
import { gatewayAccess, gatewayConfigFor, generateBoxes } from '../../bench/engine/targets/config.ts';
import { connectToGateway, type GatewayOptions } from '../../bench/engine/targets/external.ts';
import { processStarter } from '../../bench/engine/targets/process.ts';
import { makeWorkFolder, memoryFolder } from '../../bench/engine/work-folder.ts';
import { type AgentConfig, loadAgentConfig, parseAgentConfig } from '../../device/agent/config.ts';
import { lightSetupOf } from '../../device/agent/light-agent.ts';
import { setupOf } from '../../device/agent/setup.ts';
import { type BoxTransport, transportFor } from '../../device/agent/transports/registry.ts';
import type { AgentSetup } from '../../device/agent/world.ts';
import { GATEWAY_FILE_CHARS_MAX, parseGatewayConfig } from '../../gateway/config/config.ts';
import { startGateway } from '../../gateway/gateway.ts';
import { type Clock, systemClock, untilAborted } from '../../lib/clock.ts';
import { checkConfig, readConfigFile } from '../../lib/config-file.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { readFileText } from '../../lib/files.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { boxCode } from '../../protocol/fields.ts';
import { trustAuthority } from '../shared/authority.ts';
import type { Closers } from '../shared/daemon.ts';
import type { FleetSetup } from './fleet-boxes.ts';

const NAME = 'paybox fleet';
/** Short, so that orders expire within a run of 30 s. */
const QR_LIFETIME_SECONDS = 8;
/** The shortest allowed, so that a run also sees what follows a payment screen. */
const HOLD = { paidHoldSeconds: 3 };
/** Time for the gateway's program to end after a signal. */
const GATEWAY_END_MS = 400;
/** Size limit of a box's journal in a fleet run, write-ahead log included. */
const JOURNAL_BYTES_MAX = 2_000_000;

/** The gateway and boxes of a fleet. */
export interface FleetEnvironment {
  gateway: GatewayClient;
  /** One for each box; complete ones with a data folder that is removed after the run. */
  setups: FleetSetup[];
  /** True if SUCCESS means that the QR is on the screen. */
  confirmsDisplayed: boolean;
  /** Callbacks that the partner received for a payment; undefined when another program is the partner. */
  callbacksReceived: ((transactionId: string) => number) | undefined;
}

export interface EnvironmentDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  closers: Closers;
  /** Ends the start, and has what hangs killed soon at the end. */
  signal: AbortSignal;
}

/** Says how many boxes this process has, and of which kind. */
export interface FleetSize {
  boxes: number;
  isLight: boolean;
  /** Selects each `of`-th box, beginning with number `part`, which counts from 1. */
  share?: { part: number; of: number } | undefined;
}

/**
 * Starts a gateway with broker, a partner's server and boxes on free ports, with a temporary folder. The gateway of light boxes is a
 * program of its own, because one process may not have enough open files for both ends.
 */
export async function managedEnvironment(
  { boxes, isLight }: FleetSize,
  transport: BoxTransport,
  deps: EnvironmentDeps,
): Promise<FleetEnvironment> {
  const { random, closers } = deps;
  const folder = await temporaryFolder(closers);
  const partnerServer = await startPartnerServer().then(closers.adding);
  const told = new Map<string, number>();
  partnerServer.onReceived(({ transactionId = '' }) => told.set(transactionId, (told.get(transactionId) ?? 0) + 1));
  const made = generateBoxes(boxes, true, random);
  const [httpPort = 0, mqttPort = 0] = isLight ? await freePorts(2) : [];
  const config = {
    ...gatewayConfigFor({ httpPort, mqttPort, folder }, made, partnerServer.url),
    qrLifetimeSeconds: QR_LIFETIME_SECONDS,
  };
  const { origin, brokerPort } = isLight
    ? await gatewayProgram(config, { folder, httpPort, mqttPort }, deps)
    : await gatewayHere(config, deps);
  const link = { transport: transport.name, url: transport.urlOf({ origin, brokerPort }) };
  const configs = made.map((box) => parseAgentConfig({ ...HOLD, box, link, dataDir: '.' }, NAME));
  return {
    gateway: new GatewayClient(gatewayAccess({ httpPort: Number(new URL(origin).port) })),
    setups: await setupsOf(configs, isLight ? transport : undefined, closers),
    confirmsDisplayed: true,
    callbacksReceived: (transactionId) => told.get(transactionId) ?? 0,
  };
}

interface At {
  origin: string;
  brokerPort: number;
}

async function gatewayHere(config: object, deps: EnvironmentDeps): Promise<At> {
  const log = deps.log.with({ program: 'gateway' });
  const { origin, mqttUrl = '' } = await startGateway(parseGatewayConfig(config, NAME), { ...deps, log }).then(
    deps.closers.adding,
  );
  return { origin, brokerPort: Number(new URL(mqttUrl).port) };
}

async function gatewayProgram(
  config: object,
  { folder, httpPort, mqttPort }: { folder: string; httpPort: number; mqttPort: number },
  { closers, signal }: EnvironmentDeps,
): Promise<At> {
  const { gateway } = processStarter(folder, { program: [process.execPath, process.argv[1] ?? ''] });
  const { end } = await gateway(config, signal);
  closers.add(() => end('off', signal.aborted ? GATEWAY_END_MS : undefined));
  return { origin: `http://127.0.0.1:${httpPort}`, brokerPort: mqttPort };
}

export interface GivenOptions extends GatewayOptions {
  identities: string;
  transport: BoxTransport;
  broker: string | undefined;
}

/**
 * Boxes that a running gateway knows by their secrets. Throws ConfigError, MissingPeerError when the gateway does not answer, or the
 * signal's reason.
 */
export async function externalEnvironment(
  { boxes, isLight, share = { part: 1, of: 1 } }: FleetSize,
  options: GivenOptions,
  deps: EnvironmentDeps,
): Promise<FleetEnvironment> {
  const { identities } = options;
  const isFolder = (await stat(identities).catch(() => undefined))?.isDirectory() === true;
  if (isFolder) await trustAuthorityOf(identities);
  const gateway = await untilAborted(deps.signal, connectToGateway(options));
  const configs = isFolder
    ? await provisioned(boxes, options)
    : await listed(boxes, options, gateway.account.bankAccount);
  if (configs.length < boxes) {
    throw new ConfigError(`--boxes ${boxes}: ${identities} has ${configs.length} with a secret and this account`);
  }
  const own = configs.filter((_config, index) => index % share.of === share.part - 1);
  const setups = await setupsOf(own, isLight ? options.transport : undefined, deps.closers);
  return { gateway, setups, confirmsDisplayed: false, callbacksReceived: undefined };
}

/** Returns the setups of the boxes. `light` is the transport of light boxes. */
async function setupsOf(
  configs: readonly AgentConfig[],
  light: BoxTransport | undefined,
  closers: Closers,
): Promise<FleetSetup[]> {
  if (light?.openLight !== undefined) {
    const opener = await light.openLight(systemClock);
    closers.add(async () => opener.close());
    return configs.map((config) => ({ light: lightSetupOf(config, light, opener) }));
  }
  const journals = await journalsFolder(configs.length, closers);
  return configs.map((config) => ({ full: setupIn(journals, config) }));
}

/** Returns a box without other displays and sound. Its pages are on a free port and its journal is in this folder. */
function setupIn(journals: string, config: AgentConfig): AgentSetup {
  return setupOf({
    ...config,
    displays: [{ driver: 'browser' }],
    http: { host: '127.0.0.1', port: 0 },
    dataDir: join(journals, config.box.terminalCode),
    voice: undefined,
    light: undefined,
    buttons: undefined,
  });
}

/** Makes calls to the gateway trust the authority that the boxes of the folder trust. */
async function trustAuthorityOf(folder: string): Promise<void> {
  const authority = await readFileText(join(folder, 'ca.pem')).catch((error: unknown) => {
    throw new ConfigError(`--identities ${folder}: ${reasonOf(error)}`, 'give a folder of `paybox provision`');
  });
  trustAuthority(authority, `--identities ${folder}: ca.pem`);
}

/** Returns the boxes of a folder made by `paybox provision`. */
async function provisioned(boxes: number, { identities, transport, gateway }: GivenOptions): Promise<AgentConfig[]> {
  const folder = join(identities, 'boxes');
  const names = (await readdir(folder).catch(() => [])).filter((name) => boxCode.safeParse(name).success).sort();
  const configs: AgentConfig[] = [];
  for (const name of names.slice(0, boxes)) configs.push(await loadAgentConfig(join(folder, name, 'agent.yaml')));
  const { origin: url } = new URL(gateway);
  return configs.map((config) => {
    if (config.link.transport === transport.name) return config;
    const ca = config.link.tls?.ca;
    const tls = ca === undefined || !url.startsWith('https:') ? {} : { tls: { ca } };
    return { ...config, link: { transport: transport.name, url, connectTimeoutMs: 8_000, ...tls } };
  });
}

const list = z.looseObject({
  boxes: z.array(
    z.looseObject({
      terminalCode: boxCode,
      serialNumber: boxCode,
      secret: z.string().optional(),
      account: z.string().optional(),
    }),
  ),
});

/** Returns the boxes of a file in the format of a gateway's configuration. */
async function listed(
  boxes: number,
  { identities, transport, gateway, broker }: GivenOptions,
  bankAccount: string,
): Promise<AgentConfig[]> {
  const { name, value, placeOf } = await readConfigFile(identities, GATEWAY_FILE_CHARS_MAX);
  const fix = 'give a folder of `paybox provision`, or a file with boxes, as the configuration of a gateway';
  const { origin } = new URL(gateway);
  const isForBroker = broker !== undefined && transportFor(broker) === transport;
  const url = isForBroker ? broker : transport.urlOf({ origin });
  return checkConfig(list, value, name, fix, placeOf)
    .boxes.filter(({ secret, account }) => secret !== undefined && (account ?? bankAccount) === bankAccount)
    .slice(0, boxes)
    .map(({ terminalCode, serialNumber, secret }) =>
      parseAgentConfig(
        { box: { terminalCode, serialNumber, secret }, link: { transport: transport.name, url }, dataDir: '.' },
        NAME,
      ),
    );
}

/**
 * Returns a folder for the journals, in memory if it has room. On devices each box has its own disk. Here all boxes would
 * wait for one disk, and the run would measure that disk.
 */
function journalsFolder(boxes: number, closers: Closers): Promise<string> {
  return temporaryFolder(closers, () => memoryFolder(boxes * JOURNAL_BYTES_MAX));
}

async function temporaryFolder(closers: Closers, root?: () => Promise<string>): Promise<string> {
  const folder = await makeWorkFolder('fleet', root);
  closers.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
