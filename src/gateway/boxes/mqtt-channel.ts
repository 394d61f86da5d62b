import { type Clock, withDeadline } from '../../lib/clock.ts';
import { MissingPeerError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { HostResolver } from '../../lib/resolver.ts';
import type { BrokerAddress } from './broker-client.ts';

/** How long a gateway that may start without its broker waits for it. Boxes over HTTP need none. */
const FIRST_WAIT_MS = 1_000;
/**
 * A connection that lasts less than this counts as one more failed attempt, because a broker may end each one at once.
 */
const LASTING_MS = 2_000;
/** The waits between attempts to reach a lost broker. The last one is repeated. */
const REDIAL_WAITS_MS = [250, 500, 1000, 2000, 5000, 10_000];

/** One connection to a broker. After its end the channel opens a new one. */
export interface ChannelConnection {
  /** Settles once the connection has ended. */
  readonly closed: Promise<void>;
  readonly isConnected: boolean;
  /** Reports every box behind this connection as gone. */
  disconnectBoxes(why: string): void;
  close(): Promise<void>;
}

export interface MqttChannel<C> {
  /** Returns the connection to the broker, or undefined if there is none. */
  current(): C | undefined;
  isConnected(): boolean;
  close(): Promise<void>;
}

/**
 * Opens a connection to an MQTT broker, and a new one whenever it is lost (PROTOCOL.md, clauses TOP and PRE). Throws
 * MissingPeerError if the first one fails, unless the broker `mayBeAway`: then the channel retries it.
 */
export async function openMqttChannel<C extends ChannelConnection>(
  { where }: BrokerAddress,
  open: (names: HostResolver) => Promise<C>,
  deps: { clock: Clock; log: Logger; mayBeAway?: boolean },
): Promise<MqttChannel<C>> {
  const { clock, log, mayBeAway = false } = deps;
  const stop = new AbortController();
  const stopping = new Promise<undefined>((resolve) => {
    stop.signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  // Partners have another resolver, because their slow lookups must not delay the broker.
  const names = new HostResolver(deps);
  let current: C | undefined;
  const problemOf = (error: unknown) => {
    const place = typeof where === 'string' ? new URL(where).host : 'in this process';
    return new MissingPeerError(
      `the MQTT broker ${place} cannot be used: ${reasonOf(error)}`,
      'start the broker, or check mqtt.url, mqtt.username and mqtt.password, and the topic rights of that login',
      error,
    );
  };
  if (!mayBeAway) current = await open(names).catch((error: unknown) => Promise.reject(problemOf(error)));
  const redial = async (attempt: number) => {
    const waitMs = REDIAL_WAITS_MS[Math.min(attempt, REDIAL_WAITS_MS.length) - 1];
    if (waitMs !== undefined) await clock.sleep(waitMs, stop.signal);
    if (stop.signal.aborted) return undefined;
    try {
      const opening = open(names);
      const connection = await Promise.race([opening, stopping]);
      // A connection that opens after the stop is closed in the background, so that nobody waits for a broker that
      // hangs.
      if (connection === undefined) void opening.then((late) => late.close()).catch(() => undefined);
      if (connection === undefined) return undefined;
      if (attempt > 0) log.info('broker-reconnected', { attempt });
      return connection;
    } catch (error) {
      const { message: reason } = mayBeAway ? problemOf(error) : { message: reasonOf(error) };
      log.warn('broker-unreachable', { attempt, reason });
      return undefined;
    }
  };
  const dialled = Promise.withResolvers<void>();
  const stayConnected = async () => {
    for (let attempt = 0; ; ) {
      for (; current === undefined && !stop.signal.aborted; attempt += 1) {
        current = await redial(attempt);
        dialled.resolve();
      }
      if (stop.signal.aborted) break;
      const sinceMs = clock.monotonicMs();
      await current?.closed;
      if (stop.signal.aborted) return;
      attempt = clock.monotonicMs() - sinceMs < LASTING_MS ? Math.max(1, attempt) : 1;
      current?.disconnectBoxes('the broker was lost');
      current = undefined;
    }
    await current?.close();
  };
  const stopped = stayConnected();
  if (mayBeAway) await withDeadline(clock, FIRST_WAIT_MS, dialled.promise);
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
