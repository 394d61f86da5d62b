import type { AedesOptions, AedesPublishPacket, Client } from 'aedes';
import type { Clock } from '../../../lib/clock.ts';
import type { Random } from '../../../lib/random.ts';
import { equalSecrets } from '../../../protocol/checksum.ts';
import {
  boxIdTopic,
  DIALECT_RIGHTS,
  decodeEnrolRequest,
  ENROL_TOPIC,
  type EnrolAnswer,
  enrolAnswerTopics,
  isAmong,
  macCheckSum,
  macDigits,
  macWithColons,
} from '../../../protocol/dialect.ts';
import type { ListenAddress, PeerWorld, TlsIdentity } from '../box/gateway/endpoint.ts';
import { type ConnectPacket, loginRefused, ScriptedBroker } from '../box/gateway/scripted-broker.ts';
import { PeerLog } from '../peer-log.ts';

/** Firmware often leaves out the slash. */
const SLASHLESS = ENROL_TOPIC.slice(1);
const CONNECTIONS_KEPT_MAX = 1_000;
/** So many characters of what a box has sent are quoted. */
const QUOTED_MAX = 100;
/** So many characters of a message are in the evidence. */
const SHOWN_MAX = 2_000;

/** The judged box of the public dialect, and what all boxes of its service share. */
export interface DialectIdentity {
  /** Begins its boxId. */
  terminalCode: string;
  macAddr: string;
  checkSumSalt: string;
  /** If undefined, the broker accepts every login. */
  login?: { username: string; password: string } | undefined;
}

/** One connection at the broker. */
export interface BoxLine {
  readonly client: Client;
  readonly connect: ConnectPacket | undefined;
  /** Its subscriptions, also those that the broker has not made yet. */
  readonly asked: Set<string>;
  readonly filters: Set<string>;
  /** Enrolments that this service accepts. */
  enrolments: number;
  /** Its subscriptions when it first enrolled. */
  askedBefore: readonly string[] | undefined;
}

/**
 * Plays the public service for one box, with its broker (PROTOCOL.md, clauses VQD-1 to VQD-4). Checks choose the
 * messages that it sends. It records the violations of the box.
 */
export class ScriptedService {
  readonly identity: DialectIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log = new PeerLog();
  /** Connections in order; the oldest of many are dropped. */
  readonly lines: BoxLine[] = [];
  readonly #byClient = new WeakMap<Client, BoxLine>();
  readonly broker: ScriptedBroker;
  /** The last connection or login that came to nothing. */
  lastProblem = '';
  /** The answer to an enrolment. Its boxId is new in each run, so a box brings nothing from an earlier one. */
  readonly answer: EnrolAnswer;
  /** Replaces the answer. */
  certificate: string | undefined;
  /** True if it answers no enrolment. */
  isSilent = false;
  /** The QRs of all messages so far. */
  readonly sentQrs = new Set<string>();
  /** True once it has sent the box its account (N16). */
  hasLinked = false;
  /** True if the last wait for the box was in vain. */
  isGivenUp = false;

  private constructor(identity: DialectIdentity, { clock, random }: PeerWorld<TlsIdentity>, broker: ScriptedBroker) {
    this.broker = broker;
    this.identity = identity;
    this.clock = clock;
    this.random = random;
    const boxId = Buffer.from(`${identity.terminalCode}${random.uuid()}`).toString('base64url');
    this.answer = { qrCertificate: `bench-certificate-${random.uuid()}`, boxId };
  }

  /** Port 0 takes a free one. Throws ConfigError that names the option. */
  static async open(
    at: ListenAddress,
    identity: DialectIdentity,
    world: PeerWorld<TlsIdentity>,
  ): Promise<ScriptedService> {
    const broker = await ScriptedBroker.create();
    const service = new ScriptedService(identity, world, broker);
    await broker.listen(at, service.#rights(), world.tls);
    const { aedes } = broker;
    aedes.on('publish', (packet, client) => service.#onPublish(packet, client));
    aedes.on('subscribe', (subscriptions, client) => {
      for (const { topic } of subscriptions) service.#byClient.get(client)?.filters.add(topic);
    });
    aedes.on('unsubscribe', (filters, client) => {
      for (const filter of filters) service.#byClient.get(client)?.filters.delete(filter);
    });
    return service;
  }

  get boxTopic(): string {
    return boxIdTopic(this.answer.boxId);
  }

  get answerTopics(): string[] {
    return enrolAnswerTopics(macWithColons(this.identity.macAddr));
  }

  /** The newest connection on which the box has enrolled; it may be closed. */
  get line(): BoxLine | undefined {
    return this.lines.findLast(({ enrolments }) => enrolments > 0);
  }

  /** True if the box has enrolled on an open connection, and listens on its topic there. */
  get isHeard(): boolean {
    const { line } = this;
    return line?.client.connected === true && [...line.filters].some((it) => it === this.boxTopic || /[+#]/.test(it));
  }

  /** Sends a message to the box, or to another topic. */
  async say(message: object | string | Uint8Array, { topic = this.boxTopic, retain = false } = {}): Promise<void> {
    const isRaw = typeof message === 'string' || message instanceof Uint8Array;
    const payload = isRaw ? message : JSON.stringify(message);
    if ('qrCode' in Object(message)) this.sentQrs.add(String(Object(message).qrCode));
    this.log.traffic(`sent to ${topic}`, String(payload).slice(0, SHOWN_MAX));
    await this.broker.publish(topic, payload, retain);
  }

  cut(): void {
    this.broker.cut();
  }

  /** Accepts no connection until this is called with false. */
  leave(isAway: boolean): void {
    this.broker.isAway = isAway;
    if (isAway) this.cut();
  }

  close(): Promise<void> {
    return this.broker.close();
  }

  #rights(): AedesOptions {
    return {
      authenticate: (client, username = '', password, done) => {
        const { login } = this.identity;
        const isRight = username === login?.username && equalSecrets(String(password ?? ''), login.password);
        if (login === undefined || isRight) {
          this.#add({
            client,
            connect: this.broker.connectOf(client),
            asked: new Set(),
            filters: new Set(),
            enrolments: 0,
            askedBefore: undefined,
          });
          done(null, true);
          return;
        }
        this.lastProblem = 'a login was refused: its name or password is not that of --username and --password-file';
        this.log.violate('VQD-1', 'logged in with another name or password than the one that all boxes share');
        done(loginRefused(this.lastProblem), false);
      },
      authorizePublish: (client, { topic, qos }, done) => {
        const line = client === null ? undefined : this.#byClient.get(client);
        if (topic === ENROL_TOPIC && line !== undefined) line.askedBefore ??= [...line.asked];
        if (topic !== SLASHLESS && !isAmong(DIALECT_RIGHTS.write, topic))
          this.log.violate('VQD-1', `published to ${topic}`);
        if (qos === 2) this.log.violate('VQD-1', 'published with QoS 2');
        done(null);
      },
      // A box may read everything, as at the public service. Checks judge what it believes of that.
      authorizeSubscribe: (client, subscription, done) => {
        const { topic, qos } = subscription;
        this.#byClient.get(client)?.asked.add(topic);
        if (!isAmong(DIALECT_RIGHTS.read, topic)) this.log.violate('VQD-1', `subscribed to ${topic}`);
        if (qos === 2) this.log.violate('VQD-1', `subscribed to ${topic} with QoS 2`);
        done(null, subscription);
      },
    };
  }

  #add(line: BoxLine): void {
    if (this.lines.length >= CONNECTIONS_KEPT_MAX) this.lines.shift();
    this.lines.push(line);
    this.#byClient.set(line.client, line);
  }

  #onPublish({ topic, payload }: AedesPublishPacket, client: Client | null): void {
    const line = client === null ? undefined : this.#byClient.get(client);
    if (line === undefined) return;
    const text = String(payload);
    this.log.traffic(`received on ${topic}`, masked(text).slice(0, SHOWN_MAX));
    if (topic === ENROL_TOPIC) this.#enrol(line, text);
    else if (topic === SLASHLESS) this.log.violate('VQD-2', `enrols on ${topic}, without the leading slash`);
  }

  /** Answers as the public service: nobody but the awaited box, and only if its checkSum is right. */
  #enrol(line: BoxLine, text: string): void {
    const { macAddr, checkSumSalt } = this.identity;
    const asked = decodeEnrolRequest(text);
    if (!asked.ok) {
      this.log.violate(
        'VQD-2',
        `its enrolment is not {macAddr, checkSum}: ${masked(text).slice(0, QUOTED_MAX)}: ${asked.reason}`,
      );
    } else if (macDigits(asked.value.macAddr) !== macDigits(macAddr)) {
      this.lastProblem = `a box with the MAC address ${asked.value.macAddr} enrolled, not ${macAddr}`;
    } else if (!equalSecrets(asked.value.checkSum, macCheckSum(asked.value.macAddr, checkSumSalt))) {
      this.log.violate(
        'VQD-2',
        'its checkSum is not the lower-case hexadecimal MD5 of its macAddr as sent and the salt',
      );
    } else {
      line.enrolments += 1;
      if (this.isSilent) return;
      const answer = { ...this.answer, qrCertificate: this.certificate ?? this.answer.qrCertificate };
      // A broker that closes meanwhile has nobody to answer.
      for (const topic of enrolAnswerTopics(asked.value.macAddr)) this.say(answer, { topic }).catch(() => undefined);
    }
  }
}

/** Hides the checkSum: whoever has it can enrol in the box's place. */
function masked(text: string): string {
  return text.replaceAll(/("checkSum"\s*:\s*")[^"]*/g, '$1•••');
}
