import type { Socket } from 'node:net';
import type { HostResolver } from '../../lib/resolver.ts';
import { readPemFiles } from '../../lib/tls.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { BrokerListener, BrokerOptions, EmbeddedBroker } from './broker.ts';
import type { BrokerAddress } from './broker-client.ts';
import { BrokerConnection } from './broker-connection.ts';
import type { BrokerLogin } from './broker-rights.ts';
import { HelloSpread } from './hello-spread.ts';
import { Homecoming } from './homecoming.ts';
import { LaneDoors } from './lane-doors.ts';
import { type MqttChannel, openMqttChannel } from './mqtt-channel.ts';
import type { BoxWire, LaneHub } from './wire.ts';

/** The MQTT side of the gateway. */
export interface Mqtt {
  /** The address of the broker for boxes. */
  url: string;
  /** The address of the broker for the gateway, with its login. */
  address: BrokerAddress;
  isConnected: () => boolean;
  /**
   * Returns a function that ends the present connections of a box, because its login is no longer valid. At an external
   * broker it does nothing.
   */
  dropper: (terminalCode: string) => () => void;
  /** Publishes to any topic with QoS 1, never retained. Rejects if the broker does not take it. */
  publish: (topic: string, payload: string) => Promise<void>;
  close: () => Promise<void>;
}

/** Starts the embedded broker and receives its events. */
export interface BrokerSide {
  /** Records who listens on the topics of boxes without a login of their own. */
  listeners: BrokerOptions['listeners'];
  /** Called when a box has connected to the embedded broker. */
  boxConnected(terminalCode: string, socket: Socket): void;
  /** Starts the embedded broker with `start`, and with the login of an earlier one if given. */
  startBroker(
    at: BrokerListener,
    start: (at: BrokerListener, login?: BrokerLogin) => Promise<EmbeddedBroker>,
  ): Promise<EmbeddedBroker>;
}

/**
 * Connects boxes on MQTT to the hub, over the embedded broker or an external one. Throws as `startBroker` and
 * `openMqttChannel` do.
 */
export async function startMqtt(
  { embedded, url = '', username, password, tls }: NonNullable<GatewayConfig['mqtt']>,
  world: World,
  stored: Stored,
  wire: BoxWire,
  side: BrokerSide,
): Promise<Mqtt> {
  if (embedded === undefined) {
    const address = { where: url, username, password, tls: tls && readPemFiles(tls, 'mqtt.tls') };
    const channel = await open(address, world, stored, wire);
    const { isConnected, close } = channel;
    return { url, address, isConnected, dropper: () => () => undefined, publish: publishOver(channel), close };
  }
  // The broker is loaded here, so that a gateway at an external broker starts sooner.
  const { startBroker } = await import('./broker.ts');
  let channel: MqttChannel<BrokerConnection> | undefined;
  const proxies = embedded.proxyProtocol ? world.config.http.trustedProxies : [];
  const broker = await side.startBroker({ ...embedded, proxies }, (at, login) =>
    startBroker(at, world, stored, {
      login,
      listeners: side.listeners,
      sessionInUse: (terminalCode) => wire.hub.session(terminalCode)?.sessionId,
      onBoxConnected: side.boxConnected,
      onBoxGone: (terminalCode) => {
        channel?.current()?.disconnectBox(terminalCode, 'its connection to the broker ended');
      },
    }),
  );
  const close = async () => {
    // The channel closes first, because the broker must still deliver its goodbye to the boxes.
    await channel?.close();
    await broker.close();
  };
  const address = { where: broker.connect, ...broker.login };
  try {
    channel = await open(address, world, stored, wire);
  } catch (error) {
    await close();
    throw error;
  }
  const { isConnected } = channel;
  return { url: broker.url, address, isConnected, dropper: broker.dropper, publish: publishOver(channel), close };
}

function publishOver(channel: MqttChannel<BrokerConnection>): Mqtt['publish'] {
  return async (topic, payload) => {
    const connection = channel.current();
    if (connection === undefined) throw new Error('the broker is not connected');
    await connection.publish(topic, payload);
  };
}

/** Connects to the broker in the lane of this gateway, and at the doors that it has. */
async function open(
  address: BrokerAddress,
  world: World,
  stored: Stored,
  wire: BoxWire,
): Promise<MqttChannel<BrokerConnection>> {
  const { clock, log, place } = world;
  const spread = new HelloSpread(world, stored);
  const dial = (lane: number, hub: LaneHub, mayBeAway: boolean) => {
    const at = { ...wire, lane, hub, spread };
    const open = (names: HostResolver) => BrokerConnection.open(address, names, world, at);
    return openMqttChannel(address, open, { clock, log, mayBeAway });
  };
  // A gateway of several starts while the broker is away, because boxes over HTTP need none.
  const channel = await dial(place.lanes.own, wire.hub, place.sharing !== undefined);
  const doors = new LaneDoors(world, stored, (lane, hub) => dial(lane, hub, true));
  place.lanes.serve(channel.isConnected, (lane, sealed) => channel.current()?.say(lane, sealed) === true);
  const homecoming = new Homecoming(world, () => channel.current());
  place.lanes.watch(() => {
    void doors.changed();
    homecoming.changed();
  });
  await doors.changed();
  const close = async () => {
    homecoming.close();
    await Promise.all([doors.close(), channel.close()]);
  };
  return { ...channel, close };
}
