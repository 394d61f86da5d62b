import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import type { PayboxError } from '../lib/errors.ts';
import { HostResolver } from '../lib/resolver.ts';
import { STOP_BUDGET_MS } from '../lib/shutdown.ts';
import { Pruner } from '../store/pruner.ts';
import type { NewPayment } from '../store/repositories/payments.ts';
import type { OnStandby } from '../store/store.ts';
import { openKnownLogins } from './access/known-logins.ts';
import { Logins } from './access/logins.ts';
import { openAccess } from './access/open-access.ts';
import { createTokens } from './access/tokens.ts';
import type { BoxScreen } from './box-screen.ts';
import { signedConnections } from './boxes/connection.ts';
import type { Dialect, DialectDeps } from './boxes/dialect/dialect.ts';
import { expeller } from './boxes/expeller.ts';
import { Hub } from './boxes/hub.ts';
import { MessageSigner } from './boxes/message-signer.ts';
import type { Mqtt, MqttDeps } from './boxes/mqtt.ts';
import { SessionCheck } from './boxes/session-check.ts';
import { portsOf } from './callback-destination.ts';
import { attemptCallback, createPost } from './callbacks/attempt.ts';
import { cacheBacklog, createBacklog } from './callbacks/backlog.ts';
import { CallbackDispatcher, type CallbackDispatcherDeps } from './callbacks/dispatcher.ts';
import { Changes } from './changes.ts';
import type { GatewayConfig } from './config.ts';
import type { Context } from './context.ts';
import { NO_FAULTS } from './fault-orders.ts';
import type { Edges, FaultTargets } from './faults/edges.ts';
import { openHealth } from './health.ts';
import { answerBeforeClosing, createApp, takeCarriedBodies } from './http/app.ts';
import { listenAt, originAt, type RoutesDeps, registerRoutes } from './http/routes.ts';
import { readServerTls } from './listen.ts';
import { createMetrics } from './metrics.ts';
import { OpenParts } from './open-parts.ts';
import { openGatewayStore } from './open-store.ts';
import { retryWaitsOf } from './retry-schedule.ts';
import { type Money, type Outside, openMoney } from './service/money.ts';
import { createReceivePayment } from './service/receive-payment.ts';
import { Sales } from './service/sales.ts';
import { Service } from './service/service.ts';
import { heedNews, homeIn, isOfRegistry, type News, overCluster, type ShardPlace } from './shard.ts';
import type { CreditResult, CreditTask, ToldCredit } from './told-credit.ts';
import { TrafficLog } from './traffic-log.ts';

export interface GatewayDeps extends Pick<Context, 'clock' | 'random' | 'log'> {
  /** Called once when the gateway waits because another one uses the database. */
  onStandby?: OnStandby;
  /** The shard of a cluster that it is: it opens no HTTP port of its own. */
  place?: ShardPlace;
  boxScreen?: BoxScreen;
}

/** A running gateway. */
export interface Gateway {
  /** Its address, as `http://127.0.0.1:8800`. */
  origin: string;
  /** `{base_url}` of the service, as `http://127.0.0.1:8800/vqr`. */
  baseUrl: string;
  /** Address of the broker; `undefined` without MQTT. */
  mqttUrl: string | undefined;
  /** Resolves with an error once another gateway has taken over the database: this one must end at once. */
  superseded: Promise<PayboxError> | undefined;
  /** Answers a request that came to another server: that of the cluster's member which runs it. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** In a shard of a cluster: does what another shard asks of it. Rejects when the credit is not known to be stored. */
  takeCredit?: ((task: CreditTask, told: ToldCredit) => Promise<CreditResult>) | undefined;
  /** Takes what another shard of its cluster tells. */
  heed(news: News): Promise<void>;
  /** Returns why the gateway takes no calls now; undefined if it does. Settles within 2 s. */
  unready(): Promise<string | undefined>;
  /**
   * Answers waiting requests, tells boxes goodbye and ends all parts, or abandons what hangs after `withinMs`. The next
   * start continues with what is stored.
   */
  close(withinMs?: number): Promise<void>;
}

/**
 * Starts the mock of the payment QR service. Settles once it answers over HTTP and MQTT. Throws ConfigError when a port
 * or the store cannot be opened, MissingPeerError when an external broker or a database server does not answer.
 */
export async function startGateway(config: GatewayConfig, deps: GatewayDeps): Promise<Gateway> {
  const opened = new OpenParts(deps);
  try {
    return await start(config, deps, opened);
  } catch (error) {
    await opened.close(STOP_BUDGET_MS);
    throw error;
  }
}

async function start(config: GatewayConfig, world: GatewayDeps, opened: OpenParts): Promise<Gateway> {
  const { random, log, place } = world;
  const changes = new Changes();
  // Set later: faults call parts that are made after them.
  const targets: FaultTargets = { payPush: async () => undefined, resendCallback: async () => undefined };
  const edges = await edgesOf(config, world, changes, targets);
  const clock = edges.clock;
  const base = { ...world, clock, config, changes };
  // Set later: what a welcome says of an account is known once its sources are open.
  const late: { money?: Money } = {};
  const virtualAccountsOf = (bankAccount: string) => late.money?.makers.virtualAccountsOf(bankAccount) ?? [];
  const stored = await openGatewayStore(config, { ...world, clock, machine: world.clock, virtualAccountsOf }, opened);
  const { store, directory, vault, time } = stored;
  await store.orders.failUnfinished(clock.wallMs(), config.confirm);
  const trafficLog = new TrafficLog(base);
  const shared = { ...base, directory, store, trafficLog };
  const hub = new Hub({ ...shared, ...config, ...homeIn(place) });
  const signer = await MessageSigner.open({ ...shared, hub, onRotate: () => place?.tell({ about: 'signing-key' }) });
  opened.add('faults', () => edges.close());
  opened.add('boxes', () => hub.close());
  const backlog = createBacklog({ clock, store });
  const cachedBacklog = cacheBacklog(backlog, clock);
  const metrics = createMetrics(() => hub.sessions.size, cachedBacklog, time);
  const ownPorts: number[] = [];
  const names = new HostResolver(base);
  opened.add('names', () => names.close());
  const outside: Outside = { ownPorts: () => ownPorts, lookup: (signal) => names.lookup(signal) };
  const dispatcher = openDispatcher({ ...shared, ...outside, metrics, edges }, opened);
  const pruner = new Pruner({ store, clock, log });
  opened.add('pruner', () => pruner.close());
  const { known, close: keepKnown } = await openKnownLogins({ ...base, store });
  opened.add('known logins', keepKnown);
  const logins = new Logins(clock, known, place?.budgets);
  const connect = edges.connect(signedConnections({ signer, log }));
  const boxes = { ...shared, hub: edges.boxHub(hub), connect, signer, logins };
  const dialect = await dialectOf(config, boxes, edges, opened);
  const mqtt = await openMqtt(config, { ...boxes, place, listeners: dialect?.listeners }, edges, opened);
  const onPaid = (payment: NewPayment) => dialect?.tellHosts(payment);
  const paying = { ...shared, hub, dispatcher, onPaid };
  const pay = edges.receivePayment(paying);
  const money = await openMoney({ ...paying, ...outside, vault, heard: metrics.heard }, opened);
  late.money = money;
  const pushing = { ...shared, hub: edges.pushHub(hub), makers: money.makers };
  const [service, sales] = [new Service({ ...pushing, pay, metrics, place }), new Sales(pushing)];
  aimFaults(targets, { store, service, dispatcher });

  const here = {
    renew: (terminalCode: string, reason: string) => hub.renew(terminalCode, reason),
    expel: expeller(hub, clock, (terminalCode) => mqtt?.dropper(terminalCode)),
  };
  const everywhere = place === undefined ? here : overCluster(place);
  const access = await openAccess({ ...shared, ...stored, hub, ...everywhere, logins, reload: money.sources.reload });
  const health = openHealth({ clock, store, time, isBrokerThere: () => mqtt?.isConnected() ?? true }, opened);
  const app = openApp(config, base);
  if (mqtt !== undefined) await dialect?.open(mqtt.address, service, () => originAt(app, config));
  const tokens = edges.tokens(await createTokens(store, time.dating(clock), random));
  const parts = { ...shared, service, dispatcher, signer, logins, hub, backlog, ...access, health, metrics, tokens };
  const routes = { ...parts, cachedBacklog, boxes, ...money, sales, ...homeIn(place) };
  const served = await serve(app, routes, edges, { opened, place });
  ownPorts.push(...portsOf(served.origin, config.mqtt?.embedded === undefined ? undefined : mqtt?.url));
  begin([dispatcher, money.paymentRequests, pruner], money, place);
  const mqttUrl = mqtt?.url;
  log.info('gateway-ready', { origin: served.origin, mqttUrl, shard: place?.index });
  const sessionCheck = new SessionCheck({ ...shared, hub, ...homeIn(place), expel: here.expel });
  opened.add('check of sessions', () => sessionCheck.close());
  const heeding = { ...shared, ...money, hub, signer, sessionCheck, faults: edges.faults, place, expel: here.expel };
  const heed = (news: News) => heedNews(news, heeding);
  const unready = () => health.readiness.problem();
  const close = (withinMs = STOP_BUDGET_MS) => opened.close(withinMs);
  return { ...served, mqttUrl, superseded: store.superseded, heed, takeCredit: money.takeCredit, unready, close };
}

/** Opens the routes, on a port of their own or, in a shard, behind that of its member. */
async function serve(
  app: FastifyInstance,
  routes: RoutesDeps,
  edges: Edges,
  { opened, place }: { opened: OpenParts; place: ShardPlace | undefined },
): Promise<Pick<Gateway, 'origin' | 'baseUrl' | 'handle'>> {
  const { config } = routes;
  const endStreams = registerRoutes(app, edges, routes);
  opened.add('requests', () => {
    endStreams();
    return app.close();
  });
  if (place === undefined) await listenAt(app, config);
  else await app.ready();
  const origin = originAt(app, config);
  const handle = (request: IncomingMessage, response: ServerResponse) => app.routing(request, response);
  return { origin, baseUrl: `${origin}${config.basePath}`, handle };
}

/** Starts what works without calls. One shard asks the lists; it has seeded the registry, which others may have read before. */
function begin(parts: readonly { start(): void }[], { catchUp }: Money, place: ShardPlace | undefined): void {
  for (const part of parts) part.start();
  if (!isOfRegistry(place)) return;
  catchUp.start();
  place?.tell({ about: 'registry' });
}

/** Has faults reach the parts that are made after them. */
function aimFaults(
  targets: FaultTargets,
  { store, service, dispatcher }: Pick<Context, 'store'> & { service: Service; dispatcher: CallbackDispatcher },
): void {
  targets.payPush = async (pushId) => {
    const orderId = await store.orders.idByPush(pushId);
    if (orderId !== undefined) await service.payOrder(orderId);
  };
  targets.resendCallback = (id) => dispatcher.resend(id);
}

/** Loads the code of faults only in a sandbox. */
async function edgesOf(
  config: GatewayConfig,
  world: GatewayDeps,
  changes: Changes,
  targets: FaultTargets,
): Promise<Edges> {
  if (!config.sandbox) return edgesWithoutFaults(world.clock);
  const { injectFaults } = await import('./faults/fault-injection.ts');
  return injectFaults({ ...world, config, changes, targets });
}

/** Edges that change nothing. */
function edgesWithoutFaults(clock: Clock): Edges {
  return {
    clock,
    faults: NO_FAULTS,
    tokens: (tokens) => tokens,
    partnerRoutes: async () => undefined,
    boxRoutes: () => undefined,
    connect: (connect) => connect,
    boxHub: (hub) => hub,
    pushHub: (hub) => hub,
    receivePayment: createReceivePayment,
    attempt: (make) => make,
    startBroker: (at, start) => start(at),
    boxConnected: () => undefined,
    close: () => undefined,
  };
}

function openDispatcher(
  deps: Omit<CallbackDispatcherDeps, 'post' | 'attempt' | 'retryWaitsMs'> &
    Outside & { config: GatewayConfig; edges: Edges },
  opened: OpenParts,
): CallbackDispatcher {
  const post = createPost(deps.ownPorts, deps.lookup);
  const attempt = deps.edges.attempt(attemptCallback, deps.directory);
  const dispatcher = new CallbackDispatcher({ ...deps, post, attempt, retryWaitsMs: retryWaitsOf(deps.config) });
  opened.add('callbacks', () => dispatcher.close());
  return dispatcher;
}

async function openMqtt(
  { mqtt }: GatewayConfig,
  deps: Omit<MqttDeps, 'boxConnected' | 'startBroker'>,
  edges: Edges,
  opened: OpenParts,
): Promise<Mqtt | undefined> {
  if (mqtt === null) return undefined;
  const { startMqtt } = await import('./boxes/mqtt.ts');
  const { boxConnected, startBroker } = edges;
  const started = await startMqtt(mqtt, { ...deps, boxConnected, startBroker });
  opened.add('broker', started.close);
  return started;
}

/** Boxes of the public dialect; their code is loaded only where there are some. */
async function dialectOf(
  config: GatewayConfig,
  deps: Omit<DialectDeps, 'boxConnected' | 'withFaults'>,
  edges: Edges,
  opened: OpenParts,
): Promise<Dialect | undefined> {
  const settings = config.vietqrBoxes;
  if (settings === undefined || config.mqtt === null) return undefined;
  const { Dialect } = await import('./boxes/dialect/dialect.ts');
  const { boxConnected, connect: withFaults } = edges;
  const dialect = await Dialect.create(settings, { ...deps, boxConnected, withFaults });
  opened.add('boxes of the dialect', () => dialect.close());
  return dialect;
}

function openApp(config: GatewayConfig, { clock, log, place }: GatewayDeps): FastifyInstance {
  const { tls } = config.http;
  const app = createApp(log, clock, tls && readServerTls(tls, 'http.tls'), config.http);
  answerBeforeClosing(app, clock);
  if (place !== undefined) takeCarriedBodies(app);
  return app;
}
