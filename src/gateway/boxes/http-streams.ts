import { equalSecrets } from '../../protocol/checksum.ts';
import { BOX_SESSION_HEADER } from '../../protocol/http-api.ts';
import type { Questions } from '../common/place.ts';
import type { World } from '../common/world.ts';
import type { BoxConnection } from './connection.ts';
import type { BoxWire } from './wire.ts';

/** The stream of one session of a box. */
export interface BoxStream {
  connection: BoxConnection;
  /** A hello on this stream must contain this challenge. */
  challenge: string;
  password: string;
  /** IP address of the box. */
  address: string;
  /** Monotonic time of the last signed message that the box posted. */
  heardMs: number;
  cut(): void;
}

/** The sender of a request. */
export interface Sender {
  terminalCode: string;
  sessionId: string;
}

/** The answer to a posted message: its status, and why it was refused. */
export type PostAnswer = Questions['post']['answer'];

/** Holds the open HTTP streams of all boxes at this gateway, and takes what these boxes post. */
export class HttpStreams {
  readonly #world: World;
  readonly #wire: BoxWire;
  /** By terminalCode and sessionId, oldest first. */
  readonly #streams = new Map<string, Map<string, BoxStream>>();

  constructor(world: World, wire: BoxWire) {
    this.#world = world;
    this.#wire = wire;
  }

  get({ terminalCode, sessionId }: Sender): BoxStream | undefined {
    return this.#streams.get(terminalCode)?.get(sessionId);
  }

  /** Returns the streams of a box, oldest first. */
  of(terminalCode: string): BoxStream[] {
    return [...(this.#streams.get(terminalCode)?.values() ?? [])];
  }

  /** Returns true if the stream of this session was opened with this password. */
  isOpenedWith(password = '', sender: Sender): boolean {
    const opened = this.get(sender)?.password;
    return opened !== undefined && equalSecrets(password, opened);
  }

  add({ terminalCode, sessionId }: Sender, stream: BoxStream): void {
    const own = this.#streams.get(terminalCode) ?? new Map<string, BoxStream>();
    this.#streams.set(terminalCode, own.set(sessionId, stream));
  }

  remove({ terminalCode, sessionId }: Sender, stream: BoxStream): void {
    const own = this.#streams.get(terminalCode);
    if (own?.get(sessionId) !== stream) return;
    own.delete(sessionId);
    if (own.size === 0) this.#streams.delete(terminalCode);
  }

  /** Takes a message that the box of a stream has posted, here or at another gateway. Rejects when the store fails. */
  async take(sender: Sender, posted: Uint8Array | string): Promise<PostAnswer> {
    const { clock, log } = this.#world;
    const { hub, signer } = this.#wire;
    const { terminalCode: box, sessionId } = sender;
    const stream = this.get(sender);
    if (stream === undefined) return { status: 409, reason: 'a post without the stream of its session' };
    const message = await signer.verify(box, stream.challenge, posted);
    // The box repeats a post when the connection broke before the answer. The first one was accepted.
    if (!message.ok && message.code === 'MESSAGE_REPLAYED') {
      log.warn('message-refused', { box, code: message.code, reason: message.reason });
      return { status: 202 };
    }
    if (!message.ok) return { status: 400, reason: `${message.code}: ${message.reason}` };
    if (message.value.sessionId !== sessionId) {
      return { status: 400, reason: `a message of another session than the header ${BOX_SESSION_HEADER}` };
    }
    stream.heardMs = clock.monotonicMs();
    // The hub has logged the reason. The box ends its session, and sends unacknowledged reports again in the next one.
    return { status: (await hub.receive(box, stream.connection, message.value)) ? 202 : 503 };
  }

  end(): void {
    for (const own of this.#streams.values()) for (const { connection } of own.values()) connection.end();
  }
}
