import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayClient } from '../../src/bench/engine/clients/gateway.ts';
import { startPartnerServer } from '../../src/bench/engine/clients/partner-server.ts';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { judge } from '../../src/bench/fleet/judge.ts';
import { runLoad } from '../../src/bench/fleet/load.ts';
import { Measurements } from '../../src/bench/fleet/measurements.ts';
import { OrderTracker } from '../../src/bench/fleet/order-tracker.ts';
import { type FleetBox, type FleetSetup, startFleetBoxes } from '../../src/commands/actions/fleet-boxes.ts';
import { type AgentConfig, parseAgentConfig } from '../../src/device/agent/config.ts';
import { lightSetupOf } from '../../src/device/agent/light-agent.ts';
import { setupOf } from '../../src/device/agent/setup.ts';
import { transportNamed } from '../../src/device/agent/transports/registry.ts';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { systemClock, withDeadline } from '../../src/lib/clock.ts';
import { reasonOf } from '../../src/lib/errors.ts';
import type { Logger } from '../../src/lib/log.ts';
import { type Random, systemRandom } from '../../src/lib/random.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { answersMqtt, type BrokerCluster, type BrokerNode } from '../support/broker-node.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, makeFolder } from '../support/net.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type Configured, type GatewayAt, type Running, start, startConfigured } from '../support/processes.ts';
import { cli } from '../support/program-code.ts';
import { findProgram, PROGRAMS } from '../support/programs.ts';
import { type BrokerName, startBroker } from './brokers.ts';
import { atPort, type Links, startLinks } from './links.ts';
import { ClusterRows } from './rows.ts';
import { lateWrites, logWrites, type Write, writesOf } from './write-history.ts';

const ADMIN_TOKEN = newSecret(systemRandom);
const PARTNER = { username: 'shop', password: 'cluster-partner-password-of-a-test' };
const BROKER_PASSWORD = 'cluster-broker-password-of-a-test';

const SETTLE_MS = 60_000;
const LOG_LINES_MAX = 400;
const FAILED_STARTS_MAX = 10;
/** A call may meet a gateway that the others have just buried, because the machine was too busy. */
const JUDGES_MAX = 3;
/** A gateway that has ended is started again after this time, as by a supervisor. */
const REVIVE_MS = 500;
const CLOSE_MS_MAX = 30_000;

export interface WorldSize {
  gateways: number;
  accounts: number;
  /** Every second one over HTTP; every fourth of each is full, the others are light. */
  boxes: number;
  broker?: BrokerName;
}

/** Programs: gateways and broker nodes behind HAProxy, PostgreSQL; and boxes in this process. */
export class ClusterWorld {
  readonly tracker = new OrderTracker(systemClock);
  readonly measured = new Measurements();
  readonly boxes: FleetBox[] = [];
  /** Callbacks that the partner got, by transactionId. */
  readonly callbacks = new Map<string, number>();
  readonly gateways: Configured<GatewayAt>[] = [];
  /** Gateways that a test has killed, and that nobody starts again yet. */
  readonly #down = new Set<number>();
  readonly #failedStarts: string[] = [];
  readonly origin: string;
  readonly postgres: PostgresServer;
  #databaseUrl = '';
  readonly #size: WorldSize;
  readonly #closing = new AbortController();
  readonly #ends: [what: string, end: () => unknown][] = [];
  /** Of each gateway. */
  readonly links: Links[] = [];
  #broker: BrokerCluster | undefined;

  private constructor(parts: { size: WorldSize; origin: string; postgres: PostgresServer }) {
    this.#size = parts.size;
    this.origin = parts.origin;
    this.postgres = parts.postgres;
  }

  /** Starts everything, also outside a test; the caller closes it. */
  static async open(size: WorldSize, log: Logger = keptLog().log): Promise<ClusterWorld> {
    const postgres = await startPostgres();
    const { folder, remove } = await makeFolder();
    const boxes = Array.from({ length: size.boxes }, (_, i) => ({
      terminalCode: `VVB${String(i + 1).padStart(6, '0')}`,
      serialNumber: `VVB${String(i + 900_001).padStart(6, '0')}`,
      secret: newSecret(systemRandom),
      account: accountOf(i % size.accounts).bankAccount,
    }));
    const logins = Object.fromEntries(boxes.map(({ terminalCode, secret }) => [terminalCode, loginOf(secret)]));
    const [frontPort = 0, brokerPort = 0, ...ports] = await freePorts(size.gateways + 2);
    const origin = `http://127.0.0.1:${frontPort}`;
    const world = new ClusterWorld({ size, origin, postgres });
    world.#ends.push(['folder', remove]);
    try {
      const broker = await startBroker(size.broker ?? 'mosquitto', { ...logins, [GATEWAY_LOGIN]: BROKER_PASSWORD });
      world.#broker = broker;
      const front = await world.#startFront(folder, { frontPort, brokerPort, ports });
      const databaseUrl = await postgres.database();
      world.#databaseUrl = databaseUrl;
      const partner = await startPartnerServer();
      world.#ends.push(['partner', () => partner.close()]);
      partner.onReceived(({ transactionId: id = '' }) => world.callbacks.set(id, (world.callbacks.get(id) ?? 0) + 1));
      const accounts = Array.from({ length: size.accounts }, (_, i) => accountOf(i));
      const cables = await startLinks({ database: postgres.port, broker: brokerPort, gateways: ports.length });
      world.#ends.push(['cables', cables.close]);
      world.links.push(...cables.links);
      for (const [i, port] of ports.entries()) {
        const links = cables.links[i];
        if (links === undefined) throw new Error(`no cables for gateway ${i}`);
        const mqttUrl = `mqtt://127.0.0.1:${links.broker.port}`;
        const config = {
          http: { port, trustedProxies: ['127.0.0.1'] },
          mqtt: { url: mqttUrl, username: GATEWAY_LOGIN, password: BROKER_PASSWORD },
          cluster: { name: nameOf(i) },
          ...{
            dataDir: join(folder, `gateway-${i}`),
            databaseUrl: atPort(databaseUrl, links.database.port),
            adminToken: ADMIN_TOKEN,
            accounts,
            boxes,
          },
          partners: [{ ...PARTNER, accounts: accounts.map((it) => it.bankAccount), callback: { url: partner.url } }],
          qrLifetimeSeconds: 20,
        };
        await mkdir(join(folder, `at-${i}`));
        const launch = (...args: string[]) => world.#start(cli(), args);
        world.gateways.push(await startConfigured<GatewayAt>('gateway', config, join(folder, `at-${i}`), launch));
      }
      await logWrites(postgres, databaseUrl);
      void world.#supervise();
      await world.#frontReady(front);
      await world.#startBoxes(boxes, brokerPort, folder, log);
      return world;
    } catch (error) {
      await world.close();
      throw error;
    }
  }

  /** A client of the cluster for an account by number. */
  client(account: number): GatewayClient {
    return new GatewayClient({
      ...{ origin: this.origin, baseUrl: `${this.origin}/vqr`, partner: PARTNER, adminToken: ADMIN_TOKEN },
      account: accountOf(account),
    });
  }

  /** Sells and pays at all accounts at once, `perAccount` orders each. */
  async sell(runId: string, { perAccount, perSecond }: { perAccount: number; perSecond: number }, random: Random) {
    const { tracker, measured } = this;
    const plan = { pushesPerSecond: perSecond, pushes: perAccount, seconds: undefined, confirmsDisplayed: true };
    const selling = Array.from({ length: this.#size.accounts }, async (_, account) => {
      const deps = { tracker, measured, clock: systemClock, random, signal: this.#closing.signal };
      const run = { ...deps, gateway: this.client(account), runId: `${runId}a${account}` };
      const hasBegun = () => [...tracker.orders].some(({ orderId }) => orderId.startsWith(`${run.runId}-`));
      const begin = async (): Promise<boolean> => {
        return runLoad(this.boxesOf(account), plan, run).then(
          () => true,
          // The call for a token, before the first order, may meet a gateway that is just killed.
          (error: unknown) => (!hasBegun() && !this.#closing.signal.aborted ? false : Promise.reject(error)),
        );
      };
      await eventually('sales to begin', begin);
    });
    await Promise.all(selling);
  }

  /** Waits for what is still to be shown, said, reported or called back; then the tracker has what is wrong with the money. */
  async judge(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await judge({
          ...{ gateway: this.client(0), boxes: this.boxes, tracker: this.tracker, measured: this.measured },
          ...{ clock: systemClock, settleTimeoutMs: SETTLE_MS, signal: this.#closing.signal },
          callbacksReceived: (id) => this.callbacks.get(id) ?? 0,
        });
      } catch (error) {
        if (attempt >= JUDGES_MAX) throw error;
        await systemClock.sleep(SETTLE_MS / 10, this.#closing.signal);
      }
    }
  }

  /** Writes to the store and burials, in their order. */
  writes(): Promise<Write[]> {
    return writesOf(this.postgres, this.#databaseUrl);
  }

  /** Writes of runs whose leases had gone to others. */
  async lateWrites(): Promise<string[]> {
    return lateWrites(await this.writes());
  }

  get rows(): ClusterRows {
    return new ClusterRows(this.#databaseUrl);
  }

  /** The boxes of an account. */
  boxesOf(account: number): FleetBox[] {
    return this.boxes.filter((box) => (Number(box.terminalCode.slice(3)) - 1) % this.#size.accounts === account);
  }

  /**
   * Whether a box shows the QR of a push that was answered E05: the answer was lost with its gateway, the push perhaps not
   * (PROTOCOL.md, clause SHA-5). It ends by its lifetime at the latest.
   */
  get showsUnanswered(): boolean {
    return [...this.tracker.orders].some((it) => it.answer === 'E05' && this.tracker.shownOn(it.terminalCode) === it);
  }

  get isOnline(): boolean {
    return this.boxes.every((box) => box.isOnline());
  }

  /** Ends a gateway with this signal. It stays down until `restart`. */
  async kill(gateway: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#down.add(gateway);
    const running = this.gateways[gateway]?.running;
    running?.child.kill(signal);
    await running?.ended;
  }

  /** Has a gateway that was killed started again, as often as a start fails. Settles once it runs. */
  async restart(gateway: number): Promise<void> {
    this.#down.delete(gateway);
    await eventually('a gateway to run again', () => this.#runs(gateway), SETTLE_MS);
  }

  #runs(gateway: number): boolean {
    const { exitCode = null, signalCode = null } = this.gateways[gateway]?.running.child ?? {};
    return exitCode === null && signalCode === null;
  }

  signal(gateway: number, signal: NodeJS.Signals): void {
    this.gateways[gateway]?.running.child.kill(signal);
  }

  get brokerNodes(): readonly BrokerNode[] {
    return this.#broker?.nodes ?? [];
  }

  /** What the gateway at this place says of itself. */
  async health(gateway: number): Promise<{ status: number; body: string }> {
    const at = this.gateways[gateway]?.at.consoleUrl ?? '';
    const answer = await fetch(new URL('/healthz', at), { signal: AbortSignal.timeout(5_000) });
    return { status: answer.status, body: await answer.text() };
  }

  /** The newest lines of all gateways, in the order of their times; each begins with its gateway. */
  logs(): string {
    const lines = this.gateways.flatMap((it, i) => {
      // What a program that crashes writes has no time: it stays behind the line before it.
      let time = '';
      return it.running
        .output()
        .split('\n')
        .map((line) => {
          time = /"time":"([^"]+)"/.exec(line)?.[1] ?? time;
          return { time, text: `${i} ${line}` };
        });
    });
    const ordered = lines.toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
    const texts = ordered.map(({ text }) => text);
    return [...this.#failedStarts.slice(-FAILED_STARTS_MAX), ...texts.slice(-LOG_LINES_MAX)].join('\n');
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const boxes = this.boxes.map((box): [string, () => unknown] => [box.terminalCode, () => box.close()]);
    const failed = (await Promise.all(boxes.map(ended))).filter((it) => it !== undefined);
    const rest = [...this.#ends.toReversed()];
    rest.push(['broker', () => this.#broker?.close()], ['PostgreSQL', () => this.postgres.remove()]);
    for (const part of rest) failed.push(...[await ended(part)].filter((it) => it !== undefined));
    if (failed.length > 0) throw new Error(`not closed: ${failed.join('; ')}`);
  }

  /** Starts a program that ends with the world. */
  #start(command: string, args: readonly string[]): Running {
    const running = start(command, args);
    this.#ends.push([command, () => running.stop('SIGKILL')]);
    return running;
  }

  /** Starts again what has ended, also by itself: a run that others have buried ends, and a start may find no database. */
  async #supervise(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await systemClock.sleep(REVIVE_MS, signal);
      await Promise.all(
        this.gateways.map(async (it, i) => {
          if (signal.aborted || this.#down.has(i) || this.#runs(i)) return;
          try {
            this.gateways[i] = await it.again();
          } catch (error) {
            this.#failedStarts.push(`${i} does not start: ${reasonOf(error)}`);
          }
        }),
      );
    }
  }

  /** HAProxy before it has a gateway to lead to: the gateways reach the broker through it. */
  async #startFront(
    folder: string,
    { frontPort, brokerPort, ports }: { frontPort: number; brokerPort: number; ports: readonly number[] },
  ): Promise<Running> {
    const servers = (all: readonly number[]) => all.map((it, i) => `    server s${i} 127.0.0.1:${it} check\n`).join('');
    const sample = await readFile(join(import.meta.dirname, '../../scripts/haproxy.cfg'), 'utf8');
    const [web = '', broker = ''] = sample.split(/^(?=frontend (?:broker|embedded))/m);
    const withServers = (part: string, all: readonly number[]) =>
      part.replaceAll(/( +server \w+ [\d.:]+ check\n)+/g, servers(all));
    const brokerPorts = this.brokerNodes.map((node) => node.port);
    const config = [
      withServers(web, ports).replace('127.0.0.1:8800', `127.0.0.1:${frontPort}`),
      withServers(broker, brokerPorts).replace('127.0.0.1:1884', `127.0.0.1:${brokerPort}`),
    ];
    const file = join(folder, 'haproxy.cfg');
    await writeFile(file, config.join(''));
    const front = this.#start(findProgram(PROGRAMS.haproxy) ?? 'haproxy', ['-db', '-f', file]);
    await eventually('the front of the broker', () => {
      if (front.child.exitCode !== null) throw new Error(`HAProxy ended: ${front.output()}`);
      return answersMqtt(brokerPort);
    });
    return front;
  }

  async #frontReady(front: Running): Promise<void> {
    await eventually('HAProxy', async () => {
      if (front.child.exitCode !== null) throw new Error(`HAProxy ended: ${front.output()}`);
      return (await fetch(`${this.origin}/openapi.json`).catch(() => undefined))?.ok;
    });
  }

  async #startBoxes(
    boxes: readonly { terminalCode: string; serialNumber: string; secret: string }[],
    brokerPort: number,
    folder: string,
    log: Logger,
  ): Promise<void> {
    const lightOf = async (name: string) => {
      const transport = transportNamed('link', name);
      const opener = await transport.openLight?.(systemClock);
      if (opener === undefined) throw new Error(`no light client for ${name}`);
      this.#ends.push([`light boxes over ${name}`, () => opener.close()]);
      return (config: AgentConfig): FleetSetup => ({ light: lightSetupOf(config, transport, opener) });
    };
    const light = { mqtt: await lightOf('mqtt'), http: await lightOf('http') };
    const setups = boxes.map(({ terminalCode, serialNumber, secret }, i): FleetSetup => {
      const isHttp = i % 2 === 1;
      const link = isHttp
        ? { transport: 'http', url: this.origin }
        : { transport: 'mqtt', url: `mqtt://127.0.0.1:${brokerPort}` };
      const box = { terminalCode, serialNumber, secret };
      const dataDir = join(folder, terminalCode);
      const config = parseAgentConfig(
        { box, link, dataDir, http: { port: 0 }, displays: [{ driver: 'browser' }] },
        'box',
      );
      if (i % 8 < 2) return { full: setupOf(config) };
      return isHttp ? light.http(config) : light.mqtt(config);
    });
    const deps = { clock: systemClock, random: systemRandom, log, signal: this.#closing.signal, tracker: this.tracker };
    await startFleetBoxes(setups, this.boxes, deps);
  }
}

/** Ends a part of the world; settles with why it did not end. */
async function ended([what, end]: [what: string, end: () => unknown]): Promise<string | undefined> {
  try {
    const closing = Promise.resolve(end()).then(() => true);
    return (await withDeadline(systemClock, CLOSE_MS_MAX, closing))
      ? undefined
      : `${what}: not within ${CLOSE_MS_MAX} ms`;
  } catch (error) {
    return `${what}: ${reasonOf(error)}`;
  }
}

/** The name of the gateway at this place. */
export function nameOf(gateway: number): string {
  return `gw-${gateway}`;
}

function accountOf(number: number) {
  return {
    bankAccount: String(1_000_000_000 + number),
    bankCode: 'MB',
    userBankName: `SHOP ${number}`,
  };
}
