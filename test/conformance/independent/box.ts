import { Socket } from 'node:net';
import { connectAsync, type MqttClient } from 'mqtt';
import { Counter } from './counter.ts';
import { isLegal } from './legal.ts';
import { type BoxClock, BoxKey, type Identity, type Json, proof, SignedSession } from './signed-session.ts';

/*
 * A box over plain MQTT (without TLS: signatures are never optional), written from PROTOCOL.md alone. `counter.ts` is
 * what it shows and remembers; this file is its connection.
 */

const TICK_MS = 100;
const REDIAL_MS = 500;
const WELCOME_MS = 5_000;
const ALIVE_MS = 10_000;
const SUPERSEDED_MS = 60_000;
const KEEPALIVE_SECONDS = 20;

interface Visit {
  client: MqttClient;
  session: SignedSession;
  beganMs: number;
  /** The gateway's run, once it is present; then the hello has been said. */
  run?: string;
  isWelcomed: boolean;
  isOver: boolean;
  aliveAtMs: number;
  unheard?: string;
}

export class IndependentBox {
  readonly counter: Counter;
  readonly #url: string;
  readonly #identity: Identity;
  readonly #clock: BoxClock;
  readonly #key = new BoxKey();
  #visit: Visit | undefined;
  #yields = false;
  #redialAtMs = 0;
  #isOn = true;

  /** `disk` is what earlier boxes of this name have left; it is changed at once. */
  constructor(url: string, identity: Identity, clock: BoxClock, disk: Json[]) {
    this.#url = url;
    this.#identity = identity;
    this.#clock = clock;
    this.counter = new Counter(clock, disk, (body) => this.#say(body));
  }

  /** Runs until `pullPlug`. */
  async run(): Promise<void> {
    while (this.#isOn) {
      if (this.#visit === undefined && this.#clock.monotonicMs() >= this.#redialAtMs) await this.#dial();
      this.#watch();
      this.counter.tick();
      await this.#clock.sleep(TICK_MS);
    }
  }

  pullPlug(): void {
    this.#isOn = false;
    this.#visit?.client.stream.destroy();
    this.#visit?.client.end(true);
  }

  #topic(channel: string): string {
    return `paybox/v1/boxes/${this.#identity.terminalCode}/${channel}`;
  }

  async #dial(): Promise<void> {
    this.#redialAtMs = this.#clock.monotonicMs() + REDIAL_MS;
    const { terminalCode, secret } = this.#identity;
    const session = new SignedSession(this.#identity, this.#key, this.#clock);
    const presence = (online: boolean) => {
      const gone = online ? {} : { proof: proof(secret, 'paybox/v1 gone', terminalCode, session.id) };
      return JSON.stringify({ v: 1, online, sessionId: session.id, ...gone });
    };
    const will = {
      topic: this.#topic('presence'),
      payload: Buffer.from(presence(false)),
      qos: 1,
      retain: true,
    } as const;
    const login = { username: terminalCode, password: proof(secret, 'paybox/v1 login') };
    const options = { ...login, protocolVersion: 4, clean: true, keepalive: KEEPALIVE_SECONDS, will } as const;
    try {
      const client = await connectAsync(this.#url, { ...options, reconnectPeriod: 0 }, false);
      // A message after an acknowledgement would wait for the peer's delayed one.
      if (client.stream instanceof Socket) client.stream.setNoDelay(true);
      const nowMs = this.#clock.monotonicMs();
      const visit = { client, session, beganMs: nowMs, isWelcomed: false, isOver: false, aliveAtMs: nowMs };
      this.#visit = visit;
      client.on('error', () => this.#leave(visit, REDIAL_MS));
      client.on('close', () => this.#leave(visit, REDIAL_MS));
      client.on('message', (topic, bytes, { retain }) => {
        if (topic === this.#topic('down')) {
          if (!retain) this.#hear(visit, bytes);
        } else this.#meetGateway(visit, bytes);
      });
      await client.subscribeAsync(this.#topic('down'), { qos: 1 });
      await client.publishAsync(this.#topic('presence'), presence(true), { qos: 1, retain: true });
      await client.subscribeAsync('paybox/v1/gateway/presence', { qos: 1 });
    } catch {
      // The next dial is due.
      if (this.#visit?.session === session) this.#leave(this.#visit, REDIAL_MS);
    }
  }

  /** The gateway's presence: a hello to each run of it, and none while it is away. */
  #meetGateway(visit: Visit, bytes: Buffer): void {
    const { online, sessionId: run } = JSON.parse(bytes.toString('utf8')) as Json;
    if (visit.isOver) return;
    if (online === true && visit.run === undefined) {
      visit.run = String(run);
      const { terminalCode, serialNumber } = this.#identity;
      const names = { terminalCode, serialNumber, agentVersion: 'independent', display: 'window' };
      const shown = { shownPushId: this.counter.shownPushId, yields: this.#yields };
      this.#send(visit, { type: 'hello', ...names, ...shown }, visit.run);
    } else if (visit.run !== undefined && (online === true) !== (run === visit.run)) this.#leave(visit, 0);
  }

  #hear(visit: Visit, bytes: Buffer): void {
    if (visit.isOver || visit.run === undefined) return;
    const isTimely = ({ type }: Json) => visit.isWelcomed || type === 'welcome' || type === 'refused';
    const message = visit.session.open(bytes, (it) => isLegal(it) && isTimely(it));
    if (message === 'expired') this.#leave(visit, 0);
    if (message === undefined || message === 'expired') return;
    const { type, code } = message;
    if (type === 'welcome') {
      Object.assign(visit, { isWelcomed: true, aliveAtMs: this.#clock.monotonicMs() });
      this.#yields = false;
      this.counter.welcome(message);
    } else if (type === 'heard') {
      if (message.aliveId === visit.unheard) delete visit.unheard;
    } else if (type === 'refused') {
      if (code !== 'SESSION_ENDED') this.counter.refused();
      this.#yields = code === 'SUPERSEDED';
      this.#leave(visit, this.#yields ? SUPERSEDED_MS : code === 'SESSION_ENDED' ? 0 : REDIAL_MS);
    } else this.counter.hear(message, visit.session.helloAtMs);
  }

  /** Signs of life, and the end of a session that nobody answers. */
  #watch(): void {
    const visit = this.#visit;
    if (visit === undefined || visit.run === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    if (!visit.isWelcomed) {
      if (nowMs > visit.beganMs + WELCOME_MS) this.#leave(visit, REDIAL_MS);
    } else if (nowMs >= visit.aliveAtMs + ALIVE_MS) {
      if (visit.unheard !== undefined) {
        this.#leave(visit, 0);
        return;
      }
      visit.unheard = crypto.randomUUID();
      visit.aliveAtMs = nowMs;
      this.#send(visit, { type: 'alive', id: visit.unheard });
    }
  }

  #say(body: Json): void {
    if (this.#visit?.isWelcomed === true) this.#send(this.#visit, body);
  }

  #send({ client, session }: Visit, body: Json, challenge?: string): void {
    client.publish(this.#topic('up'), session.sign(body, challenge), { qos: 1 }, () => undefined);
  }

  #leave(visit: Visit, forMs: number): void {
    if (visit.isOver) return;
    visit.isOver = true;
    this.#visit = undefined;
    this.#redialAtMs = this.#clock.monotonicMs() + forMs;
    visit.client.end(true);
    this.counter.offline();
  }
}
