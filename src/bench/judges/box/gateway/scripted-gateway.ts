import type { Clock } from '../../../../lib/clock.ts';
import type { Random } from '../../../../lib/random.ts';
import type { Code } from '../../../../protocol/codes.ts';
import { LIMITS } from '../../../../protocol/fields.ts';
import { type SigningKey, signingKeyOf } from '../../../../protocol/keys.ts';
import {
  type DownBody,
  type LinkedAccount,
  MESSAGE_VERSION,
  type UpMessage,
  type UpOf,
} from '../../../../protocol/messages.ts';
import { GatewaySeal, type ReadMessage, readUp } from '../../../../protocol/seal.ts';
import { PeerLog, type Violation } from '../../peer-log.ts';
import type {
  Connection,
  EndpointEvents,
  JudgedIdentity,
  LoginAttempt,
  MessageResult,
  PeerWorld,
  TlsIdentities,
  TlsIdentity,
  WelcomeMode,
} from './endpoint.ts';
import { HttpEndpoint } from './http-endpoint.ts';
import { MessageSigner } from './message-signer.ts';
import { MqttEndpoint } from './mqtt-endpoint.ts';
import { ScriptedBroker } from './scripted-broker.ts';
import { clauseOf, clauseOfUnreadable, helloViolations, orderViolations } from './violations.ts';

const SEED_BYTES = 32;
/** Messages and sessions of the box that are kept. */
const RECEIVED_MAX = 20_000;
const SESSIONS_MAX = 1_000;
const LOGINS_MAX = 200;

/** The account linked to the judged box. */
export const ACCOUNT: LinkedAccount = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };

/** A legal message of the box. */
export interface ReceivedMessage {
  message: UpMessage;
  session: Session;
  /** On the gateway's monotonic clock. */
  atMs: number;
}

/** A session of the box, begun by a hello. */
export interface Session {
  readonly sessionId: string;
  readonly connection: Connection;
  readonly hello: UpOf<'hello'>;
  /** Thumbprint of the box's key, and the time of its hello by its clock. */
  readonly kid: string;
  readonly helloMs: number;
  readonly signer: MessageSigner;
  readonly verifier: GatewaySeal;
  isWelcomed: boolean;
  /** Sequence number of the last message. */
  seq: number;
  /** Session time of the last message, by the box. */
  sessionMs: number;
}

export interface GatewayPlace {
  host: string;
  mqttPort: number;
  httpPort: number;
}

/**
 * Plays the gateway for one box, over both transports. Checks choose the messages that it sends. It records the
 * violations of the box.
 */
export class ScriptedGateway {
  readonly identity: JudgedIdentity;
  readonly tls: TlsIdentities | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log = new PeerLog<ReceivedMessage>(RECEIVED_MAX);
  readonly sessions: Session[] = [];
  readonly logins: LoginAttempt[] = [];
  readonly mqtt: MqttEndpoint;
  readonly http: HttpEndpoint;
  #key: SigningKey;
  /** Account and pushes in the next welcomes. */
  account: LinkedAccount | null = ACCOUNT;
  openPushIds: string[] = [];
  mode: WelcomeMode = {};
  /** Answer to a hello; a code is a refusal. */
  helloAnswer: 'welcome' | 'nothing' | Code = 'welcome';
  /** True if it answers signs of life. */
  answersAlive = true;
  /** True if it acknowledges reports at once. */
  acksReports = true;
  /** Set to a sentence when a second box uses the same identity. */
  duplicateBox: string | undefined;
  /** Called with every message at the moment when it comes in. */
  onMessage: ((message: UpMessage) => void) | undefined;

  private constructor(identity: JudgedIdentity, world: PeerWorld<TlsIdentities>, broker: ScriptedBroker) {
    const { clock, random, tls } = world;
    this.identity = identity;
    this.tls = tls;
    this.clock = clock;
    this.random = random;
    this.#key = signingKeyOf(random.secret(SEED_BYTES));
    const events: EndpointEvents = {
      login: (login) => this.#onLogin(login),
      message: (connection, bytes) => this.#onMessage(connection, bytes),
      violation: (clause, what) => this.log.violate(clause, what),
    };
    const shared = { clock, random, events, tls: tls?.valid };
    this.mqtt = new MqttEndpoint(identity, shared, broker);
    this.http = new HttpEndpoint(identity, shared);
  }

  /** Listens on both ports; port 0 takes a free one. Throws ConfigError that names the option. */
  static async open(
    { host, mqttPort, httpPort }: GatewayPlace,
    identity: JudgedIdentity,
    world: PeerWorld<TlsIdentities>,
  ): Promise<ScriptedGateway> {
    const gateway = new ScriptedGateway(identity, world, await ScriptedBroker.create());
    const { mqtt, http } = gateway;
    await mqtt.listen({ host, port: mqttPort });
    try {
      await http.listen({ host, port: httpPort });
    } catch (error) {
      await mqtt.close();
      throw error;
    }
    return gateway;
  }

  /** The newest session; its connection may be closed. */
  get session(): Session | undefined {
    return this.sessions.at(-1);
  }

  /** The transport of the newest session, or of the last login. */
  get transport(): 'mqtt' | 'http' | undefined {
    return this.session?.connection.transport ?? this.logins.findLast((it) => it.problem === undefined)?.transport;
  }

  /** Sends the next message in the newest session, or in another one. */
  send(body: DownBody, session = this.#current()): void {
    this.log.traffic(`sent ${body.type}`, body);
    session.connection.deliver(session.signer.sign(this.messageJson(body, session), session.isWelcomed));
  }

  /** Returns the JSON of a message; `more` replaces fields. */
  messageJson(body: DownBody, session = this.#current(), more: object = {}): string {
    const head = { v: MESSAGE_VERSION, id: this.random.uuid(), sentAtMs: this.clock.wallMs() };
    return JSON.stringify({ ...head, sessionId: session.sessionId, ...body, ...more });
  }

  acknowledge(reportIds: string[], session = this.#current()): void {
    this.send({ type: 'ack', reportIds }, session);
  }

  welcome(session = this.#current()): void {
    session.isWelcomed = true;
    this.send({ type: 'welcome', link: this.account, openPushIds: this.openPushIds, ...this.mode }, session);
  }

  /** Changes the signing key (PROTOCOL.md, clause SIG-5). Returns the old one. */
  rotate(): SigningKey {
    const old = this.#key;
    this.#key = signingKeyOf(this.random.secret(SEED_BYTES));
    for (const session of this.sessions) session.signer.rotate(this.#key);
    return old;
  }

  useTlsIdentity(choose: (all: TlsIdentities) => TlsIdentity): void {
    if (this.tls === undefined) return;
    for (const { tls } of [this.mqtt, this.http]) tls?.useIdentity(choose(this.tls));
  }

  get tlsHandshakes(): number {
    return (this.mqtt.tls?.handshakes ?? 0) + (this.http.tls?.handshakes ?? 0);
  }

  /** Breaks every connection, like a pulled cable. */
  cut(): void {
    this.mqtt.cut();
    this.http.cut();
  }

  /** Simulates a restart of the gateway. */
  async restart(): Promise<void> {
    await Promise.all([this.mqtt.restart(), this.http.restart()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.mqtt.close(), this.http.close()]);
  }

  #current(): Session {
    const { session } = this;
    if (session === undefined) throw new Error('no box has said hello');
    return session;
  }

  #onLogin(login: LoginAttempt): void {
    if (this.logins.length < LOGINS_MAX) this.logins.push(login);
    const { username, problem } = login;
    if (problem !== undefined && username === this.identity.terminalCode) this.log.violate('TOP-2', problem);
  }

  #onMessage(connection: Connection, bytes: Uint8Array): MessageResult {
    if (bytes.byteLength > LIMITS.messageBytesMax) return this.#refuse('LIM-4', `sent ${bytes.byteLength} bytes`);
    const read = readUp(this.identity.terminalCode, bytes);
    if (!read.ok) return this.#refuse(clauseOfUnreadable(read, bytes), `${read.code}: ${read.reason}`);
    const { jws, message } = read.value;
    const known = this.sessions.find(({ sessionId }) => sessionId === message.sessionId);
    if (known === undefined) return this.#greet(connection, read.value);
    if (known.connection !== connection) return this.#refuse('SIG-2', 'its session is on another connection');
    const opened = known.verifier.open(read.value);
    if (!opened.ok && opened.code === 'MESSAGE_REPLAYED' && connection.transport === 'http') return 'duplicate';
    if (!opened.ok) return this.#refuse(clauseOf(opened.code), `${opened.code}: ${opened.reason}`);
    if (message.type === 'hello') this.log.violate('MSG-4', 'said hello a second time in one session');
    this.#report(orderViolations(known, jws.head));
    Object.assign(known, { seq: jws.head.seq, sessionMs: jws.head.sessionMs });
    this.#keep(known, opened.value);
    if (known.kid !== this.session?.kid) this.#onDuplicateBox();
    return 'accepted';
  }

  #onDuplicateBox(): void {
    this.duplicateBox ??= `two boxes speak as ${this.identity.terminalCode}, with different keys: turn one of them off`;
  }

  #refuse(clause: string, what: string): MessageResult {
    this.log.violate(clause, what);
    return 'illegal';
  }

  #greet(connection: Connection, read: ReadMessage<UpMessage>): MessageResult {
    const { terminalCode, serialNumber, secret } = this.identity;
    const greeted = GatewaySeal.greet({ terminalCode, secret }, connection.challenge, read, this.clock);
    if (!greeted.ok) return this.#refuse(clauseOf(greeted.code, true), `${greeted.code}: ${greeted.reason}`);
    const { seal: verifier, hello } = greeted.value;
    const { head } = read.jws;
    this.#report(helloViolations(connection, hello, head, this.sessions));
    if (hello.terminalCode !== terminalCode || hello.serialNumber !== serialNumber) {
      return this.#refuse('MSG-4', `says hello as ${hello.terminalCode} with serial number ${hello.serialNumber}`);
    }
    // A restarted box has a new key, and never uses an old one again.
    const isReturn = this.session?.kid !== head.kid && this.sessions.some((it) => it.kid === head.kid);
    if (isReturn) this.#onDuplicateBox();
    const { sessionId } = hello;
    const signer = new MessageSigner({ terminalCode, secret, sessionId }, this.#key, this.clock);
    const { kid, helloMs = 0, seq, sessionMs } = head;
    const counted = { kid, helloMs, seq, sessionMs, isWelcomed: false };
    const session: Session = { sessionId, connection, hello, signer, verifier, ...counted };
    if (this.sessions.length >= SESSIONS_MAX) this.sessions.shift();
    this.sessions.push(session);
    this.#keep(session, hello);
    if (this.helloAnswer === 'welcome') this.welcome(session);
    else if (this.helloAnswer !== 'nothing') {
      this.send({ type: 'refused', code: this.helloAnswer, reason: 'said by the bench' }, session);
    }
    return 'accepted';
  }

  #report(violations: readonly Violation[]): void {
    for (const { clause, what } of violations) this.log.violate(clause, what);
  }

  #keep(session: Session, message: UpMessage): void {
    this.onMessage?.(message);
    this.log.traffic(`received ${message.type}`, message);
    if (message.type !== 'hello' && !session.isWelcomed)
      this.log.violate('MSG-4', `said ${message.type} without a welcome`);
    if (!this.log.add({ message, session, atMs: this.clock.monotonicMs() })) {
      this.log.violate('MSG-6', `sent more than ${RECEIVED_MAX} messages`);
    }
    if (message.type === 'alive' && this.answersAlive) this.send({ type: 'heard', aliveId: message.id }, session);
    const isReport = message.type === 'ended' || message.type === 'paid';
    if (isReport && this.acksReports) this.acknowledge([message.id], session);
  }
}
