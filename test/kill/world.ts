import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { SPEECH_FORMAT } from '../../src/device/voice/chime.ts';
import { encodeWav, silence } from '../../src/device/voice/wav.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { DEMO, NODE } from '../benchmarks/fixture.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { eventually } from '../support/net.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { cliScript } from '../support/program-code.ts';
import { findProgram, PROGRAMS } from '../support/programs.ts';
import { Evidence } from './evidence.ts';
import { ScreenExpectation } from './expectation.ts';
import { type Feeds, openFeeds } from './feeds.ts';
import { observe } from './inspection.ts';
import { type PartnerEndpoint, startPartnerEndpoint } from './partner.ts';
import { type LogLine, Program, type ProgramName } from './program.ts';
import type { WorldKind } from './script.ts';
import { Shop } from './shop.ts';
import { openTap, type Tap } from './tap.ts';

/** Exit code of a program whose peer is not there. */
const PEER_MISSING = 3;
const ANY_END = [0, 1, 2, PEER_MISSING];
const GATEWAY_FILE = 'gateway.yaml';
const GATEWAY_DATA = 'gateway';
const DIES_AT_CREDIT = join(import.meta.dirname, 'dies-at-credit.ts');
const BROKER_LOGIN = { username: 'gateway', password: 'sample-gateway-secret' };
const DIALECT = {
  macAddr: '02:00:5E:10:00:01',
  checkSumSalt: 'sample-check-sum-salt',
  boxIdSalt: 'sample-box-id-salt',
  login: { username: 'vietqr-boxes', password: 'sample-password-of-all-boxes' },
};
/** A failed callback is tried again so soon that a run can wait for it. */
const CALLBACK_RETRY_WAITS_MS = [20, 50, 100, 200, 500, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000];

/**
 * Speaks without a sound: keeps the sentence that it reads, and gives the file beside it as what it says. A sentence
 * has no line end, so that `read` fails although it has read.
 */
const SPEECH_PROGRAM = `#!/bin/sh
IFS= read -r sentence
printf '%s\\n' "$sentence" >> "$0.spoken"
exec cat "$0.wav"
`;

/** A gateway, a box and perhaps a broker as real programs, on a folder that outlives them, and a partner that hears of payments. */
export class World {
  readonly kind: WorldKind;
  readonly programs: ReadonlyMap<ProgramName, Program>;
  readonly partner: PartnerEndpoint;
  readonly evidence: Evidence;
  readonly screen: ScreenExpectation;
  readonly shop: Shop;
  readonly gatewayUrl: string;
  readonly boxUrl: string;
  /** Only with the public dialect. */
  readonly tap: Tap | undefined;
  /** Only with sources. */
  readonly feeds: Feeds | undefined;
  /** The data folder of the gateway. */
  readonly dataDir: string;
  /** With sources: once this file is there, the gateway kills itself as it logs the next credit. */
  readonly dieFile: string;
  /** Told of each line of the agent. */
  onAgentLine: ((line: LogLine) => void) | undefined;
  /** Told of each line of the gateway, with the number of its life. */
  onGatewayLine: ((line: LogLine, life: number) => void) | undefined;
  /** Orders that this world has made; their amounts and contents are its own. */
  orders = 0;
  readonly #folder: string;
  readonly #postgres: PostgresServer | undefined;

  private constructor(kind: WorldKind, folder: string, ports: Ports, brokerFile: string, around: Around) {
    const { partner, tap, feeds, postgres, databaseUrl } = around;
    this.kind = kind;
    this.tap = tap;
    this.feeds = feeds;
    this.dieFile = `${join(folder, GATEWAY_FILE)}.die`;
    this.dataDir = join(folder, GATEWAY_DATA);
    this.#folder = folder;
    this.#postgres = postgres;
    this.partner = partner;
    this.evidence = new Evidence(join(folder, 'speech.spoken'));
    this.screen = new ScreenExpectation(kind.qrLifetimeSeconds < 10);
    this.gatewayUrl = `http://127.0.0.1:${ports.http}`;
    this.boxUrl = `http://127.0.0.1:${ports.box}`;
    this.shop = new Shop(this.gatewayUrl);
    this.programs = new Map(
      this.#programs(kind, brokerFile, databaseUrl !== undefined).map((program) => [program.name, program]),
    );
  }

  /**
   * Starts a world of its own; settles once its programs work. With `databaseUrl` the gateway's store is there, and the gateway is
   * started again whenever it ends, as systemd does.
   */
  static async open(kind: WorldKind, databaseUrl?: string): Promise<World> {
    const folder = await mkdtemp(join(tmpdir(), 'paybox-kill-'));
    // Out of the way of outgoing connections, which could take one while its program is dead.
    const [http = 0, mqtt = 0, box = 0] = await freePorts(3);
    const around: Around = {
      partner: await startPartnerEndpoint(),
      tap: kind.dialect && (await openTap(mqtt)),
      feeds: kind.sources && (await openFeeds(kind.sources)),
      postgres: kind.store && (await startPostgres()),
      databaseUrl,
    };
    const ports = { http, mqtt, box, boxMqtt: around.tap?.port ?? mqtt };
    await writeConfigs(kind, folder, ports, around);
    const { terminalCode, secret } = DEMO.box;
    const { username, password } = DIALECT.login;
    const own = { [BROKER_LOGIN.username]: BROKER_LOGIN.password };
    const logins = { ...own, [terminalCode]: loginOf(secret), [username]: password };
    const brokerFile = kind.link === 'mosquitto' ? await writeMosquittoConfig(folder, ports.mqtt, logins) : '';
    const world = new World(kind, folder, ports, brokerFile, around);
    try {
      for (const program of world.programs.values()) program.start();
      for (const program of world.programs.values()) await program.ready();
      // A payment from before the first hello of a box is no news to it.
      await eventually('the first hello of the box', async () => (await observe(world))?.boxOnlineAtGateway === true);
      return world;
    } catch (error) {
      await world.close();
      throw error;
    }
  }

  /** Ends the programs without waiting; the folder stays. */
  abandon(): void {
    for (const program of this.programs.values()) program.abandon();
  }

  async close(): Promise<void> {
    for (const program of this.programs.values()) await program.kill();
    await this.partner.close();
    await this.tap?.close();
    await this.feeds?.close();
    await this.#postgres?.remove();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  #programs(kind: WorldKind, brokerFile: string, isSupervised: boolean): Program[] {
    const preload = { agent: [], gateway: kind.sources === undefined ? [] : ['--import', DIES_AT_CREDIT] };
    const paybox = (command: 'agent' | 'gateway', file: string, onLine: (line: LogLine, life: number) => void) =>
      new Program({
        name: command,
        command: NODE,
        args: [
          '--max-semi-space-size=2',
          ...preload[command],
          cliScript(),
          command,
          '--config',
          join(this.#folder, file),
        ],
        isReady: (line) => line.event === 'ready',
        retryCodes: isSupervised && command === 'gateway' ? ANY_END : [PEER_MISSING],
        onLine,
      });
    const gateway = paybox('gateway', GATEWAY_FILE, (line, life) => this.onGatewayLine?.(line, life));
    const agent = paybox('agent', 'agent.yaml', (line, life) => {
      this.evidence.take(line, life);
      this.onAgentLine?.(line);
    });
    if (kind.link !== 'mosquitto') return [gateway, agent];
    const broker = new Program({
      name: 'broker',
      command: findProgram(PROGRAMS.mosquitto) ?? 'mosquitto',
      args: ['-c', brokerFile],
      isReady: (line) => line.event.endsWith(' running'),
      retryCodes: [],
      onLine: () => undefined,
    });
    return [broker, gateway, agent];
  }
}

/** What a world has beside its programs. */
interface Around {
  partner: PartnerEndpoint;
  tap: Tap | undefined;
  feeds: Feeds | undefined;
  postgres: PostgresServer | undefined;
  databaseUrl: string | undefined;
}

interface Ports {
  http: number;
  mqtt: number;
  box: number;
  /** Where the box reaches the broker. */
  boxMqtt: number;
}

async function writeConfigs(
  kind: WorldKind,
  folder: string,
  ports: Ports,
  { partner, feeds, postgres, databaseUrl: given }: Around,
): Promise<void> {
  const { bankAccount } = DEMO.account;
  // With PostgreSQL only a folder that is there gets the mark of the newest payment.
  await mkdir(join(folder, GATEWAY_DATA));
  const databaseUrl = given ?? (await postgres?.database());
  const brokerUrl = `mqtt://127.0.0.1:${ports.mqtt}`;
  const gatewayMqtt = {
    mosquitto: { url: brokerUrl, ...BROKER_LOGIN },
    embedded: { embedded: { port: ports.mqtt } },
    http: null,
  };
  const gateway = {
    http: { port: ports.http },
    mqtt: gatewayMqtt[kind.link],
    dataDir: GATEWAY_DATA,
    qrLifetimeSeconds: kind.qrLifetimeSeconds,
    callbackRetryWaitsMs: CALLBACK_RETRY_WAITS_MS,
    partners: [{ ...DEMO.partner, accounts: [bankAccount], callback: { url: partner.url } }],
    accounts: [DEMO.account],
    ...(databaseUrl && { databaseUrl }),
    ...(feeds && { sources: feeds.sources, contentPrefix: 'code' }),
    ...boxesOf(kind),
  };
  const speech = join(folder, 'speech');
  const agent = {
    ...identityOf(kind, ports),
    displays: [{ driver: 'browser', width: 320, height: 240 }],
    voice: { driver: 'espeak', options: { command: speech, player: { kind: 'aplay', command: 'true' } }, chime: false },
    http: { port: ports.box },
    dataDir: 'box',
    paidHoldSeconds: 0.2,
    endedHoldSeconds: 0.1,
  };
  await writeFile(join(folder, GATEWAY_FILE), JSON.stringify(gateway));
  await writeFile(join(folder, 'agent.yaml'), JSON.stringify(agent));
  await writeFile(speech, SPEECH_PROGRAM);
  await chmod(speech, 0o755);
  await writeFile(`${speech}.wav`, encodeWav(silence(10, SPEECH_FORMAT)));
  await writeFile(`${speech}.spoken`, '');
}

function boxesOf({ dialect }: WorldKind): object {
  const { secret: _, ...names } = DEMO.box;
  const account = DEMO.account.bankAccount;
  if (!dialect) return { boxes: [{ ...DEMO.box, account }] };
  const { macAddr, ...vietqrBoxes } = DIALECT;
  return { boxes: [{ ...names, dialect: 'vietqr', macAddr, account }], vietqrBoxes };
}

function identityOf({ link, dialect }: WorldKind, ports: Ports): object {
  const { secret: _, ...names } = DEMO.box;
  if (link === 'http') return { box: DEMO.box, link: { transport: 'http', url: `http://127.0.0.1:${ports.http}` } };
  const url = `mqtt://127.0.0.1:${ports.boxMqtt}`;
  if (!dialect) return { box: DEMO.box, link: { transport: 'mqtt', url } };
  const { login, ...salts } = DIALECT;
  // Each amount is paid once here: whatever comes again, however late, is the same payment.
  return { box: names, link: { transport: 'vietqr', url, ...salts, ...login, repeatWindowSeconds: 3_600 } };
}
