import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import { MissingPeerError, reasonOf } from '../../../lib/errors.ts';
import { askHttp, openHttp } from '../../../lib/http-client.ts';
import { systemRandom } from '../../../lib/random.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import {
  BOX_CHALLENGE_HEADER,
  BOX_EVENT_CHARS_MAX,
  BOX_PATHS,
  BOX_SESSION_HEADER,
} from '../../../protocol/http-api.ts';
import { loginOf, signingKeyOf } from '../../../protocol/keys.ts';
import {
  BOX_ALIVE_MS,
  type DownMessage,
  type DownOf,
  MESSAGE_VERSION,
  type UpBody,
  type UpMessage,
} from '../../../protocol/messages.ts';
import { BoxSeal } from '../../../protocol/seal.ts';
import { PreconditionFailed } from '../check.ts';
import { PeerLog } from '../peer-log.ts';
import type { ServiceRun } from './subject.ts';

const MESSAGE_TIMEOUT_MS = 10_000;
/** Real time, for a service on a busy machine. */
const POST_TIMEOUT_MS = 20_000;
const KEY_BYTES = 32;
const RECEIVED_MAX = 10_000;

/** Handles a push that the box gets. */
export type OnShow = (box: SimulatedBox, show: DownOf<'show'>) => Promise<void>;

/**
 * Plays a box over HTTP (PROTOCOL.md, clauses BOX-HTTP, MSG and SIG). It answers payments and withdrawals as a box
 * does, so that none is left undelivered when it closes.
 */
export class SimulatedBox {
  readonly #log = new PeerLog<DownMessage>(RECEIVED_MAX);
  readonly #run: ServiceRun;
  readonly #onShow: OnShow;
  readonly #sessionId = systemRandom.uuid();
  readonly #seal: BoxSeal;
  readonly #origin: string;
  readonly #headers: Record<string, string>;
  readonly #names: { terminalCode: string; serialNumber: string };
  readonly #closed = new AbortController();
  #challenge = '';
  /** Messages are posted one after the other. */
  #posts: Promise<void> = Promise.resolve();
  #fault: unknown;

  private constructor(run: ServiceRun, onShow: OnShow) {
    const { box = {}, boxSecret: secret = '', access } = run.subject.options;
    const { terminalCode = '', serialNumber = '' } = box;
    const key = signingKeyOf(systemRandom.secret(KEY_BYTES));
    const sessionId = this.#sessionId;
    this.#run = run;
    this.#log.onTraffic = (title, detail) => run.evidence.add('status', title, { detail });
    this.#onShow = onShow;
    this.#names = { terminalCode, serialNumber };
    this.#seal = new BoxSeal({ terminalCode, sessionId, secret }, key, run.subject.time.clock);
    this.#origin = new URL(access.baseUrl).origin;
    const basic = Buffer.from(`${terminalCode}:${loginOf(secret)}`, 'utf8').toString('base64');
    run.subject.redactor.addSecret(basic);
    this.#headers = { authorization: `Basic ${basic}`, [BOX_SESSION_HEADER]: sessionId };
  }

  /** Connects and says hello. Throws PreconditionFailed when the service refuses the box, or links another account. */
  static async connect(run: ServiceRun, onShow: OnShow = (box, show) => box.show(show)): Promise<SimulatedBox> {
    const box = new SimulatedBox(run, onShow);
    try {
      await run.subject.time.inRealTime(() => box.#begin());
      const { link } = await box.expect('welcome');
      if (link?.bankAccount === run.subject.options.account.bankAccount) return box;
      throw new PreconditionFailed(
        `needs a box that is linked to --account, this one is linked to ${link?.bankAccount ?? 'none'}`,
      );
    } catch (error) {
      await box.close();
      throw error;
    }
  }

  of<T extends DownMessage['type']>(type: T): DownOf<T>[] {
    return this.#log.arrived.filter((it): it is DownOf<T> => it.type === type);
  }

  /** Waits for the `nth` message of a type, counted from 1. Throws PreconditionFailed when it does not come. */
  async expect<T extends DownMessage['type']>(type: T, nth = 1, withinMs = MESSAGE_TIMEOUT_MS): Promise<DownOf<T>> {
    const found = await this.waitFor(type, nth, withinMs);
    if (found !== undefined) return found;
    const why = this.#fault === undefined ? '' : `: ${reasonOf(this.#fault)}`;
    throw new PreconditionFailed(`needs a ${type} of the gateway, and none came within ${withinMs / 1_000} s${why}`);
  }

  /** Waits as `expect` does, but returns undefined when the message does not come. */
  async waitFor<T extends DownMessage['type']>(
    type: T,
    nth = 1,
    withinMs = MESSAGE_TIMEOUT_MS,
  ): Promise<DownOf<T> | undefined> {
    return this.find(type, (message) => this.of(type).indexOf(message) === nth - 1, withinMs);
  }

  /** Waits for a matching message; undefined when none comes. Undelivered older messages may come too. */
  async find<T extends DownMessage['type']>(
    type: T,
    isIt: (message: DownOf<T>) => boolean,
    withinMs = MESSAGE_TIMEOUT_MS,
  ): Promise<DownOf<T> | undefined> {
    const isFound = (message: DownMessage): message is DownOf<T> => message.type === type && isIt(message as DownOf<T>);
    return this.#log.find(this.#run, withinMs, isFound);
  }

  /** Reports a push as accepted and shown. */
  async show({ pushId }: { pushId: string }): Promise<void> {
    await this.send({ type: 'accepted', pushId });
    await this.send({ type: 'shown', pushId });
  }

  send(body: UpBody, id: string = systemRandom.uuid()): Promise<void> {
    const { clock } = this.#run.subject.time;
    const head = { v: MESSAGE_VERSION, id, sentAtMs: clock.wallMs(), sessionId: this.#sessionId } as const;
    const message: UpMessage = { ...head, ...body };
    this.#log.traffic(`the box sends ${message.type}`, message);
    const sealed = this.#seal.seal(message, this.#challenge);
    const sending = this.#posts.then(() => this.#post(sealed));
    this.#posts = sending.catch(() => undefined);
    return sending;
  }

  /** Breaks the connection, as a power cut does. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#posts;
  }

  async #begin(): Promise<void> {
    const headers = { ...this.#headers, accept: 'text/event-stream' };
    const url = `${this.#origin}${BOX_PATHS.stream}`;
    const stream = await openHttp(url, { headers, signal: this.#signal() }).catch((error: unknown) => {
      this.#run.signal.throwIfAborted();
      const fix = 'boxes are looked for at the origin of the service';
      throw new MissingPeerError(`no gateway of boxes answers at ${this.#origin}: ${reasonOf(error)}`, fix, error);
    });
    this.#challenge = String(stream.headers[BOX_CHALLENGE_HEADER] ?? '');
    if (stream.statusCode !== 200 || this.#challenge === '') {
      stream.destroy();
      throw new PreconditionFailed(`needs a box at ${url}, which answered ${stream.statusCode}`);
    }
    void this.#read(stream);
    void this.#sayAlive();
    const display = { agentVersion: 'bench', display: 'bench', shownPushId: null };
    await this.send({ type: 'hello', ...this.#names, ...display });
  }

  async #read(stream: IncomingMessage): Promise<void> {
    const parser = createParser({
      maxBufferSize: BOX_EVENT_CHARS_MAX,
      onEvent: ({ data }) => this.#take(data),
      onError: (error) => error.type === 'max-buffer-size-exceeded' && stream.destroy(error),
    });
    try {
      for await (const text of stream.setEncoding('utf8')) parser.feed(String(text));
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#fault = error;
    }
  }

  #take(sealed: string): void {
    const opened = this.#seal.open(sealed);
    if (!opened.ok) {
      this.#fault = new Error(`${opened.code}: ${opened.reason}`);
      return;
    }
    const message = opened.value;
    this.#log.traffic(`the box receives ${message.type}`, message);
    this.#log.add(message);
    // The box does not send it again, because the gateway repeats its message in the next session.
    this.#answer(message).catch((error: unknown) => {
      this.#fault = error;
    });
  }

  async #answer(message: DownMessage): Promise<void> {
    if (message.type === 'show') await this.#onShow(this, message);
    if (message.type === 'withdraw') {
      const { pushId } = message;
      const orderId = this.of('show').find((it) => it.pushId === pushId)?.orderId ?? '';
      await this.send({ type: 'ended', pushId, orderId, how: 'withdrawn' }, pushId);
    }
    if (message.type === 'payment') {
      const { transactionId, orderId, amount } = message;
      await this.send({ type: 'paid', transactionId, orderId, amount, recorded: true }, transactionId);
    }
  }

  async #sayAlive(): Promise<void> {
    const { time } = this.#run.subject;
    const { signal } = this.#closed;
    while (!signal.aborted) {
      await time.clock.sleep(BOX_ALIVE_MS, signal);
      if (signal.aborted) return;
      await this.send({ type: 'alive' }).catch((error: unknown) => {
        this.#fault = error;
      });
    }
  }

  #post(body: string): Promise<void> {
    const path = BOX_PATHS.messages;
    return this.#run.subject.time.inRealTime(async () => {
      const headers = { ...this.#headers, 'content-type': 'application/jose' };
      const request = { method: 'POST', headers, body, signal: this.#signal() };
      const limits = { timeoutMs: POST_TIMEOUT_MS, bytesMax: LIMITS.httpBodyBytesMax };
      const { status } = await askHttp(`${this.#origin}${path}`, request, limits);
      if (status !== 202) throw new Error(`${path} answered ${status}`);
    });
  }

  #signal(): AbortSignal {
    return AbortSignal.any([this.#closed.signal, this.#run.signal]);
  }
}

/** Simulates the box until `work` settles. */
export async function withSimulatedBox<T>(
  run: ServiceRun,
  work: (box: SimulatedBox) => Promise<T>,
  onShow?: OnShow,
): Promise<T> {
  const box = await SimulatedBox.connect(run, onShow);
  try {
    return await work(box);
  } finally {
    await box.close();
  }
}
