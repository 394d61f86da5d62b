import type { PayboxError } from '../lib/errors.ts';
import { STOP_BUDGET_MS } from '../lib/shutdown.ts';
import { OpenParts } from './common/open-parts.ts';
import type { Stored } from './common/stored.ts';
import type { GatewayDeps, World } from './common/world.ts';
import type { GatewayConfig } from './config/config.ts';
import { openBoxes } from './stages/boxes.ts';
import { openDoors } from './stages/doors.ts';
import { hearingOf } from './stages/hearing.ts';
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
  /** Resolves with an error once others have taken over its database, or its work. It must then end at once. */
  superseded: Promise<PayboxError> | undefined;
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
  const { origin, baseUrl, health } = doors;
  const mqttUrl = boxes.mqtt?.url;
  deps.log.info('gateway-ready', { origin, mqttUrl });
  world.place.begin(hearingOf(world, stored, boxes, money, edges));
  return {
    origin,
    baseUrl,
    mqttUrl,
    superseded: supersededOf(world, stored),
    unready: () => health.readiness.problem(),
    close: (withinMs = STOP_BUDGET_MS) => opened.close(withinMs),
  };
}

/** Resolves when either the store or the place of this gateway is another's. */
function supersededOf({ place }: World, { store }: Stored): Promise<PayboxError> | undefined {
  const either = [place.superseded, store.superseded].filter((it) => it !== undefined);
  return either.length === 0 ? undefined : Promise.race(either);
}
