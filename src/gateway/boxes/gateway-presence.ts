import type { IPublishPacket, MqttClient } from 'mqtt';
import { reasonOf } from '../../lib/errors.ts';
import { decodePresence, encode } from '../../protocol/codec.ts';
import { MESSAGE_VERSION } from '../../protocol/messages.ts';
import { gatewayPresenceTopic } from '../../protocol/topics.ts';
import type { World } from '../common/world.ts';
import type { HelloSpread } from './hello-spread.ts';

/** Publishes the presence of one run of a gateway in one lane (PROTOCOL.md, clauses PRE-2 and SHA-3). */
export class GatewayPresence {
  readonly topic: string;
  /** Settles once the broker has sent this connection its own presence. */
  readonly echoed: Promise<void>;
  readonly #client: MqttClient;
  readonly #runId: string;
  readonly #world: World;
  readonly #spread: HelloSpread;
  readonly #echo = Promise.withResolvers<void>();
  #birth = '';

  constructor(client: MqttClient, runId: string, lane: number, world: World, spread: HelloSpread) {
    this.#client = client;
    this.#runId = runId;
    this.#world = world;
    this.#spread = spread;
    this.topic = gatewayPresenceTopic(lane);
    this.echoed = this.#echo.promise;
  }

  /** The presence as last published. Empty before that. */
  get birth(): string {
    return this.#birth;
  }

  async announce(online: boolean): Promise<void> {
    const presence = online ? await this.#now() : presenceOf(this.#runId, false);
    if (online) this.#birth = presence;
    await this.#publish(presence);
  }

  /** Publishes the presence again if it has changed. */
  async renew(): Promise<void> {
    const now = await this.#now();
    if (this.#birth === '' || this.#birth === now) return;
    this.#birth = now;
    await this.#publish(now);
  }

  /**
   * Reports this run as online again when its topic says offline. The last will of an earlier run may have written that
   * late (PROTOCOL.md, clause PRE-2), or a door of this lane has closed. If another run is online, this one only logs
   * it: two gateways would contradict each other without end.
   */
  keep(payload: Buffer, packet: IPublishPacket): void {
    const { log, place } = this.#world;
    // A retained value is the old one, which the subscription delivers. The next presence replaces it.
    if (packet.retain) return;
    const decoded = decodePresence(payload);
    if (decoded.ok && decoded.value.online) {
      if (decoded.value.sessionId === this.#runId) {
        this.#echo.resolve();
      } else if (place.sharing === undefined) {
        // Another gateway of the same database may hold a door at this lane, or give it up in this moment.
        log.warn('broker-shared', { reason: 'another gateway uses this broker' });
      }
      return;
    }
    const level = decoded.ok && place.sharing !== undefined ? 'info' : 'warn';
    log[level]('gateway-presence-restored', { reason: decoded.ok ? 'an earlier run ended late' : decoded.reason });
    this.announce(true).catch((error: unknown) => log.warn('gateway-presence-not-sent', { reason: reasonOf(error) }));
  }

  async #publish(presence: string): Promise<void> {
    await this.#client.publishAsync(this.topic, presence, { qos: 1, retain: true });
  }

  async #now(): Promise<string> {
    const shards = this.#world.place.lanes.count;
    return presenceOf(this.#runId, true, { spreadMs: await this.#spread.ms(), shards });
  }
}

/** Returns the presence of a run, as the broker stores it. */
export function presenceOf(
  runId: string,
  online: boolean,
  { spreadMs = 0, shards }: { spreadMs?: number; shards?: number | undefined } = {},
): string {
  const cluster = { ...(spreadMs > 0 && { spreadMs }), ...(shards !== undefined && { shards }) };
  return encode({ v: MESSAGE_VERSION, online, sessionId: runId, ...cluster });
}
