import { reasonOf } from '../../lib/errors.ts';
import { CODES } from '../../protocol/codes.ts';
import type { UpOf } from '../../protocol/messages.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { BrokerConnection } from './broker-connection.ts';
import type { BoxConnection } from './connection.ts';
import type { MqttChannel } from './mqtt-channel.ts';
import { sendTo } from './session.ts';
import { checkHello } from './welcome.ts';
import type { LaneHub } from './wire.ts';

/** Opens a channel to the broker in a lane. Never throws. */
export type DialLane = (lane: number, hub: LaneHub) => Promise<MqttChannel<BrokerConnection>>;

/**
 * Answers at the lanes that have no gateway: lane 0, where every box begins, and those of gateways that are gone. A
 * door has no session of any box. It sends each one to the lane of its home (PROTOCOL.md, clause SHA-2).
 */
export class LaneDoors {
  readonly #world: World;
  readonly #dial: DialLane;
  readonly #stored: Stored;
  readonly #open = new Map<number, MqttChannel<BrokerConnection>>();
  #isClosed = false;
  #work: Promise<void> = Promise.resolve();

  constructor(world: World, stored: Stored, dial: DialLane) {
    this.#world = world;
    this.#dial = dial;
    this.#stored = stored;
  }

  /** Opens the doors that this gateway has now, and closes the others. Settles once that is done. */
  changed(): Promise<void> {
    this.#work = this.#work.then(async () => {
      const wanted = this.#isClosed ? [] : this.#world.place.lanes.doors();
      const over = [...this.#open].filter(([lane]) => !wanted.includes(lane));
      const missing = wanted.filter((lane) => !this.#open.has(lane));
      for (const [lane] of over) this.#open.delete(lane);
      for (const [, channel] of this.#open) void channel.current()?.renewPresence();
      const opening = missing.map(
        async (lane) => void this.#open.set(lane, await this.#dial(lane, doorHub(lane, this.#world, this.#stored))),
      );
      await Promise.all([...over.map(([, channel]) => channel.close()), ...opening]);
    });
    return this.#work;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.changed();
  }
}

function doorHub(lane: number, world: World, stored: Stored): LaneHub {
  const { log, place } = world;
  return {
    receive: async (terminalCode, connection, message) => {
      // Once the lane has a gateway again, only that one answers.
      if (message.type !== 'hello' || !place.lanes.doors().includes(lane)) return false;
      await answerHello(terminalCode, connection, message, world, stored).catch((error: unknown) => {
        log.error('message-failed', { box: terminalCode, type: message.type, reason: reasonOf(error) });
      });
      return true;
    },
    disconnected: () => undefined,
    move: async () => false,
  };
}

/** Answers a hello with the lane where the box has its home, or refuses it. */
async function answerHello(
  terminalCode: string,
  connection: BoxConnection,
  hello: UpOf<'hello'>,
  world: World,
  { directory }: Stored,
): Promise<void> {
  const { lanes } = world.place;
  const checked = checkHello(await directory.box(terminalCode), terminalCode, hello, world);
  const home = { code: 'MOVED', reason: CODES.MOVED, shard: lanes.homeOf(terminalCode) } as const;
  const refusal = 'refusal' in checked ? checked.refusal : home;
  sendTo({ connection, sessionId: hello.sessionId }, { type: 'refused', ...refusal }, world);
}
