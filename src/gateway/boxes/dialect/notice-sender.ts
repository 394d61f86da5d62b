import type { WireNotice } from '../../../protocol/dialect.ts';
import type { World } from '../../common/world.ts';
import { BROKER_TRANSPORT } from '../broker-client.ts';
import type { BoxSocket } from '../connection.ts';
import { payloadFor } from './notices.ts';

/** The message of the hub that each notice represents. */
const AS_MESSAGE = { N00: 'welcome', N16: 'welcome', N17: 'show', N12: 'withdraw', N05: 'payment' } as const;

/** The fate of a message: received, not received, or not reported by the broker. */
export type Outcome = 'taken' | 'nobody' | 'unknown';

/** Publishes to the broker. Never throws. */
export type Publish = (topic: string, payload: string) => Promise<Outcome>;

/** Sends notices to one box of the dialect in sequence. The dialect has no signatures. */
export class NoticeSender {
  /** Publishes a notice. The edge of the gateway may wrap this socket. */
  readonly socket: BoxSocket;
  readonly #box: string;
  readonly #topic: string;
  readonly #world: World;
  #used: BoxSocket;
  /** Outcomes of the notice that is being sent. There are two if the edge sends it twice. */
  #outcomes: Promise<Outcome>[] = [];

  constructor(box: string, topic: string, world: World, publish: Publish) {
    this.#box = box;
    this.#topic = topic;
    this.#world = world;
    this.socket = {
      transport: BROKER_TRANSPORT,
      problem: () => undefined,
      end: () => undefined,
      send: (payload) => void this.#outcomes.push(publish(topic, payload)),
    };
    this.#used = this.socket;
  }

  useSocket(socket: BoxSocket): void {
    this.#used = socket;
  }

  /** Sends one notice. It must settle before the next call. */
  async send(notice: WireNotice): Promise<Outcome> {
    const { log, trafficLog } = this.#world;
    const payload = payloadFor(this.#topic, notice);
    const { notificationType: type, ...fields } = notice;
    if (payload === undefined) {
      log.error('message-not-sent', { box: this.#box, type, reason: 'too long for its firmware' });
      return 'nobody';
    }
    this.#outcomes = [];
    this.#used.send(payload, AS_MESSAGE[type]);
    const heard = (await Promise.all(this.#outcomes)).filter((it) => it !== 'nobody');
    for (const _ of heard) trafficLog.message(this.#box, 'box', { type, ...fields });
    return heard[0] ?? 'nobody';
  }
}
