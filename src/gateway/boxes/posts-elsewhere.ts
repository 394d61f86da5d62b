import { reasonOf } from '../../lib/errors.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import type { World } from '../common/world.ts';
import type { PostAnswer, Sender } from './http-streams.ts';

/** A box waits 5 s for the answer to its post. */
const ANSWER_MS = 4_000;
/** How long the gateway remembers where the stream of a session is. */
const KNOWN_MS = 30_000;
/** How many sessions are remembered. The one remembered first is then forgotten. */
const KNOWN_MAX = 10_000;

interface Known {
  run: string;
  password: string;
  untilMs: number;
}

/** Hands what boxes post here to the gateways that have their streams (PROTOCOL.md, clause BOX-HTTP-2). */
export class PostsElsewhere {
  readonly #world: World;
  /** By terminalCode and sessionId. The message of such a session was accepted there with this password. */
  readonly #known = new Map<string, Known>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Returns true if another gateway has lately accepted a message of this session that came with this password. */
  isAcceptedWith(password = '', sender: Sender): boolean {
    const known = this.#get(sender);
    return known !== undefined && equalSecrets(password, known.password);
  }

  /** Returns the answer of the gateway that has the stream. The message may have arrived although it is 503. */
  async post(sender: Sender, password: string, message: string): Promise<PostAnswer> {
    try {
      const run = this.#get(sender)?.run;
      const answer = run === undefined ? undefined : await this.#ask(run, sender, password, message);
      // The stream may be at another gateway by now.
      if (answer !== undefined && answer.status !== 409) return answer;
      const { terminalCode, sessionId } = sender;
      const found = await this.#world.place.streamElsewhere(terminalCode, sessionId);
      if (found === undefined) return { status: 409, reason: 'a post without the stream of its session' };
      return await this.#ask(found, sender, password, message);
    } catch (error) {
      return { status: 503, reason: `the database does not say where the stream is: ${reasonOf(error)}` };
    }
  }

  async #ask(run: string, sender: Sender, password: string, message: string): Promise<PostAnswer> {
    const { clock, place } = this.#world;
    const { terminalCode: box, sessionId } = sender;
    const answer = await place.ask(run, 'post', { box, sessionId, message }, ANSWER_MS);
    const key = keyOf(sender);
    this.#known.delete(key);
    if (answer?.status === 202) {
      this.#known.set(key, { run, password, untilMs: clock.monotonicMs() + KNOWN_MS });
      const [first] = this.#known.keys();
      if (this.#known.size > KNOWN_MAX && first !== undefined) this.#known.delete(first);
    }
    return answer ?? { status: 503, reason: 'the gateway that has the stream of this session does not answer' };
  }

  #get(sender: Sender): Known | undefined {
    const known = this.#known.get(keyOf(sender));
    return known !== undefined && known.untilMs > this.#world.clock.monotonicMs() ? known : undefined;
  }
}

function keyOf({ terminalCode, sessionId }: Sender): string {
  return `${terminalCode} ${sessionId}`;
}
