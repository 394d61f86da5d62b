import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import { endAll, STOP_BUDGET_MS } from '../lib/ending.ts';
import type { PayboxError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { Names } from '../lib/names.ts';
import type { Random } from '../lib/random.ts';
import { readPemFiles } from '../lib/tls.ts';
import { Hub } from './boxes/hub.ts';
import { MessageSigner } from './boxes/message-signer.ts';
import type { BrokerAddress, MqttChannel, MqttChannelDeps } from './boxes/mqtt-channel.ts';
import type { LimitedSocket } from './boxes/packet-limit.ts';
import { attemptCallback, createPost } from './callbacks/attempt.ts';
import { cacheBacklog, createBacklog } from './callbacks/backlog.ts';
import { portOf } from './callbacks/destination.ts';
import { CallbackDispatcher } from './callbacks/dispatcher.ts';
import { retryWaitsOf } from './callbacks/retry-schedule.ts';
import { Changes } from './changes.ts';
import type { GatewayConfig } from './config.ts';
import { createDirectory } from './directory.ts';
import { deliveriesFor } from './domain/payment.ts';
import { Enrolments } from './enrolments.ts';
import { SettableClock } from './faults/clock-faults.ts';
import { FaultInjection } from './faults/fault-injection.ts';
import { Health } from './health.ts';
import { adminRoutes } from './http/admin-routes.ts';
import { createApp } from './http/app.ts';
import { boxRoutes } from './http/box-routes.ts';
import { answerBeforeClosing } from './http/closing.ts';
import { adminEnrolmentRoutes, boxEnrolmentRoutes } from './http/enrolment-routes.ts';
import { pageRoutes } from './http/page-routes.ts';
import { serviceRoutes } from './http/service-routes.ts';
import { openKnownLogins } from './known-logins.ts';
import { addressError, readServerTls, urlHost } from './listen.ts';
import { Logins } from './logins.ts';
import { createMetrics } from './metrics.ts';
import { Service } from './service.ts';
import type { DeliveriesFor } from './store/integrity/requeue.ts';
import { Pruner } from './store/pruner.ts';
import { type OnStandby, openStore, type Store } from './store/store.ts';
import { createTokens } from './tokens.ts';
import { TrafficLog } from './traffic-log.ts';

export interface GatewayDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Called once when the gateway waits for another to leave the database. */
  onStandby?: OnStandby;
}

/** A running gateway. */
export interface Gateway {
  /** Where it listens, as `http://127.0.0.1:8800`. */
  origin: string;
  /** `{base_url}` of the service, as `http://127.0.0.1:8800/vqr`. */
  baseUrl: string;
  /** Where boxes find the broker; `undefined` without MQTT. */
  mqttUrl: string | undefined;
  /** Settles once another gateway has taken its database over: it can do nothing more, and is to end at once. */
  superseded: Promise<PayboxError> | undefined;
  /**
   * Answers whoever waits, says goodbye to the boxes and ends all that it started; what hangs is left behind after
   * `withinMs`. Only a write in hand is waited for beyond it. What is stored is taken up by the next start.
   */
  close(withinMs?: number): Promise<void>;
}

/** What has been opened: parts that end together, and the store, which they write into, after them. */
class Opened {
  readonly #deps: GatewayDeps;
  readonly #ends = new Map<string, () => unknown>();
  #store: Store | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  add(part: string, end: () => unknown): void {
    this.#ends.set(part, end);
  }

  /** Remembers to close the store, and hands it on. */
  keep(store: Store): Store {
    this.#store = store;
    return store;
  }

  close(withinMs: number): Promise<void> {
    this.#closing ??= this.#close(withinMs);
    return this.#closing;
  }

  async #close(withinMs: number): Promise<void> {
    await endAll(Object.fromEntries(this.#ends), withinMs, this.#deps);
    await this.#store?.close();
  }
}

/**
 * Starts the mock of the payment QR service. Settles once it answers over HTTP and MQTT. Throws ConfigError when a
 * port or the store cannot be had, MissingPeerError when an external broker or a database server does not answer.
 */
export async function startGateway(config: GatewayConfig, deps: GatewayDeps): Promise<Gateway> {
  const opened = new Opened(deps);
  try {
    return await start(config, deps, opened);
  } catch (error) {
    await opened.close(STOP_BUDGET_MS);
    throw error;
  }
}

async function start(config: GatewayConfig, world: GatewayDeps, opened: Opened): Promise<Gateway> {
  const clock = new SettableClock(world.clock);
  const deps = { ...world, clock };
  const { random, log } = deps;
  const changes = new Changes();
  const owedAnew: DeliveriesFor = (payment, order) =>
    // What it was told of is not known any more: it is told as what may have been said before (AGT-11).
    deliveriesFor(payment, order, createDirectory(config), { callbackId: random.uuid(), isOnline: () => true });
  const store = opened.keep(await openStore(config, log, { onStandby: world.onStandby, deliveriesFor: owedAnew }));
  const secrets = await store.boxSecrets();
  const directory = createDirectory(config, secrets);
  await store.orders.failUnfinished(clock.wallMs(), config.confirm);
  const seams = new FaultInjection({ ...deps, config, directory, changes });
  const { faults, links } = seams;
  const tokens = seams.tokens(await createTokens(store, clock, random));
  const wire = new TrafficLog(deps);
  const hub = new Hub({ ...deps, directory, store, changes, wire, ...config });
  const seals = await MessageSigner.open({ ...deps, hub, directory, store, wire });
  opened.add('faults', () => faults.close());
  opened.add('boxes', () => hub.close());
  const backlog = createBacklog({ clock, store });
  const cachedBacklog = cacheBacklog(backlog, clock);
  const metrics = createMetrics(() => hub.online, cachedBacklog);
  const ownPorts: number[] = [];
  const names = new Names(deps);
  const dispatcher: CallbackDispatcher = new CallbackDispatcher({
    ...deps,
    directory,
    store,
    changes,
    metrics,
    wire,
    post: createPost(
      () => ownPorts,
      (signal) => names.lookup(signal),
    ),
    attempt: seams.attempt(attemptCallback, (id) => dispatcher.resend(id)),
    retryWaitsMs: retryWaitsOf(config),
  });
  opened.add('callbacks', () => dispatcher.close());
  opened.add('names', () => names.close());
  const pruner = new Pruner({ store, clock, log });
  opened.add('pruner', () => pruner.close());

  const boxHub = seams.boxHub(hub);
  const { known, close: keepKnown } = await openKnownLogins({ ...deps, store });
  opened.add('known logins', keepKnown);
  const logins = new Logins(clock, known);
  const mqtt = await startMqtt(config, { ...deps, hub: boxHub, links, seals, directory, logins }, seams, opened);
  const serviceHub = seams.serviceHub(hub, (orderRef) => service.payOrder(orderRef));
  const pay = seams.pay({ ...deps, directory, store, hub, dispatcher, changes });
  const service: Service = new Service({ ...deps, config, directory, store, hub: serviceHub, pay, changes, metrics });
  const { tls } = config.http;
  const app = createApp(log, clock, tls && readServerTls(tls, 'http.tls'));
  answerBeforeClosing(app, clock);
  const originOf = (request: FastifyRequest) => originFor(request, config, () => originAt(app, config));
  const endStreams: (() => void)[] = [];
  opened.add('requests', () => {
    for (const end of endStreams) end();
    return app.close();
  });
  const calls = { service, directory, tokens, logins, wire, originOf, goWrong: seams.calls(tokens) };
  app.register(async (scope) => serviceRoutes(scope, { ...deps, ...calls }), { prefix: config.basePath });
  app.register(
    async (scope) => void endStreams.push(boxRoutes(scope, { ...deps, hub: boxHub, links, seals, directory, logins })),
  );
  const baseUrl = () => `${originAt(app, config)}${config.basePath}`;
  const owned = {
    ...deps,
    config,
    service,
    dispatcher,
    seals,
    logins,
    changes,
    store,
    hub,
    directory,
    wire,
    faults,
    backlog,
  };
  app.register(async (scope) => void endStreams.push(adminRoutes(scope, { ...owned, baseUrl })), { prefix: '/_mock' });
  const expel = (terminalCode: string, reason: string) => {
    hub.expel(terminalCode, reason);
    mqtt?.drop(terminalCode);
  };
  const isOnline = (terminalCode: string) => hub.session(terminalCode) !== undefined;
  const enrolments = await Enrolments.open({ ...deps, config, directory, store, secrets, changes, isOnline, expel });
  app.register(async (scope) => boxEnrolmentRoutes(scope, { enrolments, directory, logins, log }));
  app.register(async (scope) => adminEnrolmentRoutes(scope, { enrolments, logins, log, ...config }), {
    prefix: '/_mock',
  });
  const health = new Health({ clock, store, isBrokerThere: () => mqtt?.isConnected() ?? true });
  app.register((scope) =>
    pageRoutes(scope, { store, metrics, health, backlog: cachedBacklog, log, basePath: config.basePath }),
  );
  await listen(app, config);
  ownPorts.push(...portsOf(originAt(app, config), config.mqtt?.embedded === undefined ? undefined : mqtt?.url));
  dispatcher.start();
  pruner.start();

  const origin = originAt(app, config);
  const mqttUrl = mqtt?.url;
  log.info('gateway-ready', { origin, mqttUrl });
  const close = (withinMs = STOP_BUDGET_MS) => opened.close(withinMs);
  return { origin, baseUrl: `${origin}${config.basePath}`, mqttUrl, superseded: store.superseded, close };
}

function portsOf(...addresses: (string | undefined)[]): number[] {
  return addresses.flatMap((address) => (address === undefined ? [] : [portOf(new URL(address))]));
}

interface Mqtt {
  url: string;
  isConnected: () => boolean;
  drop: (terminalCode: string) => void;
}

/** Joins the boxes on MQTT, on the embedded or an external broker; where they find it, and whether it is there. */
async function startMqtt(
  config: GatewayConfig,
  deps: MqttChannelDeps & { logins: Logins },
  seams: FaultInjection,
  opened: Opened,
): Promise<Mqtt | undefined> {
  if (config.mqtt === null) return undefined;
  const { openMqttChannel } = await import('./boxes/mqtt-channel.ts');
  const { embedded, url = '', username, password, tls } = config.mqtt;
  if (embedded === undefined) {
    const channel = await openMqttChannel(
      { where: url, username, password, tls: tls && readPemFiles(tls, 'mqtt.tls') },
      deps,
    );
    opened.add('broker', () => channel.close());
    // A broker of its own has logins of its own.
    return { url, isConnected: channel.isConnected, drop: () => undefined };
  }
  const { startBroker } = await import('./boxes/broker.ts');
  let channel: MqttChannel | undefined;
  const onBoxConnected = (box: string, socket: LimitedSocket) => {
    const disconnected = seams.links.connected(box, { cut: () => socket.destroy(), hold: () => socket.hold() });
    socket.once('close', disconnected);
  };
  const sessionInUse = (box: string) => deps.hub.session(box)?.sessionId;
  const onBoxGone = (box: string) => channel?.boxGone(box);
  const broker = await seams.broker(embedded, (at, login) =>
    startBroker(at, { ...deps, login, sessionInUse, onBoxConnected, onBoxGone }),
  );
  opened.add('broker', async () => {
    // First the goodbye, which the broker still brings to the boxes.
    await channel?.close();
    await broker.close();
  });
  const address: BrokerAddress = { where: broker.connect, ...broker.login };
  channel = await openMqttChannel(address, deps);
  return { url: broker.url, isConnected: channel.isConnected, drop: broker.drop };
}

async function listen(app: FastifyInstance, { http }: GatewayConfig): Promise<void> {
  try {
    await app.listen({ host: http.host, port: http.port });
  } catch (error) {
    throw addressError(error, http, 'http');
  }
}

function originAt(app: FastifyInstance, { http }: GatewayConfig): string {
  const address = app.server.address();
  const port = address === null || typeof address === 'string' ? http.port : address.port;
  return `${schemeOf(http)}://${urlHost(http.host)}:${port}`;
}

function schemeOf({ tls }: GatewayConfig['http']): string {
  return tls === undefined ? 'http' : 'https';
}

/** Where this caller reached the gateway, so that links in the answer work for it. */
function originFor(request: FastifyRequest, { http }: GatewayConfig, otherwise: () => string): string {
  const { host = '' } = request.headers;
  return /^[\w.[\]:-]{1,255}$/.test(host) ? `${schemeOf(http)}://${host}` : otherwise();
}
