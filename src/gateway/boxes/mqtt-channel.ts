import type { Clock } from '../../lib/clock.ts';
import { MissingPeerError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { HostResolver } from '../../lib/resolver.ts';
import type { BrokerAddress } from './broker-client.ts';

/** Waits between attempts to reach a lost broker; the last one is repeated. */
const REDIAL_WAITS_MS = [250, 500, 1000, 2000, 5000, 10_000];

/** One connection to a broker; after its end a new one is opened. */
export interface ChannelConnection {
  /** Settles once the connection has ended. */
  readonly closed: Promise<void>;
  readonly isConnected: boolean;
  /** Reports every box behind this connection as gone. */
  disconnectBoxes(why: string): void;
  close(): Promise<void>;
}

export interface MqttChannel<C> {
  /** The connection to the broker; undefined while there is none. */
  current(): C | undefined;
  /** Whether there is a connection to the broker. */
  isConnected(): boolean;
  close(): Promise<void>;
}

/**
 * Keeps a connection to an MQTT broker (PROTOCOL.md, clauses TOP and PRE): opens a new one when it is lost. Throws
 * MissingPeerError when the first one fails.
 */
export async function openMqttChannel<C extends ChannelConnection>(
  { where }: BrokerAddress,
  open: (names: HostResolver) => Promise<C>,
  deps: { clock: Clock; log: Logger },
): Promise<MqttChannel<C>> {
  const { clock, log } = deps;
  const stop = new AbortController();
  // Not the resolver for partners: their slow lookups must not delay the broker.
  const names = new HostResolver(deps);
  let current: C | undefined = await open(names).catch((error: unknown) => {
    const place = typeof where === 'string' ? new URL(where).host : 'in this process';
    throw new MissingPeerError(
      `the MQTT broker ${place} cannot be used: ${reasonOf(error)}`,
      'start the broker, or check mqtt.url, mqtt.username and mqtt.password, and the topic rights of that login',
      error,
    );
  });
  const redial = async (attempt: number) => {
    await clock.sleep(REDIAL_WAITS_MS[Math.min(attempt, REDIAL_WAITS_MS.length) - 1] ?? 0, stop.signal);
    if (stop.signal.aborted) return undefined;
    try {
      const connection = await open(names);
      log.info('broker-back', { attempt });
      return connection;
    } catch (error) {
      log.warn('broker-unreachable', { attempt, reason: reasonOf(error) });
      return undefined;
    }
  };
  const stayConnected = async () => {
    while (!stop.signal.aborted) {
      await current?.closed;
      if (stop.signal.aborted) return;
      current?.disconnectBoxes('the broker was lost');
      current = undefined;
      for (let attempt = 1; current === undefined && !stop.signal.aborted; attempt += 1)
        current = await redial(attempt);
    }
    await current?.close();
  };
  const stopped = stayConnected();
  return {
    current: () => current,
    isConnected: () => current?.isConnected === true,
    close: async () => {
      stop.abort();
      names.close();
      await current?.close();
      await stopped;
    },
  };
}
