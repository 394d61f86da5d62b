import type { Socket } from 'node:net';
import { readPemFiles } from '../../lib/tls.ts';
import type { GatewayConfig } from '../config.ts';
import type { BrokerListener, EmbeddedBroker } from './broker.ts';
import type { BrokerLogin, RightsDeps } from './broker-rights.ts';
import type { Hub } from './hub.ts';
import { type MqttChannel, type MqttChannelDeps, openMqttChannel } from './mqtt-channel.ts';

/** The MQTT side of the gateway. */
export interface Mqtt {
  /** Address of the broker for boxes. */
  url: string;
  isConnected: () => boolean;
  /** Ends the connections of a box whose login is no longer valid. Does nothing at an external broker. */
  drop: (terminalCode: string) => void;
  close: () => Promise<void>;
}

export type MqttDeps = Omit<MqttChannelDeps, 'hub'> &
  RightsDeps & {
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
    const { isConnected, close } = await openMqttChannel(address, deps);
    return { url, isConnected, drop: () => undefined, close };
  }
  // Loaded here: a gateway at an external broker starts sooner without it.
  const { startBroker } = await import('./broker.ts');
  let channel: MqttChannel | undefined;
  const broker = await deps.startBroker(embedded, (at, login) =>
    startBroker(at, {
      ...deps,
      login,
      sessionInUse: (terminalCode) => deps.hub.session(terminalCode)?.sessionId,
      onBoxConnected: deps.boxConnected,
      onBoxGone: (terminalCode) => channel?.boxGone(terminalCode),
    }),
  );
  const close = async () => {
    // The channel first, because the broker must still deliver its goodbye to the boxes.
    await channel?.close();
    await broker.close();
  };
  try {
    channel = await openMqttChannel({ where: broker.connect, ...broker.login }, deps);
  } catch (error) {
    await close();
    throw error;
  }
  return { url: broker.url, isConnected: channel.isConnected, drop: broker.drop, close };
}
