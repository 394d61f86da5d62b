import type { DoneCallback, IPublishPacket, MqttClient } from 'mqtt';
import { withDeadline } from '../../../lib/clock.ts';
import { MissingPeerError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import { systemRandom } from '../../../lib/random.ts';
import {
  type BoxNotice,
  boxCodeIn,
  boxIdOf,
  boxIdTopic,
  decodeEnrolAnswer,
  decodeNotice,
  ENROL_TOPIC,
  type EnrolAnswer,
  macDigits,
} from '../../../protocol/dialect.ts';
import type { UpMessage } from '../../../protocol/messages.ts';
import { BROKER_SCHEMES } from '../../../protocol/packet-limit.ts';
import type { Connection, InboundMessage, LoginIo, Transport, TransportIo } from '../contract.ts';
import { begun } from './begin.ts';
import { brokerFailure, connected, refusedSubscription, startClient, unreachable, withClient } from './broker.ts';
import { InboundQueue, lost } from './inbound-queue.ts';
import { VietqrEnrolment } from './vietqr-enrolment.ts';
import { VietqrMemory } from './vietqr-memory.ts';
import {
  bootOptions,
  clientIdOf,
  enrolment,
  FROM_FILES,
  loginOf,
  topicsOf,
  type VietqrOptions,
  vietqrOptions,
} from './vietqr-options.ts';
import { VietqrSession } from './vietqr-session.ts';

/** At most this many notices wait for the box. Each waits for the one before it, and the broker stores the others. */
const INCOMING_MAX = 1_000;
/** The box waits at most this long for its goodbye. */
const GOODBYE_TIMEOUT_MS = 2_000;
const NO_ANSWER_FIX =
  'check link.macAddr and link.checkSumSalt; the service answers neither a MAC address that it does not know nor a wrong checkSum';

/** Connects a box to the public service, in its MQTT dialect (PROTOCOL.md, clause DIA). */
export const vietqrTransport: Transport<VietqrOptions> = {
  name: 'vietqr',
  summary: "the public service's own MQTT dialect, in which it knows boxes by their MAC addresses",
  schemes: BROKER_SCHEMES,
  canEnrol: false,
  ownLogin: { fromFiles: FROM_FILES, boot: bootOptions },
  options: vietqrOptions,
  example: {
    url: 'mqtts://broker.example',
    macAddr: '02:00:5E:10:00:01',
    checkSumSalt: 'sample-check-sum-salt',
    boxIdSalt: 'sample-box-id-salt',
    username: 'sample-boxes',
    password: 'sample-password',
    keepaliveSeconds: 15,
    connectTimeoutMs: 8000,
    qrLifetimeSeconds: 300,
    repeatWindowSeconds: 10,
  },
  urlOf: ({ origin, brokerPort = 1883 }) => `mqtt://${new URL(origin).hostname}:${brokerPort}`,
  checkLogin,
  async open(options, io, signal) {
    signal.throwIfAborted();
    const memory = await VietqrMemory.open(`${options.url} ${macDigits(options.macAddr)}`, {
      ...io,
      random: systemRandom,
      box: io.box,
      repeatWindowMs: options.repeatWindowSeconds * 1000,
    });
    const clientId = clientIdOf(options, io.sessionId);
    const client = await startClient(options, { ...loginOf(options), clientId, keepalive: options.keepaliveSeconds });
    const connection = new VietqrConnection(client, options, io, memory);
    return begun(connection, options, io, signal);
  },
};

/** Logs in under another client id. To a box that it knows already, the service answers as to a new one. */
async function checkLogin(options: VietqrOptions, { clock, sessionId }: LoginIo, signal: AbortSignal): Promise<string> {
  const login = { ...loginOf(options), clientId: clientIdOf(options, sessionId) };
  return withClient(options, login, async (client) => {
    const answer = new Promise<string>((resolve) => {
      client.on('message', (_topic, payload, { retain }) => {
        const decoded = decodeEnrolAnswer(payload);
        if (decoded.ok && !retain) resolve(boxCodeIn(decoded.value.boxId) ?? 'a box of unknown code');
      });
    });
    if ((await refusedSubscription(client, topicsOf(options))) !== undefined)
      throw noTopics(options, topicsOf(options));
    await client.publishAsync(ENROL_TOPIC, enrolment(options), { qos: 1 });
    signal.throwIfAborted();
    const code = await withDeadline(clock, options.connectTimeoutMs / 2, answer);
    if (code !== undefined) return `the broker accepts it, and the service knows this MAC address as ${code}`;
    throw new MissingPeerError('the broker accepts the login, but the service does not answer', NO_ANSWER_FIX);
  });
}

function noTopics({ url }: VietqrOptions, topics: string[], cause?: unknown): PayboxError {
  return new PayboxError('NOT_REGISTERED', `the broker at ${url} does not let this login read ${topics}`, {
    severity: 'retryable',
    fix: 'ask the service which topics link.username may read',
    cause,
  });
}

/** The age of a retained message is unknown. */
const RETAINED = { ok: false, reason: 'retained by the broker' } as const;

/** A message of the box's own session, or a notice and how to acknowledge it. */
type Waiting = { message: InboundMessage } | Unread;

interface Unread {
  notice: BoxNotice;
  done: () => void;
}

class VietqrConnection implements Connection {
  readonly incoming: AsyncIterable<InboundMessage>;
  readonly #queue = new InboundQueue<Waiting>(INCOMING_MAX);
  readonly #client: MqttClient;
  readonly #options: VietqrOptions;
  readonly #io: TransportIo;
  readonly #memory: VietqrMemory;
  readonly #session: VietqrSession;
  readonly #enrolment: VietqrEnrolment;
  readonly #broker: string;
  readonly #enrolled = Promise.withResolvers<void>();
  /** Holds notices that arrived before the hello, because the link accepts none before the welcome. */
  #early: Unread[] | undefined = [];
  /** The topic of the box that is subscribed. */
  #boxTopic = '';
  #onBroker = false;

  constructor(client: MqttClient, options: VietqrOptions, io: TransportIo, memory: VietqrMemory) {
    this.#client = client;
    this.#options = options;
    this.#io = io;
    this.#memory = memory;
    this.#broker = `the broker at ${options.url}`;
    const qrLifetimeMs = options.qrLifetimeSeconds * 1000;
    this.#session = new VietqrSession({ ...io, memory, newId: () => systemRandom.uuid(), qrLifetimeMs });
    this.#enrolment = new VietqrEnrolment({
      ...io,
      publish: () => void client.publish(ENROL_TOPIC, enrolment(options), { qos: 1 }),
      enrolled: () => memory.enrolled,
      isShowing: () => io.box.showing() !== undefined,
      take: (answer) => this.#take(answer),
    });
    this.incoming = this.#messages();
    client.handleMessage = (packet, done) => this.#receive(packet, done);
    client.on('error', (error) => this.#queue.fail(this.#failureOf(error)));
    client.on('close', () => this.#queue.fail(lost(`${this.#broker} ended the connection`)));
  }

  /** Settles once the box has its boxId and is subscribed (PROTOCOL.md, clauses DIA-1 and DIA-2). */
  async begin(signal: AbortSignal): Promise<void> {
    const giveUp = () => this.#queue.fail(this.#notThere(reasonOf(signal.reason)));
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      await this.#queue.whileOpen(this.#enrol());
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async send(message: UpMessage): Promise<void> {
    if (this.#queue.ended) throw lost('the connection is closed');
    const answer = await this.#session.answer(message);
    if (answer !== undefined) this.#queue.offer({ message: answer });
    if (message.type !== 'hello') return;
    for (const unread of this.#early ?? []) this.#queue.offer(unread);
    this.#early = undefined;
  }

  async close(): Promise<void> {
    this.#queue.close();
    if (this.#client.connected) {
      const ended = this.#client.endAsync().then(() => true);
      const said = ended.catch(() => true);
      if (await withDeadline(this.#io.clock, GOODBYE_TIMEOUT_MS, said)) return;
    }
    this.#client.end(true);
  }

  /**
   * Enrols the box. The box subscribes under the boxId that it must get before it asks, so it misses nothing that the
   * service sends at once.
   */
  async #enrol(): Promise<void> {
    await connected(this.#client);
    this.#onBroker = true;
    const { boxIdSalt = '' } = this.#options;
    const boxId = this.#memory.enrolled?.boxId ?? boxIdOf(this.#io.identity.terminalCode, boxIdSalt);
    await this.#subscribe(topicsOf(this.#options));
    await this.#listen(boxId);
    this.#enrolment.ask(this.#queue.over).catch((error: unknown) => this.#fail(error));
    if (this.#memory.enrolled === undefined) await this.#enrolled.promise;
  }

  async #listen(boxId: string): Promise<void> {
    this.#boxTopic = boxIdTopic(boxId);
    await this.#subscribe([this.#boxTopic]);
  }

  async #subscribe(topics: string[]): Promise<void> {
    const cause = await refusedSubscription(this.#client, topics);
    if (cause !== undefined && !this.#queue.ended) throw noTopics(this.#options, topics, cause);
  }

  /** Receives a packet. The client reads nothing more until `done`, which also acknowledges unless it has an error. */
  #receive(packet: IPublishPacket, done: DoneCallback): void {
    const { topic, payload, retain } = packet;
    if (topic !== this.#boxTopic) {
      this.#enrolment.hear(packet).catch((error: unknown) => this.#fail(error));
      done();
      return;
    }
    const decoded = retain === true ? RETAINED : decodeNotice(payload);
    if (!decoded.ok) {
      this.#refuse(decoded.reason);
      done();
      return;
    }
    const unread = { notice: decoded.value, done: () => done() };
    if (this.#early === undefined) {
      this.#queue.offer(unread);
    } else if (this.#memory.enrolled !== undefined) {
      this.#early.push(unread);
    } else if (this.#early.length < INCOMING_MAX) {
      // The answer to the enrolment comes after this notice. The box does not acknowledge this notice, because it may end
      // before the notice is on the disk.
      this.#early.push({ notice: decoded.value, done: () => undefined });
      done(new Error('not acknowledged'));
    } else {
      this.#queue.fail(lost(`${INCOMING_MAX} messages wait for the box`));
    }
  }

  #refuse(reason: string): void {
    this.#io.log.warn('message-refused', { code: 'MESSAGE_ILLEGAL', reason });
  }

  #fail(error: unknown): void {
    this.#queue.fail(lost(reasonOf(error), error));
  }

  async #take(answer: EnrolAnswer): Promise<void> {
    const { boxId } = answer;
    const before = this.#memory.enrolled;
    const kept = this.#memory.enrol(answer);
    // This happens in the same turn, so that the old connection delivers nothing for the new boxId.
    if (before !== undefined && before.boxId !== boxId)
      this.#queue.fail(lost('the service has given this box another boxId'));
    await kept;
    if (this.#queue.ended) return;
    if (this.#boxTopic !== boxIdTopic(boxId)) await this.#listen(boxId);
    this.#enrolled.resolve();
    if (before !== undefined) this.#queue.offer({ message: this.#session.linkMessage() });
  }

  async *#messages(): AsyncGenerator<InboundMessage, void, void> {
    for await (const waiting of this.#queue.items()) {
      if ('message' in waiting) {
        yield waiting.message;
        continue;
      }
      const { notice, done } = waiting;
      // The connection is gone, and with it the message that this QR was paid.
      if (notice.notificationType === 'N17' && this.#queue.ended) continue;
      // The meaning of this notice depends on what the box shows, so the box processes earlier ones first. It
      // acknowledges the notice once it is on the disk.
      await this.#io.box.processed();
      const message = await this.#session.translate(notice);
      if (message !== undefined) yield message;
      await this.#io.box.processed();
      if (!this.#queue.ended) done();
    }
  }

  #failureOf(error: Error): PayboxError {
    const refused = () =>
      new PayboxError('NOT_REGISTERED', `${this.#broker} does not accept the login`, {
        severity: 'retryable',
        fix: 'check link.username and link.password',
      });
    return brokerFailure(error, { broker: this.#broker, accepted: this.#onBroker, refused });
  }

  #notThere(reason: string): PayboxError {
    if (!this.#onBroker) return unreachable(this.#broker, reason);
    const what = `the service at ${this.#broker} did not answer the enrolment of ${this.#options.macAddr}: ${reason}`;
    return new MissingPeerError(what, NO_ANSWER_FIX);
  }
}
