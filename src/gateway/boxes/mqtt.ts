import type { Socket } from 'node:net';
import { readPemFiles } from '../../lib/tls.ts';
import type { GatewayConfig } from '../config.ts';
import type { BrokerDeps, BrokerListener, EmbeddedBroker } from './broker.ts';
import type { BrokerAddress } from './broker-client.ts';
import { BrokerConnection, type BrokerConnectionDeps } from './broker-connection.ts';
import type { BrokerLogin, RightsDeps } from './broker-rights.ts';
import type { Hub } from './hub.ts';
import { type MqttChannel, openMqttChannel } from './mqtt-channel.ts';

/** The MQTT side of the gateway. */
export interface Mqtt {
  /** Address of the broker for boxes. */
  url: string;
  /** Address of the broker for the gateway, with its login. */
  address: BrokerAddress;
  isConnected: () => boolean;
  /** Returns a function that ends the connections which a box has now: its login is no longer valid. Does nothing at an external broker. */
  dropper: (terminalCode: string) => () => void;
  close: () => Promise<void>;
}

export type MqttDeps = Omit<BrokerConnectionDeps, 'hub'> &
  Pick<BrokerDeps, 'listeners'> &
  RightsDeps & {
    config: Pick<GatewayConfig, 'http'>;
    hub: Pick<Hub, 'session' | 'receive' | 'disconnected'>;
    boxConnected: (terminalCode: string, socket: Socket) => void;
    /** Starts the embedded broker with `start`, and with the login of an earlier one if given. */
    startBroker: (
      at: BrokerListener,
      start: (at: BrokerListener, login?: BrokerLogin) => Promise<EmbeddedBroker>,
    ) => Promise<EmbeddedBroker>;
  };

/**
 * Connects boxes on MQTT to the hub, over the embedded broker or an external one. Throws as `startBroker` and
 * `openMqttChannel`.
 */
export async function startMqtt(
  { embedded, url = '', username, password, tls }: NonNullable<GatewayConfig['mqtt']>,
  deps: MqttDeps,
): Promise<Mqtt> {
  if (embedded === undefined) {
    const address = { where: url, username, password, tls: tls && readPemFiles(tls, 'mqtt.tls') };
    const { isConnected, close } = await open(address, deps);
    return { url, address, isConnected, dropper: () => () => undefined, close };
  }
  // Loaded here: a gateway at an external broker starts sooner without it.
  const { startBroker } = await import('./broker.ts');
  let channel: MqttChannel<BrokerConnection> | undefined;
  const proxies = embedded.proxyProtocol ? deps.config.http.trustedProxies : [];
  const broker = await deps.startBroker({ ...embedded, proxies }, (at, login) =>
    startBroker(at, {
      ...deps,
      login,
      sessionInUse: (terminalCode) => deps.hub.session(terminalCode)?.sessionId,
      onBoxConnected: deps.boxConnected,
      onBoxGone: (terminalCode) => {
        channel?.current()?.disconnectBox(terminalCode, 'its connection to the broker ended');
      },
    }),
  );
  const close = async () => {
    // The channel first, because the broker must still deliver its goodbye to the boxes.
    await channel?.close();
    await broker.close();
  };
  const address = { where: broker.connect, ...broker.login };
  try {
    channel = await open(address, deps);
  } catch (error) {
    await close();
    throw error;
  }
  return { url: broker.url, address, isConnected: channel.isConnected, dropper: broker.dropper, close };
}

function open(address: BrokerAddress, deps: BrokerConnectionDeps): Promise<MqttChannel<BrokerConnection>> {
  return openMqttChannel(address, (names) => BrokerConnection.open(address, names, deps), {
    ...deps,
    // The shard of a member that died is to have another holder, also while the broker is away.
    mayBeAway: deps.place !== undefined,
  });
}
