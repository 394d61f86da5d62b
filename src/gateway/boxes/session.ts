import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { BOX_UNHEARD_MAX_MS } from '../../protocol/http-api.ts';
import { type DownBody, type DownMessage, MESSAGE_VERSION, type UpOf } from '../../protocol/messages.ts';
import type { BoxConnection } from './connection.ts';

/** What a box owes an answer to is said again after this (PROTOCOL.md, clauses MSG-7 and MSG-9). */
const RESEND_MS = 10_000;

/** Payments and withdrawals that wait for an answer; what comes to more is told as these are answered (clause MSG-7). */
const ASKED_MAX = 100;

interface Deps {
  clock: Clock;
  random: Random;
}

/** A session of a registered box (PROTOCOL.md, clause MSG-4), with what the box was told and has not answered. */
export class Session {
  readonly sessionId: string;
  readonly agentVersion: string;
  readonly display: string;
  readonly connection: BoxConnection;
  /** Calendar time, in milliseconds since 1970. */
  readonly sinceMs: number;
  readonly #helloAtMs: number;
  #heardAtMs: number;
  readonly #deps: Deps;
  /** Ids of payments and pushes. */
  readonly #unanswered = new Set<string>();
  readonly #over = new AbortController();
  /** The store may hold more than the box was told at a time, or could not be read. */
  #moreWaits = true;
  /** Something came to the store while it was being read. */
  #moreCame = false;

  constructor(hello: UpOf<'hello'>, line: BoxConnection, deps: Deps) {
    this.sessionId = hello.sessionId;
    this.agentVersion = hello.agentVersion;
    this.display = hello.display;
    this.connection = line;
    this.sinceMs = deps.clock.wallMs();
    this.#helloAtMs = deps.clock.monotonicMs();
    this.#heardAtMs = this.#helloAtMs;
    this.#deps = deps;
  }

  /** How long ago its hello was taken, in whole milliseconds of the monotonic clock. */
  ageMs(): number {
    return Math.floor(this.#deps.clock.monotonicMs() - this.#helloAtMs);
  }

  /** The agent has said something in this session. */
  heard(): void {
    this.#heardAtMs = this.#deps.clock.monotonicMs();
  }

  /** Whether its agent can still be there: it gives a sign of life every 10 s (PROTOCOL.md, clause MSG-11). */
  get isAlive(): boolean {
    return this.#deps.clock.monotonicMs() - this.#heardAtMs < BOX_UNHEARD_MAX_MS;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  send(body: DownBody): void {
    sendTo(this, body, this.#deps);
  }

  /** Whether so much waits for an answer that what comes now has to wait in the store. */
  get isBusy(): boolean {
    return this.#unanswered.size >= ASKED_MAX;
  }

  /** Sends what wants an answer. */
  sendUntilAnswered(id: string, body: DownBody): void {
    this.#unanswered.add(id);
    this.send(body);
  }

  answered(id: string): void {
    this.#unanswered.delete(id);
  }

  /** Whether the box has answered all that it was told, and there is more. */
  get isReadyForResend(): boolean {
    return this.#moreWaits && this.#unanswered.size === 0;
  }

  /** The store is read for all that it has to answer; what it is asked meanwhile counts too. */
  beginResend(): void {
    this.#unanswered.clear();
    this.#moreWaits = true;
    this.#moreCame = false;
  }

  /** The store has been read; `moreWaits` when it holds more than is told at a time. */
  endResend(moreWaits: boolean): void {
    this.#moreWaits = moreWaits || this.#moreCame;
  }

  /** The store has to be read again: it has more for this box, or something of the box could not be kept. */
  resendFromStore(): void {
    this.#moreWaits = true;
    this.#moreCame = true;
  }

  /** Calls `tellAll` every `RESEND_MS` for which an answer is missing, until the session is over. */
  async resendRegularly(tellAll: () => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#deps.clock.sleep(RESEND_MS, signal);
      if (!signal.aborted && (this.#moreWaits || this.#unanswered.size > 0)) await tellAll();
    }
  }

  end(): void {
    this.#over.abort();
  }
}

/** Sends a message on a line to the agent with this session, registered or not. */
export function sendTo(
  { connection, sessionId }: { connection: BoxConnection; sessionId: string },
  body: DownBody,
  { clock, random }: Deps,
): void {
  const head = { v: MESSAGE_VERSION, id: random.uuid(), sentAtMs: clock.wallMs(), sessionId } as const;
  connection.send({ ...head, ...body } satisfies DownMessage);
}
