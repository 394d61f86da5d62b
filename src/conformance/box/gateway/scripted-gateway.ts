import type { Clock } from '../../../lib/clock.ts';
import type { Random } from '../../../lib/random.ts';
import type { Code } from '../../../protocol/codes.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { readJws } from '../../../protocol/jws.ts';
import { type SigningKey, signingKeyOf } from '../../../protocol/keys.ts';
import { type DownBody, type Link, MESSAGE_VERSION, type UpMessage, type UpOf } from '../../../protocol/messages.ts';
import { GatewaySeal, type ReadMessage, readUp, type SealRefusal } from '../../../protocol/seal.ts';
import type { Connection, EndpointEvents, JudgedIdentity, LoginAttempt, MessageResult, Violation } from './endpoint.ts';
import { HttpEndpoint } from './http-endpoint.ts';
import { MessageSigner } from './message-signer.ts';
import { MqttEndpoint } from './mqtt-endpoint.ts';
import type { TlsIdentities, TlsIdentity } from './tls-listener.ts';

const SEED_BYTES = 32;
/** What is kept of one box. */
const HEARD_MAX = 20_000;
const SESSIONS_MAX = 1_000;
const OBJECTIONS_MAX = 200;
const LOGINS_MAX = 200;

/** The account that the judged box is linked to. */
export const ACCOUNT: Link = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };

/** One message of the box, taken. */
export interface ReceivedMessage {
  message: UpMessage;
  session: Session;
  /** On the gateway's monotonic clock. */
  atMs: number;
}

/** What begins with a hello. */
export interface Session {
  readonly sessionId: string;
  readonly connection: Connection;
  readonly hello: UpOf<'hello'>;
  /** The thumbprint of the box's key, and when it says that it made this hello. */
  readonly kid: string;
  readonly helloMs: number;
  readonly signer: MessageSigner;
  readonly verifier: GatewaySeal;
  isWelcomed: boolean;
  /** The number of the last message. */
  seq: number;
  /** Of the last message, as the box says. */
  sessionMs: number;
}

export interface GatewayDeps {
  clock: Clock;
  random: Random;
  /** What it shows of itself over TLS; without them it speaks without. */
  tls?: TlsIdentities | undefined;
}

export interface GatewayPlace {
  host: string;
  mqttPort: number;
  httpPort: number;
}

/** A gateway for one box, over both transports, that says what it is told to and notes what the box does against a clause. */
export class ScriptedGateway {
  readonly identity: JudgedIdentity;
  readonly tls: TlsIdentities | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly received: ReceivedMessage[] = [];
  readonly sessions: Session[] = [];
  readonly violations: Violation[] = [];
  readonly logins: LoginAttempt[] = [];
  #mqtt: MqttEndpoint | undefined;
  #http: HttpEndpoint | undefined;
  #key: SigningKey;
  /** What the next welcomes say. */
  account: Link | null = ACCOUNT;
  openPushIds: string[] = [];
  /** What a hello is answered; another code than a welcome is a refusal. */
  helloAnswer: 'welcome' | 'nothing' | Code = 'welcome';
  /** Whether signs of life are answered. */
  answersAlive = true;
  /** Whether reports are acknowledged as they come. */
  acksReports = true;
  /** What is told of another box under the same identity; undefined while there is one only. */
  duplicateBox: string | undefined;
  /** Told what is said and heard, for whoever keeps evidence. */
  onTraffic: ((title: string, detail: unknown) => void) | undefined;

  private constructor(identity: JudgedIdentity, { clock, random, tls: faces }: GatewayDeps) {
    this.identity = identity;
    this.tls = faces;
    this.clock = clock;
    this.random = random;
    this.#key = signingKeyOf(random.secret(SEED_BYTES));
  }

  /** Listens on both ports; port 0 takes a free one. Throws ConfigError that names the option. */
  static async open(place: GatewayPlace, identity: JudgedIdentity, deps: GatewayDeps): Promise<ScriptedGateway> {
    const gateway = new ScriptedGateway(identity, deps);
    const events: EndpointEvents = {
      login: (login) => gateway.#onLogin(login),
      message: (connection, bytes) => gateway.#onMessage(connection, bytes),
      violation: (clause, what) => gateway.reportViolation(clause, what),
    };
    const { host, mqttPort, httpPort } = place;
    const shared = { clock: deps.clock, random: deps.random, events, tls: deps.tls?.valid };
    gateway.#mqtt = await MqttEndpoint.open({ host, port: mqttPort }, identity, shared);
    try {
      gateway.#http = await HttpEndpoint.open({ host, port: httpPort }, identity, shared);
    } catch (error) {
      await gateway.#mqtt.close();
      throw error;
    }
    return gateway;
  }

  get mqtt(): MqttEndpoint {
    if (this.#mqtt === undefined) throw new Error('the gateway is not open');
    return this.#mqtt;
  }

  get http(): HttpEndpoint {
    if (this.#http === undefined) throw new Error('the gateway is not open');
    return this.#http;
  }

  /** The newest session, whether its connection still is there or not. */
  get session(): Session | undefined {
    return this.sessions.at(-1);
  }

  /** How the box reaches this gateway, as far as it has been let in. */
  get transport(): 'mqtt' | 'http' | undefined {
    return this.session?.connection.transport ?? this.logins.findLast((it) => it.problem === undefined)?.transport;
  }

  /** Says the next message in the newest session, or in another one. */
  send(body: DownBody, session = this.#current()): void {
    this.onTraffic?.(`told ${body.type}`, body);
    session.connection.deliver(session.signer.sign(this.messageJson(body, session)));
  }

  /** The JSON of a message in a session; whatever else is given is put over it. */
  messageJson(body: DownBody, session = this.#current(), more: object = {}): string {
    const head = { v: MESSAGE_VERSION, id: this.random.uuid(), sentAtMs: this.clock.wallMs() };
    return JSON.stringify({ ...head, sessionId: session.sessionId, ...body, ...more });
  }

  acknowledge(reportIds: string[], session = this.#current()): void {
    this.send({ type: 'ack', reportIds }, session);
  }

  welcome(session = this.#current()): void {
    session.isWelcomed = true;
    this.send({ type: 'welcome', link: this.account, openPushIds: this.openPushIds }, session);
  }

  /** A new signing key, which every message from here on introduces (PROTOCOL.md, clause SIG-5). */
  rotate(): SigningKey {
    const old = this.#key;
    this.#key = signingKeyOf(this.random.secret(SEED_BYTES));
    for (const session of this.sessions) session.signer.rotate(this.#key);
    return old;
  }

  /** Shows another face from the next handshake on. */
  useTlsIdentity(choose: (faces: TlsIdentities) => TlsIdentity): void {
    if (this.tls === undefined) return;
    for (const { tls: front } of [this.mqtt, this.http]) front?.useIdentity(choose(this.tls));
  }

  /** Connections that were begun over TLS. */
  get tlsHandshakes(): number {
    return (this.mqtt.tls?.handshakes ?? 0) + (this.http.tls?.handshakes ?? 0);
  }

  /** Ends every connection without a word, as a cable that is pulled. */
  cut(): void {
    this.mqtt.cut();
    this.http.cut();
  }

  /** Begins a new run, as after a restart of the gateway. */
  async restart(): Promise<void> {
    await Promise.all([this.mqtt.restart(), this.http.restart()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.mqtt.close(), this.http.close()]);
  }

  reportViolation(clause: string, what: string): void {
    this.onTraffic?.(`against ${clause}: ${what}`, undefined);
    const isKnown = this.violations.some((it) => it.clause === clause && it.what === what);
    if (!isKnown && this.violations.length < OBJECTIONS_MAX) this.violations.push({ clause, what });
  }

  #current(): Session {
    const { session } = this;
    if (session === undefined) throw new Error('no box has said hello');
    return session;
  }

  #onLogin(login: LoginAttempt): void {
    if (this.logins.length < LOGINS_MAX) this.logins.push(login);
    const { username, problem } = login;
    if (problem !== undefined && username === this.identity.terminalCode) this.reportViolation('TOP-2', problem);
  }

  #onMessage(connection: Connection, bytes: Uint8Array): MessageResult {
    if (bytes.byteLength > LIMITS.messageBytesMax) return this.#refuse('LIM-4', `sent ${bytes.byteLength} bytes`);
    const read = readUp(this.identity.terminalCode, bytes);
    if (!read.ok) {
      // Sealed as it should be, but not what the schemas say.
      const isSealed = read.code === 'MESSAGE_ILLEGAL' && typeof readJws(bytes) !== 'string';
      const field = /^(terminalCode|serialNumber|type):/.exec(read.reason)?.[1];
      const clause = field === undefined ? 'MSG-1' : field === 'type' ? 'MSG-2' : 'LIM-5';
      return this.#refuse(isSealed || field !== undefined ? clause : 'SIG-1', `${read.code}: ${read.reason}`);
    }
    const { jws, message } = read.value;
    const known = this.sessions.find(({ sessionId }) => sessionId === message.sessionId);
    if (known === undefined) return this.#greet(connection, read.value);
    if (known.connection !== connection) return this.#refuse('SIG-2', 'its session is on another connection');
    const opened = known.verifier.open(read.value);
    if (!opened.ok && opened.code === 'MESSAGE_REPLAYED' && connection.transport === 'http') return 'again';
    if (!opened.ok) return this.#refuse(clauseOf(opened.code), `${opened.code}: ${opened.reason}`);
    if (message.type === 'hello') this.reportViolation('MSG-4', 'said hello a second time in one session');
    this.#follow(known, jws.head);
    this.#keep(known, opened.value);
    if (known.kid !== this.session?.kid) this.#onRival();
    return 'taken';
  }

  #onRival(): void {
    this.duplicateBox ??= `two boxes speak as ${this.identity.terminalCode}, with different keys: turn one of them off`;
  }

  #refuse(clause: string, what: string): MessageResult {
    this.reportViolation(clause, what);
    return 'illegal';
  }

  #greet(connection: Connection, read: ReadMessage<UpMessage>): MessageResult {
    const { terminalCode, serialNumber, secret } = this.identity;
    const greeted = GatewaySeal.greet({ terminalCode, secret }, connection.challenge, read, this.clock);
    if (!greeted.ok) return this.#refuse(clauseOf(greeted.code, true), `${greeted.code}: ${greeted.reason}`);
    const { seal, hello } = greeted.value;
    const { head } = read.jws;
    this.#lookAtHello(connection, hello, head);
    if (hello.terminalCode !== terminalCode || hello.serialNumber !== serialNumber) {
      return this.#refuse('MSG-4', `says hello as ${hello.terminalCode} with serial number ${hello.serialNumber}`);
    }
    // A box that starts anew has a new key, and never an old one again.
    const isReturn = this.session?.kid !== head.kid && this.sessions.some((it) => it.kid === head.kid);
    if (isReturn) this.#onRival();
    const { sessionId } = hello;
    const sealer = new MessageSigner({ terminalCode, secret, sessionId }, this.#key, this.clock);
    const { kid, helloMs = 0, seq, sessionMs } = head;
    const counted = { kid, helloMs, seq, sessionMs };
    const session: Session = {
      sessionId,
      connection,
      hello,
      signer: sealer,
      verifier: seal,
      ...counted,
      isWelcomed: false,
    };
    if (this.sessions.length >= SESSIONS_MAX) this.sessions.shift();
    this.sessions.push(session);
    this.#keep(session, hello);
    if (this.helloAnswer === 'welcome') this.welcome(session);
    else if (this.helloAnswer !== 'nothing') {
      this.send({ type: 'refused', code: this.helloAnswer, reason: 'said by the bench' }, session);
    }
    return 'taken';
  }

  #lookAtHello(connection: Connection, hello: UpOf<'hello'>, head: ReadMessage<UpMessage>['jws']['head']): void {
    if (connection.sessionId === undefined) this.reportViolation('PRE-1', 'said hello before its birth');
    else if (connection.sessionId !== hello.sessionId) {
      this.reportViolation(connection.transport === 'mqtt' ? 'PRE-1' : 'BOX-HTTP-4', 'its hello is of another session');
    }
    if (head.seq !== 1) this.reportViolation('SIG-1', `its hello has the number ${head.seq}`);
    if (head.helloMs === undefined) this.reportViolation('SIG-2', 'its hello has no helloMs');
    const earlier = this.sessions.findLast(({ kid }) => kid === head.kid);
    if (earlier !== undefined && (head.helloMs ?? 0) <= earlier.helloMs) {
      this.reportViolation('SIG-2', 'a hello by the same key is not later than the one before');
    }
  }

  /** Numbers and times of one session only go up (PROTOCOL.md, clause SIG-1). */
  #follow(session: Session, { seq, sessionMs }: { seq: number; sessionMs: number }): void {
    if (seq !== session.seq + 1)
      this.reportViolation('SIG-1', `message ${seq} of its session came after ${session.seq}`);
    if (sessionMs < session.sessionMs) this.reportViolation('SIG-1', 'its sessionMs goes back');
    session.seq = seq;
    session.sessionMs = sessionMs;
  }

  #keep(session: Session, message: UpMessage): void {
    this.onTraffic?.(`heard ${message.type}`, message);
    if (message.type !== 'hello' && !session.isWelcomed)
      this.reportViolation('MSG-4', `said ${message.type} without a welcome`);
    if (this.received.length < HEARD_MAX) this.received.push({ message, session, atMs: this.clock.monotonicMs() });
    else this.reportViolation('MSG-6', `sent more than ${HEARD_MAX} messages`);
    if (message.type === 'alive' && this.answersAlive) this.send({ type: 'heard', aliveId: message.id }, session);
    const isOwed = message.type === 'ended' || message.type === 'paid';
    if (isOwed && this.acksReports) this.acknowledge([message.id], session);
  }
}

/** The clause that a refused message is against. */
function clauseOf(code: SealRefusal, isHello = false): string {
  if (code === 'WRONG_SESSION') return 'MSG-4';
  if (code === 'KEY_UNKNOWN') return 'SIG-2';
  return isHello && code === 'MESSAGE_REPLAYED' ? 'SIG-2' : 'SIG-1';
}
