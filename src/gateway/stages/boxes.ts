import type { Clock } from '../../lib/clock.ts';
import { signedConnections } from '../boxes/connection.ts';
import type { Dialect } from '../boxes/dialect/dialect.ts';
import { HttpStreams } from '../boxes/http-streams.ts';
import { Hub } from '../boxes/hub.ts';
import { MessageSigner } from '../boxes/message-signer.ts';
import type { Mqtt } from '../boxes/mqtt.ts';
import { SessionCheck } from '../boxes/session-check.ts';
import { SharedBoxes } from '../boxes/shared-boxes.ts';
import type { BoxWire } from '../boxes/wire.ts';
import type { BoxReach } from '../common/box-reach.ts';
import { mustTell, type Place } from '../common/place.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Edges } from '../faults/edges.ts';

/** The boxes of a gateway, and the transports to them. */
export interface Boxes {
  hub: Hub;
  signer: MessageSigner;
  /** The parts that transports use: hub, connections and signer. */
  wire: BoxWire;
  /** The streams of boxes over HTTP. */
  streams: HttpStreams;
  /** Undefined without MQTT. */
  mqtt: Mqtt | undefined;
  /** Serves boxes of the public dialect. Undefined if there are none. */
  dialect: Dialect | undefined;
  /** Reaches the boxes of this gateway alone. */
  here: BoxReach;
  /** Reaches the boxes of all gateways of the database. */
  everywhere: BoxReach;
  sessionCheck: SessionCheck;
  /** Follows what other gateways do with the boxes. */
  shared: SharedBoxes;
}

/** Opens the third stage of a gateway. Throws as `startMqtt` does. */
export async function openBoxes(world: World, stored: Stored, edges: Edges): Promise<Boxes> {
  const { clock, opened, place } = world;
  const hub = new Hub(world, stored);
  opened.add('boxes', () => hub.close());
  const signer = await MessageSigner.open(world, stored, hub);
  const wire = { hub: edges.boxHub(hub), connect: edges.connect(signedConnections(world, signer)), signer };
  const streams = new HttpStreams(world, wire);
  const dialect = await dialectOf(world, stored, wire, edges);
  const mqtt = await openMqtt(world, stored, wire, edges, dialect);
  const here = {
    renew: (terminalCode: string, reason: string) => hub.ends.renew(terminalCode, reason),
    expel: expeller(hub, clock, (terminalCode) => mqtt?.dropper(terminalCode)),
  };
  const everywhere = reachOver(place, here);
  const sessionCheck = new SessionCheck(world, stored, hub, here.expel);
  opened.add('check of sessions', () => sessionCheck.close());
  const shared = new SharedBoxes(world, stored, hub);
  opened.add('shared boxes', () => shared.close());
  return { hub, signer, wire, streams, mqtt, dialect, here, everywhere, sessionCheck, shared };
}

async function openMqtt(
  world: World,
  stored: Stored,
  wire: BoxWire,
  { boxConnected, startBroker }: Edges,
  dialect: Dialect | undefined,
): Promise<Mqtt | undefined> {
  const { mqtt } = world.config;
  if (mqtt === null) return undefined;
  const { startMqtt } = await import('../boxes/mqtt.ts');
  const side = { listeners: dialect?.listeners, boxConnected, startBroker };
  const started = await startMqtt(mqtt, world, stored, wire, side);
  world.opened.add('broker', started.close);
  return started;
}

/** Loads the code of the dialect only if there are boxes of it. */
async function dialectOf(
  world: World,
  stored: Stored,
  { hub }: BoxWire,
  { boxConnected, connect: wrapConnect }: Edges,
): Promise<Dialect | undefined> {
  const { mqtt, vietqrBoxes } = world.config;
  if (vietqrBoxes === undefined || mqtt === null) return undefined;
  const { Dialect } = await import('../boxes/dialect/dialect.ts');
  const dialect = await Dialect.create(vietqrBoxes, world, stored, { hub, wrapConnect, boxConnected });
  world.opened.add('boxes of the dialect', () => dialect.close());
  return dialect;
}

/** Returns what reaches a box wherever its session is. An admin is answered once no death of a gateway can undo it. */
function reachOver(place: Place, here: BoxReach): BoxReach {
  return {
    renew: async (box, reason) => {
      await mustTell(place, { about: 'renew', box, reason });
      await here.renew(box, reason);
    },
    expel: async (box, reason, disabled = false) => {
      await mustTell(place, { about: 'expel', box, reason, disabled });
      await here.expel(box, reason, disabled);
    },
  };
}

/** How long a refusal may take to reach a box before its connections are closed. */
const REFUSAL_MS = 1_000;

/** Returns a function that ends the session of a box and its connections. */
function expeller(hub: Hub, clock: Clock, dropperOf: (terminalCode: string) => (() => void) | undefined) {
  return async (terminalCode: string, reason: string, disabled = false) => {
    const drop = dropperOf(terminalCode);
    // The refusal must reach the box first, so that the box removes its QR at once (clause MSG-8).
    if (await hub.ends.expel(terminalCode, reason, disabled)) await clock.sleep(REFUSAL_MS);
    drop?.();
  };
}
