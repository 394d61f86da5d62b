import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import { Hub } from './boxes/hub.ts';
import type { BrokerAddress, MqttChannel } from './boxes/mqtt-channel.ts';
import { Courier } from './callbacks/courier.ts';
import { postJson } from './callbacks/post.ts';
import { Changes } from './changes.ts';
import type { GatewayConfig } from './config.ts';
import { createDirectory, type Directory } from './directory.ts';
import { createApp } from './http/app.ts';
import { boxRoutes } from './http/box-routes.ts';
import { mockRoutes } from './http/mock-routes.ts';
import { pageRoutes } from './http/page-routes.ts';
import { serviceRoutes } from './http/service-routes.ts';
import { createViews } from './http/views.ts';
import { addressError, urlHost } from './listen.ts';
import { createMetrics } from './metrics.ts';
import { Service } from './service.ts';
import { Pruner } from './store/pruner.ts';
import { openStore } from './store/store.ts';
import { createTokens } from './tokens.ts';

export interface GatewayDeps {
  clock: Clock;
  random: Random;
  log: Logger;
}

/** A running gateway. */
export interface Gateway {
  /** Where it listens, as `http://127.0.0.1:8800`. */
  origin: string;
  /** `{base_url}` of the service, as `http://127.0.0.1:8800/vqr`. */
  baseUrl: string;
  /** Where boxes find the broker; `undefined` without MQTT. */
  mqttUrl: string | undefined;
  /** Ends all that it started; what is stored is taken up by the next start. */
  close(): Promise<void>;
}

/** Things that were opened, to be closed in the opposite order. */
class Opened {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }
}

/**
 * Starts the mock of the payment QR service. Settles once it answers over HTTP and MQTT. Throws ConfigError when a
 * port or the store cannot be had, MissingPeerError when an external broker or a database server does not answer.
 */
export async function startGateway(config: GatewayConfig, deps: GatewayDeps): Promise<Gateway> {
  const opened = new Opened();
  try {
    return await start(config, deps, opened);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function start(config: GatewayConfig, deps: GatewayDeps, opened: Opened): Promise<Gateway> {
  const { clock, random, log } = deps;
  const directory = createDirectory(config);
  const changes = new Changes();
  const store = await openStore(config, log);
  opened.add(() => store.close());
  await store.orders.failUnfinished(clock.wallMs(), config.confirm);
  const tokens = await createTokens(store, clock, random);
  const hub = new Hub({ ...deps, directory, store, changes, ...config });
  const metrics = createMetrics(() => hub.online);
  const courier = new Courier({
    ...deps,
    directory,
    store,
    changes,
    metrics,
    post: postJson,
    retryWaitsMs: config.callbackRetryWaitsMs,
  });
  opened.add(() => courier.close());
  const pruner = new Pruner({ store, clock, log });
  opened.add(() => pruner.close());

  const mqtt = await startMqtt(config, deps, hub, directory, opened);
  const service = new Service({ ...deps, config, directory, store, hub, courier, changes, metrics });
  const app = createApp(log);
  opened.add(() => app.close());
  const originOf = (request: FastifyRequest) => originFor(request, () => originAt(app, config));
  const endStreams: (() => void)[] = [];
  app.register(async (scope) => serviceRoutes(scope, { service, directory, tokens, log, originOf }), {
    prefix: config.basePath,
  });
  app.register(async (scope) => void endStreams.push(boxRoutes(scope, { hub, directory, clock, log })));
  app.register(
    async (scope) => {
      const views = createViews(store, hub, directory);
      const baseUrl = () => `${originAt(app, config)}${config.basePath}`;
      endStreams.push(mockRoutes(scope, { config, service, courier, views, changes, clock, log, baseUrl }));
    },
    { prefix: '/_mock' },
  );
  app.register((scope) => pageRoutes(scope, { store, metrics, log, basePath: config.basePath }));
  await listen(app, config);
  opened.add(() => {
    for (const end of endStreams) end();
  });
  // First of all to close: whoever awaits a box's confirmation is answered while the server still can.
  opened.add(() => hub.close());
  courier.start();
  pruner.start();

  const origin = originAt(app, config);
  log.info('gateway-ready', { origin, mqttUrl: mqtt });
  return { origin, baseUrl: `${origin}${config.basePath}`, mqttUrl: mqtt, close: () => opened.close() };
}

/** Joins the boxes on MQTT, on the embedded or an external broker; where they find it. */
async function startMqtt(
  config: GatewayConfig,
  deps: GatewayDeps,
  hub: Hub,
  directory: Directory,
  opened: Opened,
): Promise<string | undefined> {
  if (config.mqtt === null) return undefined;
  const { openMqttChannel } = await import('./boxes/mqtt-channel.ts');
  const { embedded, url = '', username, password } = config.mqtt;
  const channelDeps = { ...deps, hub, directory };
  if (embedded === undefined) {
    const channel = await openMqttChannel({ where: url, username, password }, channelDeps);
    opened.add(() => channel.close());
    return url;
  }
  const { startBroker } = await import('./boxes/broker.ts');
  let channel: MqttChannel | undefined;
  const broker = await startBroker(embedded, { ...deps, directory, onBoxGone: (box) => channel?.boxGone(box) });
  opened.add(() => broker.close());
  const address: BrokerAddress = { where: broker.connect, ...broker.login };
  const opening = await openMqttChannel(address, channelDeps);
  channel = opening;
  opened.add(() => opening.close());
  return broker.url;
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
  return `http://${urlHost(http.host)}:${port}`;
}

/** Where this caller reached the gateway, so that links in the answer work for it. */
function originFor(request: FastifyRequest, otherwise: () => string): string {
  const { host = '' } = request.headers;
  return /^[\w.[\]:-]{1,255}$/.test(host) ? `http://${host}` : otherwise();
}
