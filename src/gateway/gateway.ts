import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PayboxError } from '../lib/errors.ts';
import { STOP_BUDGET_MS } from '../lib/shutdown.ts';
import { OpenParts } from './common/open-parts.ts';
import { heedNews, type News } from './common/shard.ts';
import type { CreditResult, CreditTask, ToldCredit } from './common/told-credit.ts';
import type { GatewayDeps } from './common/world.ts';
import type { GatewayConfig } from './config/config.ts';
import { openBoxes } from './stages/boxes.ts';
import { openDoors } from './stages/doors.ts';
import { openMoney } from './stages/money.ts';
import { openStored } from './stages/stored.ts';
import { openWorld } from './stages/world.ts';

/** A running gateway. */
export interface Gateway {
  /** Its HTTP address, as `http://127.0.0.1:8800`. */
  origin: string;
  /** `{base_url}` of the service, as `http://127.0.0.1:8800/vqr`. */
  baseUrl: string;
  /** The address of its broker. Undefined without MQTT. */
  mqttUrl: string | undefined;
  /** Resolves with an error once another gateway has taken over the database. This gateway must then end at once. */
  superseded: Promise<PayboxError> | undefined;
  /** Answers a request that another server accepted: the server of the cluster's member that runs this gateway. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** In a shard of a cluster: does the task that another shard sends. Rejects when the credit may not be stored. */
  takeCredit?: ((task: CreditTask, told: ToldCredit) => Promise<CreditResult>) | undefined;
  /** Applies news from another shard of the cluster. */
  heed(news: News): Promise<void>;
  /** Returns why the gateway accepts no calls now. Undefined if it accepts them. Settles within 2 s. */
  unready(): Promise<string | undefined>;
  /**
   * Answers waiting requests, sends boxes a goodbye and ends all parts. Abandons parts that still run after `withinMs`.
   * The next start continues from the store.
   */
  close(withinMs?: number): Promise<void>;
}

/**
 * Starts the mock of the payment QR service. Settles once it answers over HTTP and MQTT. Throws ConfigError when a port
 * or the store cannot be opened. Throws MissingPeerError when an external broker or a database server does not answer.
 */
export async function startGateway(config: GatewayConfig, deps: GatewayDeps): Promise<Gateway> {
  const opened = new OpenParts(deps.clock, deps.log);
  try {
    return await start(config, deps, opened);
  } catch (error) {
    await opened.close(STOP_BUDGET_MS);
    throw error;
  }
}

async function start(config: GatewayConfig, deps: GatewayDeps, opened: OpenParts): Promise<Gateway> {
  const { world, edges } = await openWorld(config, deps, opened);
  const stored = await openStored(world, deps.onStandby);
  const boxes = await openBoxes(world, stored, edges);
  const money = await openMoney(world, stored, boxes, edges);
  const doors = await openDoors(world, stored, boxes, money, { edges, boxScreen: deps.boxScreen });
  money.begin();
  const { origin, baseUrl, handle, health } = doors;
  const mqttUrl = boxes.mqtt?.url;
  deps.log.info('gateway-ready', { origin, mqttUrl, shard: deps.place?.index });
  const { hub, signer, sessionCheck, here } = boxes;
  const { directory, store } = stored;
  const heeding = { directory, sources: money.sources, hub, signer, sessionCheck, changes: world.changes };
  return {
    origin,
    baseUrl,
    mqttUrl,
    superseded: store.superseded,
    handle,
    takeCredit: money.takeCredit,
    heed: (news) => heedNews(news, { ...heeding, edges, place: deps.place, expel: here.expel }),
    unready: () => health.readiness.problem(),
    close: (withinMs = STOP_BUDGET_MS) => opened.close(withinMs),
  };
}
