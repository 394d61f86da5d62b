import type { Clock } from '../../lib/clock.ts';
import { MissingPeerError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { HostResolver } from '../../lib/resolver.ts';
import { type BrokerAddress, BrokerConnection, type BrokerConnectionDeps } from './broker-connection.ts';

/** Waits between attempts to reach a lost broker; the last one is repeated. */
const REDIAL_WAITS_MS = [250, 500, 1000, 2000, 5000, 10_000];

export type MqttChannelDeps = BrokerConnectionDeps & { clock: Clock; log: Logger };

export interface MqttChannel {
  /** Reports that the box has no connection to the broker any more. */
  boxGone(terminalCode: string): void;
  /** Whether there is a connection to the broker. */
  isConnected(): boolean;
  close(): Promise<void>;
}

/**
 * Connects boxes on an MQTT broker to the hub (PROTOCOL.md, clauses TOP and PRE). Reconnects to a lost broker. Throws
 * MissingPeerError when the first connection fails.
 */
export async function openMqttChannel(address: BrokerAddress, deps: MqttChannelDeps): Promise<MqttChannel> {
  const { clock, log } = deps;
  const stop = new AbortController();
  // Not the resolver for partners: their slow lookups must not delay the broker.
  const names = new HostResolver(deps);
  let current: BrokerConnection | undefined = await BrokerConnection.open(address, names, deps).catch(
    (error: unknown) => {
      const where = typeof address.where === 'string' ? new URL(address.where).host : 'in this process';
      throw new MissingPeerError(
        `the MQTT broker ${where} cannot be reached: ${reasonOf(error)}`,
        'start the broker, or check mqtt.url, mqtt.username and mqtt.password',
        error,
      );
    },
  );
  const redial = async (attempt: number) => {
    await clock.sleep(REDIAL_WAITS_MS[Math.min(attempt, REDIAL_WAITS_MS.length) - 1] ?? 0, stop.signal);
    if (stop.signal.aborted) return undefined;
    try {
      const connection = await BrokerConnection.open(address, names, deps);
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
    boxGone: (terminalCode) => current?.disconnectBox(terminalCode, 'its connection to the broker ended'),
    isConnected: () => current?.isConnected === true,
    close: async () => {
      stop.abort();
      names.close();
      await current?.close();
      await stopped;
    },
  };
}
